//! Background work: space ahead of the mark, so that writers neither grow the region nor fault fresh pages.
//!
//! How much is a part of what takes space, and more where writers are quick. What writers take while the background fills up says how
//! quick, without a clock: if that is much of what was ready, a slower background would be overtaken. So the next time four
//! times as much is ready, as far as a larger part of the region allows; each time without a need for so much, half of that.

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

/// Space that the background keeps ready for new chunks, as a part of what takes space, within these bounds: the lower one keeps
/// small stores small, the upper one is a tenth of a second of the fastest writer.
const AHEAD_SHARE: u64 = 32;
/// The same where writers are quick.
const AHEAD_SHARE_QUICK: u64 = 4;
const AHEAD_BYTES_MIN: u64 = 1 << 20;
const AHEAD_BYTES_MAX: u64 = 64 << 20;

/// A growth has at most this part of what is spare: then the growth is over before writers are through with the rest, if it goes half as
/// quickly as they do.
const SPARE_SHARE: u64 = 2;

/// Times what writers took while space was made ready for them: so much should have been ready.
const PACE_FACTOR: u64 = 4;

/// How quickly writers take what is ready.
#[derive(Default)]
pub(crate) struct Pace {
    /// The mark when the background began to fill up; 0 where it does not.
    filled_from_bytes: AtomicU64,
    ahead_bytes: AtomicU64,
    /// The region's length when it could not grow last; 0 before that. Each attempt keeps writers waiting that ask for a growth themselves.
    refused_at_bytes: AtomicU64,
}

impl Pace {
    /// After a step of the background, which has more to do or not.
    fn note(&self, mark_bytes: u64, is_more: bool) {
        let from_bytes = self.filled_from_bytes.load(Ordering::Relaxed);
        let began_bytes = if from_bytes == 0 { mark_bytes } else { from_bytes };
        // Another thread's step may have begun later, and ended earlier: nothing was taken since.
        let wanted_bytes = mark_bytes.saturating_sub(began_bytes) * PACE_FACTOR;
        let kept_bytes = self.ahead_bytes.load(Ordering::Relaxed) / if is_more { 1 } else { 2 };
        if is_more || from_bytes != 0 {
            self.ahead_bytes.store(wanted_bytes.max(kept_bytes), Ordering::Relaxed);
        }
        self.filled_from_bytes.store(if is_more { began_bytes } else { 0 }, Ordering::Relaxed);
    }
}

/// By how much the background grows a region that has so much spare and lacks so much. The kernel may wait for each growth as long as
/// for a large one, for another processor that has something else to do; what is spare is there for writers meanwhile.
fn growth_bytes(spare_bytes: u64, lacking_bytes: u64) -> u64 {
    let whole_steps = spare_bytes / SPARE_SHARE / GROWTH_BYTES;
    whole_steps.clamp(1, lacking_bytes.div_ceil(GROWTH_BYTES)) * GROWTH_BYTES
}

impl<D: Dram> Heap<D> {
    /// Spare space that [`Heap::prepare`] should be asked for. None in a journaled region shorter than its first growth: a small store
    /// stays small, and its writer grows the region once (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`).
    pub fn ahead_bytes(&self) -> u64 {
        if self.region.len_bytes() < GROWTH_BYTES && self.region.has_features(FEATURE_JOURNAL) {
            return 0;
        }
        let footprint_bytes = self.footprint_bytes();
        let of_pace = self.pace.ahead_bytes.load(Ordering::Relaxed).min(footprint_bytes / AHEAD_SHARE_QUICK);
        (footprint_bytes / AHEAD_SHARE).max(of_pace).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX)
    }

    /// True while a writer may soon meet the end of what is ready.
    #[inline(always)]
    pub fn runs_low(&self) -> bool {
        self.runs_low.load(Ordering::Relaxed)
    }

    /// Notes lengths that changed, of the space that the caller has locked: every writer asks what follows from them.
    pub(crate) fn note(&self, space: &Space) {
        self.figures.note(space);
        self.runs_low.store(self.spare_bytes() < self.ahead_bytes() / 4 * 3, Ordering::Relaxed);
    }

    /// Bytes that new chunks can have without growth: free runs, and what lies above the mark.
    pub fn spare_bytes(&self) -> u64 {
        // The mark first: it never passes a length that is read after it.
        let mark_bytes = self.mark_bytes();
        self.region.len_bytes() - mark_bytes + self.figures.run_units() * UNIT_BYTES
    }

    /// Takes one step towards `ahead_bytes` of spare space with pages that do not fault: up to 2 MiB of pages, or, when
    /// all there are can be used, growth. True while there is more to do: not where the region cannot grow, which is not tried again before a
    /// writer's own growth, or holes above the mark cannot be filled, for whatever reason. Writers are told of that, and what else the background does may make room.
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

    /// True if there were pages to prepare. As far as there are free runs nothing above the mark is needed.
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

    /// Where an engine lets several threads take steps: one has read the mark, and another begins to fill up before it is noted.
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
