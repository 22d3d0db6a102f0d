//! Lengths that are read without the space lock, and the space that the background keeps ready.
//!
//! The amount is a fraction of the space in use, and more if writers are fast. The measure of speed, without a clock,
//! is the space used while the background prepares more (`prepare`): if that is much of the prepared space, a slower
//! background would be overtaken. The next time four times as much is prepared, within a larger fraction of the
//! region. Whenever so much was not needed, the amount is halved.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::layout::{UNIT_BYTES, unit_start};
use crate::region::{GROWTH_BYTES, Region};
use crate::space::Space;
use crate::superblock::FEATURE_JOURNAL;

/// Space that the background keeps ready for new chunks, as a fraction of the space in use, within these bounds. The
/// lower bound keeps small stores small; the upper bound is a tenth of a second of the fastest writer.
const AHEAD_SHARE: u64 = 32;
/// The fraction if writers are fast.
const AHEAD_SHARE_QUICK: u64 = 4;
const AHEAD_BYTES_MIN: u64 = 1 << 20;
const AHEAD_BYTES_MAX: u64 = 64 << 20;

/// The factor by which the space that writers used during preparation is multiplied for the next time.
const PACE_FACTOR: u64 = 4;

/// The speed at which writers use prepared space.
#[derive(Default)]
pub(crate) struct Pace {
    /// The mark when the background began to prepare space; 0 while it is idle.
    filled_from_bytes: AtomicU64,
    ahead_bytes: AtomicU64,
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

/// The lengths of a region's used and free space. Every change under the space lock updates them.
#[derive(Default)]
pub struct Supply {
    mark: AtomicU32,
    holed_from: AtomicU32,
    run_units: AtomicU64,
    /// Units in runs that may have holes.
    holed_run_units: AtomicU64,
    /// Units in runs without space to return.
    given_back_units: AtomicU64,
    /// Units in chunks that recently became free or roomy.
    loosened_units: AtomicU64,
    /// True if a writer has used a free run since space was last returned to the file system. Only then does the
    /// background fill holes: space that was returned stays returned until there is a use for it.
    uses_runs: AtomicBool,
    /// True while a writer may soon run out of prepared space; every writer checks it.
    runs_low: AtomicBool,
    pace: Pace,
}

impl Supply {
    /// Notes the lengths of the locked space.
    pub(crate) fn note(&self, space: &Space, region: &Region) {
        self.mark.store(space.mark, Ordering::Release);
        self.holed_from.store(space.holed_from, Ordering::Relaxed);
        let (free_units, spaced_units) = (space.runs.free_units(), space.runs.spaced_units());
        self.run_units.store(free_units, Ordering::Relaxed);
        self.given_back_units.store(free_units - spaced_units, Ordering::Relaxed);
        self.holed_run_units.store(space.runs.holed_units(), Ordering::Relaxed);
        let ready_bytes = if self.fills_runs() { self.whole_run_bytes() } else { self.spare_bytes(region) };
        self.runs_low.store(ready_bytes < self.ahead_bytes(region) / 4 * 3, Ordering::Relaxed);
    }

    /// Notes that a writer uses free runs.
    pub(crate) fn note_run_used(&self) {
        self.uses_runs.store(true, Ordering::Relaxed);
    }

    /// Notes that space was returned to the file system.
    pub(crate) fn note_space_returned(&self) {
        self.uses_runs.store(false, Ordering::Relaxed);
    }

    /// Returns true if writers use free runs, and some of these may have holes.
    pub(crate) fn fills_runs(&self) -> bool {
        self.uses_runs.load(Ordering::Relaxed) && self.holed_run_units.load(Ordering::Relaxed) > 0
    }

    /// Returns the bytes in free runs without holes.
    pub(crate) fn whole_run_bytes(&self) -> u64 {
        let units = self.run_units.load(Ordering::Relaxed);
        units.saturating_sub(self.holed_run_units.load(Ordering::Relaxed)) * UNIT_BYTES
    }

    /// Notes a step of the background; `is_more` if another step is needed.
    pub(crate) fn note_step(&self, is_more: bool) {
        self.pace.note(self.mark_bytes(), is_more);
    }

    #[inline(always)]
    pub(crate) fn runs_low(&self) -> bool {
        self.runs_low.load(Ordering::Relaxed)
    }

    /// Counts a chunk of `units` that became free or roomy.
    pub(crate) fn loosen(&self, units: u32) {
        self.loosened_units.fetch_add(u64::from(units), Ordering::Relaxed);
    }

    /// Counts bytes that readers will release later as [loosened](Supply::newly_free_bytes), so that background work
    /// looks for them even if no thread writes any more.
    #[cold]
    pub fn expect_newly_free(&self, bytes: u64) {
        self.loosen((bytes / UNIT_BYTES) as u32);
    }

    /// Returns the bytes in chunks that became free or roomy since [`Supply::reset_newly_free`]: candidates for
    /// compaction.
    #[inline]
    pub fn newly_free_bytes(&self) -> u64 {
        self.loosened_units.load(Ordering::Relaxed) * UNIT_BYTES
    }

    /// Resets the count of loosened bytes to zero.
    pub fn reset_newly_free(&self) {
        self.loosened_units.store(0, Ordering::Relaxed);
    }

    /// Returns the units below the high-water mark.
    pub(crate) fn mark(&self) -> u32 {
        self.mark.load(Ordering::Acquire)
    }

    /// Returns the bytes below the high-water mark.
    pub fn mark_bytes(&self) -> u64 {
        unit_start(self.mark()).0
    }

    /// Returns the bytes in free runs.
    pub(crate) fn run_bytes(&self) -> u64 {
        self.run_units.load(Ordering::Relaxed) * UNIT_BYTES
    }

    /// Returns the bytes of the region that may use disk space: up to the first possible hole above the mark, without
    /// the holes in free runs.
    pub fn footprint_bytes(&self) -> u64 {
        let holed_from = u64::from(self.holed_from.load(Ordering::Relaxed));
        holed_from.saturating_sub(self.given_back_units.load(Ordering::Relaxed)) * UNIT_BYTES
    }

    /// Returns the bytes available for new chunks without growth: free runs, and everything above the mark.
    pub(crate) fn spare_bytes(&self, region: &Region) -> u64 {
        // The mark is read first: it never exceeds a length that is read after it.
        let mark_bytes = self.mark_bytes();
        region.len_bytes() - mark_bytes + self.run_bytes()
    }

    /// Returns the spare space that the background keeps ready. It is 0 for a journaled region shorter than its first
    /// growth: a small store stays small, and its writer grows the region once
    /// (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`).
    pub(crate) fn ahead_bytes(&self, region: &Region) -> u64 {
        if region.len_bytes() < GROWTH_BYTES && region.has_features(FEATURE_JOURNAL) {
            return 0;
        }
        let footprint_bytes = self.footprint_bytes();
        let of_pace = self.pace.ahead_bytes.load(Ordering::Relaxed).min(footprint_bytes / AHEAD_SHARE_QUICK);
        (footprint_bytes / AHEAD_SHARE).max(of_pace).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX)
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
