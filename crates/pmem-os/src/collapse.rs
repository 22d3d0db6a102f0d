//! Merges small pages of a region on tmpfs into huge pages when there is time: pages of growths that were left out
//! (`Attempts`), and all pages of a file that was written by another program, such as a copy.
//!
//! No byte changes, so a crash has no effect. Pages with holes are not merged, because that would allocate space
//! for the holes. A hole that is made at the same moment may be filled; it is freed with the next hole there.
//!
//! Lock order: the remaining range is locked below a growth's lock, and not while the kernel works.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::Mapped;

/// Pause after merging pages, as a multiple of the time that it took. Threads that access the page at the same time
/// wait, and a virtual machine's memory may take milliseconds.
const REST_FACTOR: u32 = 9;

/// Time spent before a pause on pages that are already huge, or have a hole; they take microseconds each. The
/// background pauses for longer between two calls.
const PIECE: Duration = Duration::from_micros(200);

/// The range of the region that may still have small pages.
#[derive(Debug, Default)]
pub(crate) struct SmallPages {
    left: Mutex<Range<u64>>,
    /// Number of holes made so far.
    hole_count: AtomicU64,
    /// A hole count and an offset: at that count, there was no hole from the page that was checked up to the
    /// offset. Its lock is held alone, also while the kernel searches.
    whole: Mutex<(u64, u64)>,
    /// Its lock is also held alone.
    rests_until: Mutex<Option<Instant>>,
}

impl SmallPages {
    /// Adds `piece`, which is behind the present range, to the range with small pages.
    pub(crate) fn extend(&self, piece: Range<u64>) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let start = if left.is_empty() { piece.start } else { left.start };
        *left = start..piece.end;
    }

    /// Counts a new hole.
    pub(crate) fn note_hole(&self) {
        self.hole_count.fetch_add(1, Ordering::Release);
    }

    /// Returns the next complete huge page in a region of `region_bytes`; `None` if there is none.
    fn take(&self, page_bytes: u64, region_bytes: u64) -> Option<Range<u64>> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let start = left.start - left.start % page_bytes;
        let page = Some(start..start + page_bytes).filter(|page| page.end <= left.end.min(region_bytes))?;
        left.start = page.end;
        Some(page)
    }

    /// Returns the time to pause from now on, if any.
    fn rest(&self) -> Option<Duration> {
        let until = (*self.rests_until.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(until.saturating_duration_since(Instant::now())).filter(|rest| !rest.is_zero())
    }

    /// Starts a pause after work that took `time`; returns its length.
    fn rest_after(&self, time: Duration) -> Duration {
        let rest = time * REST_FACTOR;
        *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now().checked_add(rest);
        rest
    }

    fn give_up(&self) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = 0..0;
    }
}

impl Mapped {
    /// See [`pmem::Residency::collapse_pages`].
    pub(crate) fn collapse_next(&self) -> Option<Duration> {
        let page_bytes = self.huge_page_bytes.filter(|_| self.writable && self.in_owner())?;
        if let Some(rest) = self.small_pages.rest() {
            return Some(rest);
        }
        let start = Instant::now();
        while start.elapsed() < PIECE {
            self.collapse(self.small_pages.take(page_bytes, self.len_bytes.load(Ordering::Acquire))?);
        }
        Some(self.small_pages.rest_after(start.elapsed()))
    }

    fn collapse(&self, page: Range<u64>) {
        // The kernel has no huge page at hand, and making one from pages in use takes long.
        if self.is_without_holes(&page) && self.addresses.collapse(page) == Err(Errno::NOMEM) {
            self.small_pages.give_up();
        }
    }

    fn is_without_holes(&self, page: &Range<u64>) -> bool {
        let hole_count = self.small_pages.hole_count.load(Ordering::Acquire);
        let mut whole = self.small_pages.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if whole.0 != hole_count || page.end > whole.1 {
            *whole = (hole_count, self.backing.whole_until(page.start));
        }
        page.end <= whole.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collapse_rests_nine_times_the_work() {
        let (small_pages, hour) = (SmallPages::default(), Duration::from_secs(3600));
        assert_eq!(small_pages.rest(), None);
        assert_eq!(small_pages.rest_after(hour), 9 * hour);
        assert!(small_pages.rest().is_some_and(|rest| rest > 8 * hour && rest <= 9 * hour));
        small_pages.rest_after(Duration::ZERO);
        assert_eq!(small_pages.rest(), None);
    }

    #[test]
    fn each_whole_huge_page_is_taken_once() {
        const PAGE: u64 = 2 << 20;
        let small_pages = SmallPages::default();
        let taken = |region_bytes| {
            let pages = std::iter::from_fn(|| small_pages.take(PAGE, region_bytes));
            pages.map(|page| page.start / PAGE).collect::<Vec<_>>()
        };
        assert_eq!(taken(100 * PAGE), []);
        small_pages.extend(0..5 * PAGE + 4096);
        assert_eq!(taken(5 * PAGE + 4096), [0, 1, 2, 3, 4]);
        // A growth that completes the page that was begun; another one that is not published yet.
        small_pages.extend(5 * PAGE + 4096..7 * PAGE);
        assert_eq!(taken(5 * PAGE + 4096), []);
        assert_eq!(taken(7 * PAGE), [5, 6]);
        // Growths in between had huge pages.
        small_pages.extend(9 * PAGE..10 * PAGE);
        small_pages.extend(10 * PAGE..12 * PAGE);
        assert_eq!(taken(12 * PAGE), [9, 10, 11]);
    }
}
