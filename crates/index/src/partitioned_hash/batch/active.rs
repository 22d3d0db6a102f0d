//! The batches in progress, in DRAM, so that readers need not search a record.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use heap::layout::{BATCH_WORD_COUNT, SEGMENT_BYTES, batch_word};
use heap::{BatchState, BatchWord};
use parking_lot::{Condvar, Mutex};
use pmem::{Level, Medium, MediumError, Offset, Ticket};
use smallvec::SmallVec;

use super::{Change, now};
use crate::Position;
use crate::canary;
use crate::partitioned_hash::Slot;
use crate::partitioned_hash::settle::settle;
use crate::segmented::directory::Retired;

/// Changes that need no allocation of their own.
const FEW_COUNT: usize = 4;

/// A batch that may have marked entries.
#[derive(Debug)]
pub(in crate::partitioned_hash) struct Active {
    number: usize,
    record: Offset,
    /// The time at which the word is durable as COMMITTED, if known: a ticket, or [`UNKNOWN`].
    committed: AtomicU64,
    /// The changes in the batch's order, in which those of a segment are mostly adjacent.
    changes: SmallVec<[Change; FEW_COUNT]>,
    /// Segments, and the index at which a run of adjacent changes in the segment begins; sorted. The first reader
    /// that needs the runs computes them, because readers find very few batches.
    runs: OnceLock<Box<[(u64, usize)]>>,
}

