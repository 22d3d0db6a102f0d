//! Background work: space ahead of the mark, so that writers neither grow the region nor fault fresh pages.

use core::sync::atomic::Ordering;

use pmem::{Dram, Medium, Offset};

use crate::HeapError;
use crate::heap::Heap;
use crate::layout::UNIT_BYTES;
use crate::space::Space;

/// Pages prepared in one step: a huge page.
const POPULATE_BYTES: u64 = 2 << 20;

/// Space that the background keeps ready for new chunks, as a part of what takes space, within these bounds: the lower one keeps
/// small stores small, the upper one is a tenth of a second of the fastest writer.
const AHEAD_SHARE: u64 = 32;
const AHEAD_BYTES_MIN: u64 = 1 << 20;
const AHEAD_BYTES_MAX: u64 = 64 << 20;

impl<D: Dram> Heap<D> {
    /// Spare space that [`Heap::prepare`] should be asked for.
    pub fn ahead_bytes(&self) -> u64 {
        (self.footprint_bytes() / AHEAD_SHARE).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX)
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
    /// all there are can be used, growth. True while there is more to do.
    ///
    /// # Errors
    /// [`HeapError::Medium`] if the region cannot grow, or holes above the mark cannot be filled.
    pub fn prepare<M: Medium>(&self, medium: &M, ahead_bytes: u64) -> Result<bool, HeapError> {
        if self.populate(medium, ahead_bytes)? {
            return Ok(true);
        }
        let is_short = self.spare_bytes() < ahead_bytes;
        if is_short {
            self.region.grow(medium, self.region.len_bytes() + UNIT_BYTES)?;
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
