//! Background work: prepares space ahead of the mark, so that writers neither grow the region nor fault fresh pages.
//!
//! The amount is a fraction of the space in use, and more if writers are fast. The measure of speed, without a clock,
//! is the space used while the background prepares more: if that is much of the prepared space, a slower background
//! would be overtaken. The next time four times as much is prepared, within a larger fraction of the region. Whenever
//! so much was not needed, the amount is halved.

use core::sync::atomic::{AtomicU64, Ordering};

use pmem::{Dram, Medium, Offset};

use crate::HeapError;
use crate::heap::Heap;
use crate::layout::UNIT_BYTES;
use crate::region::GROWTH_BYTES;
use crate::space::Space;
use crate::superblock::FEATURE_JOURNAL;

/// Pages prepared in one step: a huge page.
const POPULATE_BYTES: u64 = 2 << 20;

/// Space that the background keeps ready for new chunks, as a fraction of the space in use, within these bounds. The
/// lower bound keeps small stores small; the upper bound is a tenth of a second of the fastest writer.
const AHEAD_SHARE: u64 = 32;
/// The fraction if writers are fast.
const AHEAD_SHARE_QUICK: u64 = 4;
const AHEAD_BYTES_MIN: u64 = 1 << 20;
const AHEAD_BYTES_MAX: u64 = 64 << 20;

/// One growth has at most this fraction of the spare space. So the growth ends before writers have used the remaining
/// space, if writers are at most twice as fast.
const SPARE_SHARE: u64 = 2;

/// The factor by which the space that writers used during preparation is multiplied for the next time.
const PACE_FACTOR: u64 = 4;

/// The speed at which writers use prepared space.
#[derive(Default)]
pub(crate) struct Pace {
    /// The mark when the background began to prepare space; 0 while it is idle.
    filled_from_bytes: AtomicU64,
    ahead_bytes: AtomicU64,
    /// The region's length when it last failed to grow; 0 before that. Each attempt delays writers that need a growth
    /// themselves.
    refused_at_bytes: AtomicU64,
}

impl Pace {
    /// Updates the pace after a step of the background; `is_more` if another step is needed.
    fn note(&self, mark_bytes: u64, is_more: bool) {
        let from_bytes = self.filled_from_bytes.load(Ordering::Relaxed);
        let began_bytes = if from_bytes == 0 { mark_bytes } else { from_bytes };
        // Another thread's step may have begun later and ended earlier: no space was used since.
        let wanted_bytes = mark_bytes.saturating_sub(began_bytes) * PACE_FACTOR;
        let kept_bytes = self.ahead_bytes.load(Ordering::Relaxed) / if is_more { 1 } else { 2 };
        if is_more || from_bytes != 0 {
            self.ahead_bytes.store(wanted_bytes.max(kept_bytes), Ordering::Relaxed);
        }
        self.filled_from_bytes.store(if is_more { began_bytes } else { 0 }, Ordering::Relaxed);
    }
}

/// Returns the length by which the background grows a region with this much spare and lacking space. The kernel may
/// block a small growth as long as a large one, waiting for another busy processor; writers use the spare space while
/// it blocks.
fn growth_bytes(spare_bytes: u64, lacking_bytes: u64) -> u64 {
    let whole_steps = spare_bytes / SPARE_SHARE / GROWTH_BYTES;
    whole_steps.clamp(1, lacking_bytes.div_ceil(GROWTH_BYTES)) * GROWTH_BYTES
}

