//! Growth: a region gets longer without moving, and its new space is allocated.
//!
//! New space is not used until the region's length covers it, so every step can be undone:
//! 1. the file gets its new length;
//! 2. the new piece is mapped behind the old ones, together with addresses for later pieces;
//! 3. huge pages are made, if they are quickly available ([`Attempts`]);
//! 4. space is allocated for all of the piece, or the file system is full;
//! 5. if stores survive a power loss, the file's length is made durable;
//! 6. the region's length is published.
//!
//! A crash before step 6 leaves a longer file with holes at its end, which are filled before any use (`holes`).
//!
//! # Growth ahead of writers
//! Step 3 may wait for every processor, for milliseconds if they are busy. The background takes steps 1 to 3 in advance
//! ([`pmem::Space::prepare_growth`]), and holds no lock during step 3. A writer that needs space in that time takes
//! steps 4 to 6 with small pages: it has nothing to map, which would wait for the kernel's lock of all mappings. The
//! kernel lets both work on one piece: a page that one of them allocated is used, or moved, by the other.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use pmem::{Durability, MediumError, Span};
use rustix::io::Errno;
use rustix::mm::Advice;

use crate::Mapped;
use crate::durability::Kind;
use crate::error::growth_error;
use crate::huge::{self, Attempts};

/// On tmpfs, addresses are mapped in steps of this length, beyond the file's end: no code accesses them before the
/// region's length covers them.
const MAP_BYTES: u64 = 64 << 20;

/// Pages are populated in pieces of this length. In between, a thread that waits for the kernel's lock of all mappings
/// gets it: an allocator changes mappings now and then.
const POPULATE_BYTES: u64 = 64 << 10;

/// The pages of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Pages {
    /// Small, because this growth was left out.
    #[default]
    LeftOut,
    /// A thread is making huge pages of them.
    Requested,
    /// Huge, as far as the kernel had any.
    Made,
}

/// The state of growth.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    attempts: Attempts,
    /// The end of the file and of the mapped addresses, if they were moved beyond the region's end.
    file_bytes: u64,
    mapped_bytes: u64,
    /// The end of the piece for which step 3 was taken in advance, and its pages.
    prepared_bytes: u64,
    pages: Pages,
}

impl Mapped {
    /// See [`pmem::Space::prepare_growth`].
    pub(crate) fn prepare_growth_to(&self, to_bytes: u64) {
        let Some(page_bytes) = self.huge_page_bytes.filter(|_| self.writable && self.in_owner()) else { return };
        let Some(piece) = self.begin_huge_pages(to_bytes, page_bytes) else { return };
        let start = Instant::now();
        // Small pages work as well.
        let _ = self.addresses.collapse(huge::whole_pages(piece.clone(), page_bytes));
        let mut growing = self.growing();
        growing.attempts.took(start.elapsed(), huge::page_count(piece.clone(), page_bytes));
        if growing.prepared_bytes == piece.end {
            growing.pages = Pages::Made;
        }
    }

    /// Takes steps 1 and 2 in advance, and returns the piece for step 3; `None` if it is not to be taken.
    fn begin_huge_pages(&self, to_bytes: u64, page_bytes: u64) -> Option<Range<u64>> {
        let mut growing = self.growing();
        let from_bytes = self.len_bytes.load(Ordering::Relaxed);
        let end = self.target_of(to_bytes).ok()?;
        let piece = from_bytes.max(growing.prepared_bytes)..end;
        if piece.is_empty() || growing.pages == Pages::Requested && growing.prepared_bytes > from_bytes {
            return None;
        }
        let is_due = growing.attempts.is_due();
        let is_begun =
            is_due && self.lengthen(&mut growing, end).is_ok() && self.backing.seed(piece.clone(), page_bytes).is_ok();
        growing.prepared_bytes = if is_begun || !is_due { end } else { growing.prepared_bytes };
        growing.pages = if is_begun { Pages::Requested } else { Pages::LeftOut };
        is_begun.then_some(piece)
    }

