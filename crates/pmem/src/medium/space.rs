//! The space that a region uses.

use crate::{Bytes, MediumError, Span};

/// Growth of the region, and freeing and allocating space within it.
pub trait Space: Bytes {
    /// Makes the region at least `to_bytes` long; new bytes are zero. The region does not move.
    ///
    /// # Errors
    /// [`MediumError::Full`] or [`MediumError::Limit`], and nothing has changed.
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError>;

    /// Does the slow work of a growth to `to_bytes`, ahead of [`Space::grow`], which need not follow. Other threads
    /// may grow the region in the same time, and do not wait for this one.
    fn prepare_growth(&self, _to_bytes: u64) {}

    /// Frees the space of the complete pages within `span`. Returns the number of bytes, 0 if the medium cannot.
    /// The content of the pages is undefined from then on, for loads and after a crash. Ordered like a flush:
    /// everything ordered before is durable before it. Not itself durable: after a crash the space may still be
    /// allocated, or allocated again.
    ///
    /// # Safety
    /// Only the caller uses the span: no reference into it lives and no other thread accesses it. No thread stores
    /// to those pages before [`Space::allocate`] has allocated space for them, in this process or a later one.
    unsafe fn discard(&self, _span: Span) -> u64 {
        0
    }

    /// Allocates space for all pages that `span` touches and that have none, so that stores to them do not fail.
    /// Existing bytes stay.
    ///
    /// # Errors
    /// [`MediumError::Full`]; nothing that matters has changed then.
    fn allocate(&self, _span: Span) -> Result<(), MediumError> {
        Ok(())
    }

    /// Returns the space that the region uses, without holes, if the medium can determine it.
    fn allocated_bytes(&self) -> Option<u64> {
        None
    }
}
