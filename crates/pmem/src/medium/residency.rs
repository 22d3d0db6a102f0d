//! Residency: the bytes of the region that are in memory, and those that were lost.

use core::sync::atomic::Ordering;
use core::time::Duration;

use crate::{Bytes, MediumError, Offset, Span, arch};

/// Memory that is filled while it is used: bytes that are present, on their way, or unreadable. Mapped memory is
/// always present and uses the defaults.
pub trait Residency: Bytes {
    /// Returns an error if part of the region could not be read and is lost: words there read as zeros without
    /// meaning. A reader that concludes from words that something is *absent* calls this first.
    ///
    /// # Errors
    /// [`MediumError::Unreadable`].
    #[inline(always)]
    fn check_lost_ranges(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// Prepares pages so that later stores to `span` do not fault. A hint.
    fn populate(&self, _span: Span) {}

    /// Merges small pages of the region into a huge page. Returns the time to pause before the next call, or `None`
    /// if no small pages are left. Changes no byte, and other threads read and write other pages at the same time.
    /// For idle times.
    fn collapse_pages(&self) -> Option<Duration> {
        None
    }

    /// Prefetches lines that [`Bytes::stream`] is about to write, if it writes through the cache. A hint.
    #[inline(always)]
    fn prefetch_for_stream(&self, _span: Span) {}

    /// Like [`Bytes::load`] with `Relaxed`, for a caller that reads only this word: a medium whose memory is not
    /// yet filled need not fill it there.
    #[inline(always)]
    fn peek(&self, at: Offset) -> u64 {
        self.load(at, Ordering::Relaxed)
    }

    /// Prepares a read of `span`. A hint: if memory is not yet filled, it is filled there early.
    #[inline(always)]
    fn prefetch(&self, _span: Span) {}

    /// Prepares a [`Residency::peek`] at `at`. A hint. Any offset is valid.
    #[inline(always)]
    fn prefetch_peek(&self, _at: Offset) {}

    /// Runs `operate`, which uses bytes of the region, so that they stay in memory until it returns. Every user of
    /// [`Bytes::bytes`] that holds no pin (crate `epoch`) needs it: a medium that evicts pages keeps pages for good
    /// that are used without either. Calls nest.
    #[inline(always)]
    fn held<R>(&self, operate: impl FnOnce() -> R) -> R
    where
        Self: Sized,
    {
        operate()
    }

    /// Runs `operate`, which reads much of the region and will not read it again soon: a medium that evicts pages
    /// evicts those first that `operate` loads. Calls nest.
    #[inline(always)]
    fn once<R>(&self, operate: impl FnOnce() -> R) -> R
    where
        Self: Sized,
    {
        operate()
    }

    /// Notes whether `span` is a part of an index, which most operations read: a medium that evicts pages evicts them
    /// later than other pages. A hint.
    fn prefer(&self, _span: Span, _is_index: bool) {}

    /// Returns true if the medium evicts pages, so that the region may be larger than memory.
    #[inline(always)]
    fn evicts(&self) -> bool {
        false
    }

    /// Returns true if most of `span` is in memory at this moment.
    fn is_resident(&self, _span: Span) -> bool {
        true
    }

    /// Requests that `span` is read, by another thread and soon, because the caller will need it after other spans that
    /// it requests. A hint, for a medium that evicts pages. Any span is allowed.
    fn request(&self, _span: Span) {}

    /// Gives up the content of `span`, which is undefined from then on until it is stored to: whole pages of it that
    /// are not in memory need not be read. Bytes outside the span stay as they are.
    ///
    /// # Safety
    /// Only the caller uses the span: no reference into it lives, and no other thread accesses it.
    unsafe fn overwrite(&self, _span: Span) {}

    /// Prefetches the line of `at`. Any offset is valid: a wrong one costs only time.
    #[inline(always)]
    fn prefetch_line(&self, at: Offset) {
        arch::prefetch(self.base().as_ptr().wrapping_add(at.0 as usize));
    }
}