    fn growing(&self) -> MutexGuard<'_, Growing> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`pmem::Space::grow`].
    pub(crate) fn grow_to(&self, to_bytes: u64) -> Result<(), MediumError> {
        if !self.writable {
            return Err(MediumError::ReadOnly);
        }
        // A forked child has neither the region nor the right to change the file.
        if !self.in_owner() {
            return Err(MediumError::Os { errno: Errno::CHILD.raw_os_error() });
        }
        let mut growing = self.growing();
        let from_bytes = self.len_bytes.load(Ordering::Relaxed);
        if to_bytes <= from_bytes {
            return Ok(());
        }
        let len_bytes = self.target_of(to_bytes)?;
        self.extend(from_bytes..len_bytes, &mut growing).map_err(|errno| growth_error(errno, len_bytes))?;
        self.len_bytes.store(len_bytes, Ordering::Release);
        self.writable_bytes.store(len_bytes, Ordering::Release);
        Ok(())
    }

    /// Returns the length of a region that grows to `to_bytes`, for which there are addresses.
    fn target_of(&self, to_bytes: u64) -> Result<u64, MediumError> {
        let limit_bytes = self.limit_bytes();
        let len_bytes = to_bytes.checked_next_multiple_of(self.backing.page_bytes()).filter(|&len| len <= limit_bytes);
        let len_bytes = len_bytes.ok_or(MediumError::Limit { wanted_bytes: to_bytes, limit_bytes })?;
        if !self.addresses.reach(len_bytes) {
            return Err(MediumError::Limit { wanted_bytes: to_bytes, limit_bytes: self.addresses.len_bytes() });
        }
        Ok(len_bytes)
    }

    /// Steps 1 to 5 for `piece`; undone if one fails.
    fn extend(&self, piece: Range<u64>, growing: &mut Growing) -> Result<(), Errno> {
        let extended = self.lengthen(growing, piece.end).and_then(|()| self.take_space(piece.clone(), growing));
        extended.inspect_err(|_| {
            // The addresses stay mapped. If the file stays longer, that is as after a crash; the caller reports the
            // original error.
            let _ = self.backing.set_len(piece.start);
            (growing.file_bytes, growing.prepared_bytes) = (0, 0);
        })
    }

    /// Steps 1 and 2, as far as they were not taken in advance.
    fn lengthen(&self, growing: &mut Growing, end: u64) -> Result<(), Errno> {
        if growing.file_bytes < end {
            self.backing.set_len(end)?;
            growing.file_bytes = end;
        }
        let mapped_bytes = growing.mapped_bytes.max(self.len_bytes.load(Ordering::Relaxed));
        if mapped_bytes < end {
            // Elsewhere a mapping may lengthen the file, as on hugetlbfs.
            let step_bytes = if self.kind == Kind::Tmpfs { MAP_BYTES } else { 1 };
            let longest = self.limit_bytes().min(self.addresses.len_bytes());
            let past = end.next_multiple_of(step_bytes).min(longest).max(end);
            self.addresses.map(self.backing.fd(), mapped_bytes..past, self.access, self.sharing)?;
            growing.mapped_bytes = past;
            self.allow_huge_pages(mapped_bytes..past);
        }
        Ok(())
    }

    /// Lets the kernel's own daemon make huge pages later. A refusal costs only speed.
    pub(crate) fn allow_huge_pages(&self, range: Range<u64>) {
        if self.huge_page_bytes.is_some() {
            let _ = self.addresses.advise(range, Advice::LinuxHugepage);
        }
    }

    /// Steps 3 to 5 for `piece`, which is mapped.
    pub(crate) fn take_space(&self, piece: Range<u64>, growing: &mut Growing) -> Result<(), Errno> {
        let pages = self.huge_page_bytes.map(|page_bytes| (page_bytes, self.pages_of(&piece, page_bytes, growing)));
        let start = Instant::now();
        self.backing.allocate(piece.clone())?;
        if let Some((page_bytes, pages)) = pages.filter(|(_, pages)| *pages != Pages::Made) {
            self.small_pages.extend(piece.clone());
            if pages == Pages::LeftOut {
                growing.attempts.took_without(start.elapsed(), huge::page_count(piece, page_bytes));
            }
        }
        match self.durability {
            Durability::Power => self.backing.sync(),
            Durability::Process | Durability::Buffered => Ok(()),
        }
    }

