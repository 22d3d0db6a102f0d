//! Pages of the region that have entries in the log and may be out of date in the base.
//!
//! A page is marked under the buffer's lock, together with its entry. So a checkpoint that takes the marks under
//! that lock has the pages of every entry that was appended before.

use std::iter;
use std::ops::Range;

use crate::region::PAGE_BYTES;

/// One bit per page.
#[derive(Debug, Default)]
pub(crate) struct DirtyPages(Vec<u64>);

impl DirtyPages {
    /// Marks the pages of `len_bytes` at `at`.
    #[inline(always)]
    pub(crate) fn mark(&mut self, at: u64, len_bytes: u64) {
        for page in at / PAGE_BYTES..(at + len_bytes).div_ceil(PAGE_BYTES) {
            let word = (page / u64::from(u64::BITS)) as usize;
            if word >= self.0.len() {
                self.lengthen(word);
            }
            self.0[word] |= 1 << (page % u64::from(u64::BITS));
        }
    }

    #[cold]
    fn lengthen(&mut self, word: usize) {
        self.0.resize((word + 1).next_power_of_two(), 0);
    }

    /// Returns the length of all marked pages.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() * PAGE_BYTES
    }

    /// Unmarks all pages.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Returns the marked pages in order, adjacent ones together, up to `run_bytes_max`.
    pub(crate) fn runs(&self, run_bytes_max: u64) -> impl Iterator<Item = Range<u64>> {
        let mut starts = self.pages().map(|page| page * PAGE_BYTES).peekable();
        iter::from_fn(move || {
            let start = starts.next()?;
            let mut end = start + PAGE_BYTES;
            while end - start < run_bytes_max && starts.next_if_eq(&end).is_some() {
                end += PAGE_BYTES;
            }
            Some(start..end)
        })
    }

    fn pages(&self) -> impl Iterator<Item = u64> {
        (0..).step_by(u64::BITS as usize).zip(&self.0).flat_map(|(first, &word)| {
            let lowest = |bits: u64| (bits != 0).then_some(bits);
            iter::successors(lowest(word), move |bits| lowest(bits & (bits - 1)))
                .map(move |bits| first + u64::from(bits.trailing_zeros()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_marked_pages_within_limit() {
        let mut dirty = DirtyPages::default();
        for (at, len_bytes) in [(5, 8), (4_095, 2), (63 * 4_096, 3 * 4_096), (70 * 4_096 + 9, 0), (1_000 * 4_096, 1)] {
            dirty.mark(at, len_bytes);
        }
        let pages =
            |runs: Vec<Range<u64>>| runs.iter().map(|run| run.start / 4_096..run.end / 4_096).collect::<Vec<_>>();
        assert_eq!(pages(dirty.runs(u64::MAX).collect()), [0..2, 63..66, 70..71, 1_000..1_001]);
        assert_eq!(pages(dirty.runs(2 * 4_096).collect()), [0..2, 63..65, 65..66, 70..71, 1_000..1_001]);
        dirty.clear();
        assert_eq!(dirty.runs(u64::MAX).count(), 0);
    }
}