/// A finished batch, which readers may still ask. Opaque to other crates.
#[derive(Debug)]
pub struct FinishedBatch(#[expect(dead_code, reason = "kept for its destructor alone")] Retired<Active>);

impl FinishedBatch {
    pub(super) fn new(batch: Retired<Active>) -> FinishedBatch {
        FinishedBatch(batch)
    }
}

/// Returns the number of the segment that has the entry with this position word.
fn segment_of(at: Offset) -> u64 {
    at.0 / SEGMENT_BYTES
}

/// No ticket.
const UNKNOWN: u64 = u64::MAX;

/// The batches in progress, one per batch word.
#[derive(Debug, Default)]
pub struct Batches {
    active: [AtomicPtr<Active>; BATCH_WORD_COUNT],
    /// Bit i is set while a batch uses word i.
    pub(super) taken: Mutex<u16>,
    pub(super) returned: Condvar,
}

const _: () = assert!(BATCH_WORD_COUNT == u16::BITS as usize);

impl Active {
    pub(super) fn new(number: usize, record: Offset, changes: &[Change]) -> Box<Active> {
        Box::new(Active {
            number,
            record,
            committed: AtomicU64::new(UNKNOWN),
            changes: SmallVec::from_slice(changes),
            runs: OnceLock::new(),
        })
    }

    #[cold]
    fn find_runs(&self) -> Box<[(u64, usize)]> {
        let (mut runs, mut first) = (Vec::new(), 0);
        for run in self.changes.chunk_by(|one, next| segment_of(one.at) == segment_of(next.at)) {
            runs.push((segment_of(run[0].at), first));
            first += run.len();
        }
        runs.sort_unstable();
        runs.into()
    }

    /// Records that the word is COMMITTED, and durable when `ticket` is.
    pub(super) fn note_committed(&self, ticket: Ticket) {
        self.committed.store(ticket.0, Ordering::Release);
    }

    /// Returns the time at which the word COMMITTED, which the caller has seen, is durable. If two readers
    /// determine it at the same time, either may record its ticket last: both are correct.
    fn committed<M: Medium>(&self, medium: &M) -> Ticket {
        match self.committed.load(Ordering::Acquire) {
            UNKNOWN => {
                medium.flush(batch_word(self.number).span(8));
                let ticket = medium.commit(Level::Strongest);
                self.note_committed(ticket);
                ticket
            }
            known => Ticket(known),
        }
    }

    fn change(&self, slot: Slot) -> Option<&Change> {
        let (segment, runs) = (segment_of(slot.position), self.runs.get_or_init(|| self.find_runs()));
        let from = runs.partition_point(|(of, _)| *of < segment);
        let runs = runs[from..].iter().take_while(|(of, _)| *of == segment);
        let side_by_side = |first: usize| self.changes[first..].iter().take_while(|one| segment_of(one.at) == segment);
        runs.flat_map(|(_, first)| side_by_side(*first)).find(|one| one.at == slot.position)
    }

    /// Returns the entry's word as the batch decides, or `None` if the batch is over.
    fn decided<M: Medium>(&self, medium: &M, change: &Change) -> Result<Option<Position>, MediumError> {
        let word = medium.load(batch_word(self.number), Ordering::Acquire);
        let is = |state| word == BatchWord { record: self.record, state }.word();
        if is(BatchState::Prepared) {
            return Ok(Some(change.old));
        }
        if !is(BatchState::Committed) {
            return Ok(None);
        }
        if medium.is_writable() && !medium.breaks(canary::UNSETTLED_READ) {
            let _ = medium.acknowledge_met(self.committed(medium))?;
        }
        Ok(Some(change.new))
    }
}

impl Batches {
    /// Returns the word of the entry at `slot`, which was seen with a mark, without the mark: durable, and as its
    /// batch decides.
    #[cold]
    #[inline(never)]
    pub(in crate::partitioned_hash) fn decided<M: Medium>(
        &self,
        medium: &M,
        slot: Slot,
        seen: Position,
    ) -> Result<Position, MediumError> {
        let mut seen = settle(medium, slot, seen)?;
        while seen.is_in_batch() {
            if let Some(decided) = self.ask(medium, slot)? {
                return Ok(decided);
            }
            let now = now(medium, slot.position);
            // FRESH stays set if the medium is read-only, or if the caller waits itself.
            if now.settled() == seen {
                return Ok(seen.out_of_batch());
            }
            seen = settle(medium, slot, now)?;
        }
        Ok(seen)
    }

    fn ask<M: Medium>(&self, medium: &M, slot: Slot) -> Result<Option<Position>, MediumError> {
        self.all()
            .find_map(|active| Some((active, active.change(slot)?)))
            .map_or(Ok(None), |(active, change)| active.decided(medium, change))
    }

    /// Returns true if a batch in progress has the entry.
    pub(in crate::partitioned_hash) fn has(&self, slot: Slot) -> bool {
        self.all().any(|active| active.change(slot).is_some())
    }

    /// Returns all batches in progress. The caller is pinned.
    fn all(&self) -> impl Iterator<Item = &Active> {
        // SAFETY: an unlinked batch is retired, and the caller has been pinned since before this load.
        self.active.iter().filter_map(|active| unsafe { active.load(Ordering::Acquire).as_ref() })
    }

    /// Links the batch. From now on readers may find its marks.
    pub(super) fn link(&self, active: Box<Active>) -> &Active {
        let slot = &self.active[active.number];
        let active = Box::into_raw(active);
        slot.store(active, Ordering::Release);
        // SAFETY: it stays until it is unlinked, which only its writer does, and retired.
        unsafe { &*active }
    }

    /// Unlinks the batch. Readers find its marks no more.
    pub(super) fn unlink(&self, number: usize) -> Retired<Active> {
        let active = self.active[number].swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: `link` created it from a box, and only the turn's holder removes it.
        unsafe { Retired::new(active) }
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        for active in &mut self.active {
            let active = *active.get_mut();
            if !active.is_null() {
                // SAFETY: it came from a box, and no thread reads it any more.
                drop(unsafe { Box::from_raw(active) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitioned_hash::layout::{LINE_ENTRY_COUNT, entry_lines, slot};

    /// The entries of a chained segment can be between those of other segments, and a segment can occur again.
    #[test]
    fn changes_are_found_in_any_segment() {
        let segments = [5, 2, 9, 2, 7, 5].map(|number| Offset(number * SEGMENT_BYTES));
        let entries = |segment| entry_lines(segment).flat_map(|line| (0..LINE_ENTRY_COUNT).map(move |i| slot(line, i)));
        let of = |(turn, segment): (usize, &Offset)| entries(*segment).skip(turn).step_by(100).collect::<Vec<_>>();
        let slots: Vec<Slot> = segments.iter().enumerate().flat_map(of).collect();
        let change =
            |slot: &Slot| Change { at: slot.position, number: 0, by: 0, old: Position::EMPTY, new: Position::EMPTY };
        let active = Active::new(0, Offset(64), &slots.iter().map(change).collect::<Vec<_>>());
        assert_eq!(active.find_runs().len(), segments.len());
        for slot in &slots {
            assert_eq!(active.change(*slot).map(Change::slot), Some(*slot));
        }
        let others = [2, 5, 6, 7, 9].into_iter().flat_map(|number| entries(Offset(number * SEGMENT_BYTES)));
        assert!(others.filter(|slot| !slots.contains(slot)).all(|slot| active.change(slot).is_none()));
    }
}