    /// Step 3 for `piece`, unless it was taken in advance or another thread is taking it.
    fn pages_of(&self, piece: &Range<u64>, page_bytes: u64, growing: &mut Growing) -> Pages {
        let is_prepared = piece.end <= growing.prepared_bytes;
        if is_prepared || growing.pages == Pages::Requested && piece.start < growing.prepared_bytes {
            return growing.pages;
        }
        let piece = piece.start.max(growing.prepared_bytes)..piece.end;
        if self.put_together(piece, page_bytes, &mut growing.attempts) { Pages::Made } else { Pages::LeftOut }
    }

    /// Requests huge pages. A refusal costs only speed, and lack of space is detected in step 4. Returns false if this
    /// growth is left out.
    fn put_together(&self, piece: Range<u64>, page_bytes: u64, attempts: &mut Attempts) -> bool {
        if !attempts.is_due() {
            return false;
        }
        if self.backing.seed(piece.clone(), page_bytes).is_ok() {
            let start = Instant::now();
            // Small pages work as well.
            let _ = self.addresses.collapse(huge::whole_pages(piece.clone(), page_bytes));
            attempts.took(start.elapsed(), huge::page_count(piece, page_bytes));
        }
        true
    }

    /// See [`pmem::Residency::populate`]: populates the pages that `span` touches inside the region. If there are
    /// none left, the kernel returns an error, never a signal.
    pub(crate) fn populate_pages(&self, span: Span) {
        let region_bytes = self.len_bytes.load(Ordering::Acquire);
        let pages = pages_touched(span, region_bytes, self.backing.page_bytes());
        if !self.writable || !self.in_owner() {
            return;
        }
        for start in pages.clone().step_by(POPULATE_BYTES as usize) {
            let piece = start..pages.end.min(start + POPULATE_BYTES);
            let _ = self.addresses.advise(piece, Advice::LinuxPopulateWrite);
        }
    }
}

/// Returns the pages that are completely in `span` and in the region; empty if there are none.
pub(crate) fn pages_within(span: Span, region_bytes: u64, page_bytes: u64) -> Range<u64> {
    let end = span.end().unwrap_or(u64::MAX).min(region_bytes);
    let (start, end) = (span.start.0.checked_next_multiple_of(page_bytes).unwrap_or(end), end - end % page_bytes);
    if start < end { start..end } else { 0..0 }
}

/// Returns the pages that hold bytes of `span` and of the region; empty if there are none.
pub(crate) fn pages_touched(span: Span, region_bytes: u64, page_bytes: u64) -> Range<u64> {
    let end = span.end().unwrap_or(u64::MAX).min(region_bytes);
    if span.start.0 >= end {
        return 0..0;
    }
    span.start.0 - span.start.0 % page_bytes..end.next_multiple_of(page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::Offset;

    #[test]
    fn pages_are_exactly_those_touched() {
        const PAGE: u64 = 4096;
        const REGION: u64 = 4 * PAGE;
        let edges = [0, 1, PAGE - 1, PAGE, PAGE + 1, REGION - 1, REGION, REGION + 1];
        for start in edges {
            for len_bytes in edges {
                let pages = pages_touched(Offset(start).span(len_bytes), REGION, PAGE);
                let touched = (start..(start + len_bytes).min(REGION)).map(|byte| byte / PAGE);
                let mut expected: Vec<u64> = touched.collect();
                expected.dedup();
                assert!(pages.step_by(PAGE as usize).map(|at| at / PAGE).eq(expected), "{len_bytes} at {start}");
            }
        }
        assert!(pages_touched(Offset(1).span(u64::MAX), REGION, PAGE) == (0..REGION));
    }
}
