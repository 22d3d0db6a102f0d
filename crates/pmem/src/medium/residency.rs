//! Which bytes of the region are in memory, and which were lost on the way there.

use core::sync::atomic::Ordering;
use core::time::Duration;

use crate::{Bytes, MediumError, Offset, Span, arch};

/// Memory that is filled while it is used: what is there, what is on its way, what could not be read. Mapped memory has all of it,
/// and takes the defaults.
pub trait Residency: Bytes {
    /// An error where part of the region could not be read and is lost: words there read as zeros that mean nothing. A reader that
    /// concludes from words that something is *not* there asks this first.
    ///
    /// # Errors
    /// [`MediumError::Unreadable`].
    #[inline(always)]
    fn check_lost_ranges(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// Prepares pages so that later stores to `span` do not fault. A hint.
    fn populate(&self, _span: Span) {}

    /// Puts small pages of the region together into a huge one: how long to leave the others alone, or `None` when none is left. No byte
    /// changes, and others read and write meanwhile, but not there. For idle times.
    fn collapse_pages(&self) -> Option<Duration> {
        None
    }

    /// Asks the cache for lines that [`Bytes::stream`] is going to write, if it writes through the cache. A hint.
    #[inline(always)]
    fn prefetch_for_stream(&self, _span: Span) {}

    /// As [`Bytes::load`] with `Relaxed`, for a caller that does not look at the word's neighbours: a medium whose memory is still
    /// to be filled need not fill it there.
    #[inline(always)]
    fn peek(&self, at: Offset) -> u64 {
        self.load(at, Ordering::Relaxed)
    }

    /// `span` is about to be read. A hint: where memory is still to be filled it is filled there early.
    #[inline(always)]
    fn prefetch(&self, _span: Span) {}

    /// `at` is about to be peeked at. A hint. Any offset will do.
    #[inline(always)]
    fn prefetch_peek(&self, _at: Offset) {}

    /// Asks the cache for the line of `at`. Any offset will do: a wrong one costs time only.
    #[inline(always)]
    fn prefetch_line(&self, at: Offset) {
        arch::prefetch(self.base().as_ptr().wrapping_add(at.0 as usize));
    }
}
