//! Recovery: the steps that the head of the crate lists under *Opening*.

use core::sync::atomic::Ordering;

use heap::HeapError;
use pmem::{Medium, Span, unseal};

use crate::lanes::Lanes;
use crate::layout::intent_at;
use crate::{broken, canary, run};

/// The result of a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Number of changes that were undone.
    pub undone_count: usize,
}

impl Lanes {
    /// Undoes every change that was begun and is not final, and makes durable the single words that a killed
    /// process has changed. Call it before anything else is read that lanes protect.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if a run contradicts itself; the errors of [`Bytes::overlay`](pmem::Bytes::overlay)
    /// for a region that is open for reading.
    pub fn recover<M: Medium>(&self, medium: &M) -> Result<Recovered, HeapError> {
        let mut recovered = Recovered::default();
        for lane in 0..self.count() {
            if let Some(ranges) = run::valid(medium, self.log_span(lane), self.number(lane), lane) {
                self.undo(medium, lane, ranges)?;
                recovered.undone_count += 1;
            }
        }
        if medium.is_writable() && !medium.opens_durable() && !medium.breaks(canary::WORD_LEFT_AS_FOUND) {
            (0..self.count()).for_each(|lane| flush_intent(medium, lane));
            medium.order();
        }
        Ok(recovered)
    }

    fn undo<M: Medium>(&self, medium: &M, lane: usize, ranges: Span) -> Result<(), HeapError> {
        let offset = ranges.start.0;
        if !medium.breaks(canary::RUN_CHECKSUM_IGNORED) && !run::each_range(medium, ranges, |_, _| {}) {
            return Err(HeapError::Damaged { offset, what: "the ranges of an undo log's run do not fill its length" });
        }
        if !medium.is_writable() {
            return restore_for_reader(medium, ranges);
        }
        if medium.breaks(canary::NUMBER_BEFORE_RESTORE) {
            broken::void_early(self, medium, lane);
        }
        run::each_range(medium, ranges, |range, old| {
            for at in (0..range.len_bytes).step_by(8) {
                let word = medium.load(old.plus(at), Ordering::Relaxed);
                medium.store(range.start.plus(at), word, Ordering::Release);
            }
            medium.flush(range);
        });
        medium.order_unless(canary::RESTORE_NOT_ORDERED);
        self.raise(medium, lane);
        medium.order();
        Ok(())
    }
}

/// Restores the words only for this process, which has the region open for reading. The run stays valid.
fn restore_for_reader<M: Medium>(medium: &M, ranges: Span) -> Result<(), HeapError> {
    if medium.breaks(canary::UNDO_HIDDEN_FROM_READERS) {
        return Ok(());
    }
    let mut shown = Ok(());
    run::each_range(medium, ranges, |range, old| {
        // SAFETY: no thread stores to a region that is open for reading.
        let old = unsafe { medium.bytes(old.span(range.len_bytes)) };
        // SAFETY: the region is open for reading, and only the caller opens it; its log is in no range of a run.
        shown = shown.and(old.and_then(|old| unsafe { medium.overlay(range.start, old) }));
    });
    Ok(shown?)
}

/// Makes durable the word that the lane's last holder was changing.
fn flush_intent<M: Medium>(medium: &M, lane: usize) {
    let Some(at) = unseal(medium.load(intent_at(lane), Ordering::Relaxed)) else { return };
    let word = pmem::Offset(at).span(8);
    if medium.check(word).is_ok() {
        medium.flush(word);
    }
}
