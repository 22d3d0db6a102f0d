//! Growth: a region gets longer without moving, and its new space is allocated.
//!
//! New space is not used until the region's length covers it, so every step can be undone:
//! 1. the file gets its new length;
//! 2. the new piece is mapped behind the old ones;
//! 3. huge pages are made, if they are quickly available ([`Attempts`]);
//! 4. space is allocated for all of the piece, or the file system is full;
//! 5. if stores survive a power loss, the file's length is made durable;
//! 6. the region's length is published.
//!
//! A crash before step 6 leaves a longer file with holes at its end, which are filled before any use (`holes`).

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pmem::{Durability, MediumError, Span};
use rustix::io::Errno;
use rustix::mm::Advice;

use crate::Mapped;
use crate::error::growth_error;
use crate::huge::{self, Attempts};

impl Mapped {
    /// See [`pmem::Space::grow`].
    pub(crate) fn grow_to(&self, to_bytes: u64) -> Result<(), MediumError> {
        if !self.writable {
            return Err(MediumError::ReadOnly);
        }
        // A forked child has neither the region nor the right to change the file.
        if !self.in_owner() {
            return Err(MediumError::Os { errno: Errno::CHILD.raw_os_error() });
        }
        let mut attempts = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let from_bytes = self.len_bytes.load(Ordering::Relaxed);
        if to_bytes <= from_bytes {
            return Ok(());
        }
        let limit_bytes = self.limit_bytes();
        let len_bytes = to_bytes.checked_next_multiple_of(self.backing.page_bytes()).filter(|&len| len <= limit_bytes);
        let len_bytes = len_bytes.ok_or(MediumError::Limit { wanted_bytes: to_bytes, limit_bytes })?;
        if !self.addresses.reach(len_bytes) {
            return Err(MediumError::Limit { wanted_bytes: to_bytes, limit_bytes: self.addresses.len_bytes() });
        }
        self.extend(from_bytes..len_bytes, &mut attempts).map_err(|errno| growth_error(errno, len_bytes))?;
        self.len_bytes.store(len_bytes, Ordering::Release);
        self.writable_bytes.store(len_bytes, Ordering::Release);
        Ok(())
    }

    /// Steps 1 to 5 for `piece`; undone if one fails.
    fn extend(&self, piece: Range<u64>, attempts: &mut Attempts) -> Result<(), Errno> {
        let extended = self.backing.set_len(piece.end).and_then(|()| {
            self.addresses.map(self.backing.fd(), piece.clone(), self.access, self.sharing)?;
            self.take_space(piece.clone(), attempts)
        });
        extended.inspect_err(|_| self.undo(piece))
    }

    /// Steps 3 to 5 for `piece`, which is mapped.
    pub(crate) fn take_space(&self, piece: Range<u64>, attempts: &mut Attempts) -> Result<(), Errno> {
        let small_pages_of =
            self.huge_page_bytes.filter(|&page_bytes| !self.put_together(piece.clone(), page_bytes, attempts));
        let start = Instant::now();
        self.backing.allocate(piece.clone())?;
        if let Some(page_bytes) = small_pages_of {
            self.small_pages.extend(piece.clone());
            attempts.took_without(start.elapsed(), huge::page_count(piece, page_bytes));
        }
        match self.durability {
            Durability::Power => self.backing.sync(),
            Durability::Process | Durability::Buffered => Ok(()),
        }
    }

    /// Requests huge pages, now and (by the kernel's own daemon) later. A refusal costs only speed, and lack of
    /// space is detected in step 4. Returns false if this growth is left out.
    fn put_together(&self, piece: Range<u64>, page_bytes: u64, attempts: &mut Attempts) -> bool {
        let _ = self.addresses.advise(piece.clone(), Advice::LinuxHugepage);
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

    /// Removes `piece`, which no other thread uses yet. If that also fails, the file stays longer, as after a
    /// crash; the caller reports the original error.
    fn undo(&self, piece: Range<u64>) {
        let from_bytes = piece.start;
        // SAFETY: the region's length does not cover the piece, so no code uses it.
        let _ = unsafe { self.addresses.unmap(piece) };
        let _ = self.backing.set_len(from_bytes);
    }

    /// See [`pmem::Residency::populate`]: populates the pages that `span` touches inside the region. If there are
    /// none left, the kernel returns an error, never a signal.
    pub(crate) fn populate_pages(&self, span: Span) {
        let region_bytes = self.len_bytes.load(Ordering::Acquire);
        let pages = pages_touched(span, region_bytes, self.backing.page_bytes());
        if self.writable && self.in_owner() && !pages.is_empty() {
            let _ = self.addresses.advise(pages, Advice::LinuxPopulateWrite);
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
