//! The record of a split, its commit, and finishing what a crash interrupted.
//!
//! The record's commit word decides: without it the new segments are PENDING, which is free space; with it the new ones
//! are live and the old one is dead, whatever the state words say. Finishing is writing the states again, so that a
//! crash in the midst of it changes nothing.

use heap::HeapError;
use pmem::{Dram, LINE_BYTES, Medium, Offset, seal, unseal};
use std::sync::atomic::Ordering;

use super::Context;
use super::layout::{PREFIX_BYTES, SegmentHeader, State, record};
use crate::canary;

/// A committed split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitRecord {
    pub(crate) at: Offset,
    pub(crate) old: Offset,
    pub(crate) halves: [Offset; 2],
}

/// Where a partition's record lies: its line of the engine area.
pub(crate) fn record_of(partition: u32) -> Offset {
    heap::layout::ENGINE_AREA.plus(u64::from(partition) * LINE_BYTES)
}

/// The partition's committed split, if a crash left one.
pub(crate) fn committed<M: Medium>(medium: &M, partition: u32) -> Result<Option<SplitRecord>, HeapError> {
    let at = record_of(partition);
    let word = |bytes| medium.load(at.plus(bytes), Ordering::Acquire);
    match word(record::COMMIT_BYTES) {
        0 => Ok(None),
        commit if unseal(commit) == Some(1) => {
            let offset = |bytes| unseal(word(bytes)).map(Offset);
            let [Some(old), Some(zero), Some(one)] =
                [record::OLD_BYTES, record::ZERO_BYTES, record::ONE_BYTES].map(offset)
            else {
                return Err(HeapError::Damaged { offset: at.0, what: "a split record names no segments" });
            };
            Ok(Some(SplitRecord { at, old, halves: [zero, one] }))
        }
        _ => Err(HeapError::Damaged { offset: at.0, what: "a split record's commit word is damaged" }),
    }
}

/// The header of the segment at `offset`.
pub(crate) fn header<M: Medium>(medium: &M, offset: Offset) -> Option<SegmentHeader> {
    let word = |at: Offset| medium.load(at, Ordering::Acquire);
    SegmentHeader::from_words(word(offset), word(offset.plus(PREFIX_BYTES)))
}

impl SplitRecord {
    /// Step 3: the words of one line become durable in the order of their stores.
    pub(crate) fn commit<M: Medium>(&self, medium: &M) {
        let word = |bytes, value| medium.store(self.at.plus(bytes), value, Ordering::Release);
        word(record::OLD_BYTES, seal(self.old.0));
        word(record::ZERO_BYTES, seal(self.halves[0].0));
        word(record::ONE_BYTES, seal(self.halves[1].0));
        word(record::COMMIT_BYTES, seal(1));
        medium.flush(self.at.span(LINE_BYTES));
        medium.order();
    }

    /// The state that the split gives to the segment at `offset`, if it has a part in it.
    pub(crate) fn state_of(&self, offset: Offset) -> Option<State> {
        if offset == self.old {
            return Some(State::Dead);
        }
        self.halves.contains(&offset).then_some(State::Live)
    }

    /// Makes the states durable, then clears the record (steps 4 and 5 of a split).
    pub(crate) fn finish<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>) -> Result<(), HeapError> {
        let medium = cx.medium;
        for segment in [self.old, self.halves[0], self.halves[1]] {
            let state = self.state_of(segment).expect("these are the split's own");
            let damaged = HeapError::Damaged { offset: segment.0, what: "a split record names a segment that is none" };
            let header = header(medium, segment).ok_or(damaged)?;
            if state == State::Dead && medium.breaks(canary::GHOST_SEGMENT) {
                continue;
            }
            medium.store(segment, header.with(state).state_word(), Ordering::Release);
            if !medium.breaks(canary::RECORD_CLEARED_EARLY) {
                medium.flush(segment.span(8));
            }
        }
        medium.order();
        medium.store(self.at.plus(record::COMMIT_BYTES), 0, Ordering::Release);
        medium.flush(self.at.span(LINE_BYTES));
        // Before the old segment's space becomes something else.
        medium.order();
        Ok(())
    }
}