impl<D: Dram> Heap<D> {
    /// Returns the spare space that [`Heap::prepare`] should be called for. It is 0 for a journaled region shorter
    /// than its first growth: a small store stays small, and its writer grows the region once
    /// (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`).
    pub fn ahead_bytes(&self) -> u64 {
        if self.region.len_bytes() < GROWTH_BYTES && self.region.has_features(FEATURE_JOURNAL) {
            return 0;
        }
        let footprint_bytes = self.footprint_bytes();
        let of_pace = self.pace.ahead_bytes.load(Ordering::Relaxed).min(footprint_bytes / AHEAD_SHARE_QUICK);
        (footprint_bytes / AHEAD_SHARE).max(of_pace).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX)
    }

    /// Returns true while a writer may soon run out of prepared space.
    #[inline(always)]
    pub fn runs_low(&self) -> bool {
        self.runs_low.load(Ordering::Relaxed)
    }

    /// Publishes changed lengths of the locked space for readers without the lock; every writer checks `runs_low`.
    pub(crate) fn note(&self, space: &Space) {
        self.figures.note(space);
        self.runs_low.store(self.spare_bytes() < self.ahead_bytes() / 4 * 3, Ordering::Relaxed);
    }

    /// Returns the bytes available for new chunks without growth: free runs, and everything above the mark.
    pub fn spare_bytes(&self) -> u64 {
        // The mark is read first: it never exceeds a length that is read after it.
        let mark_bytes = self.mark_bytes();
        self.region.len_bytes() - mark_bytes + self.figures.run_units() * UNIT_BYTES
    }

    /// Takes one step towards `ahead_bytes` of spare space whose pages do not fault: up to 2 MiB of pages, or growth
    /// once all existing pages are prepared. Returns true while there is more to do. Returns false if the region
    /// cannot grow (not tried again before a writer grows it) or if holes above the mark cannot be filled, for any
    /// reason. Writers get the error themselves, and other background work may free space.
    pub fn prepare<M: Medium>(&self, medium: &M, ahead_bytes: u64) -> bool {
        let is_more = self.prepare_step(medium, ahead_bytes).unwrap_or(false);
        self.pace.note(self.mark_bytes(), is_more);
        is_more
    }

    fn prepare_step<M: Medium>(&self, medium: &M, ahead_bytes: u64) -> Result<bool, HeapError> {
        if self.populate(medium, ahead_bytes)? {
            return Ok(true);
        }
        let spare_bytes = self.spare_bytes();
        let len_bytes = self.region.len_bytes();
        let is_short = spare_bytes < ahead_bytes && self.pace.refused_at_bytes.load(Ordering::Relaxed) != len_bytes;
        if is_short {
            let step_bytes = growth_bytes(spare_bytes, ahead_bytes - spare_bytes);
            let grown = self.region.grow(medium, len_bytes + UNIT_BYTES, step_bytes);
            grown.inspect_err(|_| self.pace.refused_at_bytes.store(len_bytes, Ordering::Relaxed))?;
            self.note(&self.space.lock());
        }
        Ok(is_short)
    }

    /// Prepares pages above the mark; returns true if there were any. Free runs reduce the number of pages needed.
    fn populate<M: Medium>(&self, medium: &M, ahead_bytes: u64) -> Result<bool, HeapError> {
        let mark_bytes = self.mark_bytes();
        let start = self.populated_bytes.load(Ordering::Relaxed).max(mark_bytes);
        let needed_bytes = ahead_bytes.saturating_sub(self.figures.run_units() * UNIT_BYTES);
        let past = (mark_bytes + needed_bytes).min(self.region.len_bytes());
        let end = past.min(start + POPULATE_BYTES);
        if start >= end {
            return Ok(false);
        }
        let (found, past_unit) = (self.space.lock().above(), end.div_ceil(UNIT_BYTES) as u32);
        if found.holed_from < past_unit && !self.back_above_mark(medium, found, past_unit)? {
            return Ok(true);
        }
        medium.populate(Offset(start).span(end - start));
        self.populated_bytes.fetch_max(end, Ordering::Relaxed);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine may let several threads take steps: one has read the mark, and another begins to prepare before it
    /// is noted.
    #[test]
    fn late_noted_step_knows_no_pace() {
        let pace = Pace::default();
        pace.note(3 << 20, true);
        pace.note(2 << 20, true);
        assert_eq!(pace.ahead_bytes.load(Ordering::Relaxed), 0);
        pace.note(4 << 20, true);
        assert_eq!(pace.ahead_bytes.load(Ordering::Relaxed), PACE_FACTOR << 20);
    }
}
