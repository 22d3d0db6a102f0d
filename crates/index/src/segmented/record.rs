//! The record of a split, its commit, and the completion of interrupted splits.
//!
//! The record's commit word decides. Without it, the new segments are PENDING, which is free space. With it, the
//! new segments are live and the old one is dead, whatever the state words record. Finishing a split writes the
//! states again, so a crash during that changes nothing.

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

/// Returns the place of a partition's record: its line of the engine area.
pub(crate) fn record_of(partition: u32) -> Offset {
    heap::layout::ENGINE_AREA.plus(u64::from(partition) * LINE_BYTES)
}

/// Returns the partition's committed split, if a crash left one.
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
                return Err(HeapError::Damaged {
                    offset: at.0,
                    what: "the segment offsets in a split record are damaged",
                });
            };
            Ok(Some(SplitRecord { at, old, halves: [zero, one] }))
        }
        _ => Err(HeapError::Damaged { offset: at.0, what: "a split record's commit word is damaged" }),
    }
}

/// Returns the header of the segment at `offset`.
pub(crate) fn header<M: Medium>(medium: &M, offset: Offset) -> Option<SegmentHeader> {
    let word = |at: Offset| medium.load(at, Ordering::Acquire);
    SegmentHeader::from_words(word(offset), word(offset.plus(PREFIX_BYTES)))
}

impl SplitRecord {
    /// Carries out step 3. The words of one line become durable in the order of their stores.
    pub(crate) fn commit<M: Medium>(&self, medium: &M) {
        let word = |bytes, value| medium.store(self.at.plus(bytes), value, Ordering::Release);
        word(record::OLD_BYTES, seal(self.old.0));
        word(record::ZERO_BYTES, seal(self.halves[0].0));
        word(record::ONE_BYTES, seal(self.halves[1].0));
        word(record::COMMIT_BYTES, seal(1));
        medium.flush(self.at.span(LINE_BYTES));
        medium.order();
    }

    /// Returns the state that the split assigns to the segment at `offset`, if it is part of the split.
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
            let damaged =
                HeapError::Damaged { offset: segment.0, what: "a split record names a place without a segment" };
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
        // The cleared record must be durable before the old segment's space is reused.
        medium.order();
        Ok(())
    }
}
