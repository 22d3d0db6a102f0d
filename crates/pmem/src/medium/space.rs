//! The room that a region takes.

use crate::{Bytes, MediumError, Span};

/// Growth of the region, and space given back and taken again within it.
pub trait Space: Bytes {
    /// Makes the region at least `to_bytes` long; new bytes are zero. The region does not move.
    ///
    /// # Errors
    /// [`MediumError::Full`] or [`MediumError::Limit`], and nothing has changed.
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError>;

    /// Gives the space of the whole pages within `span` back, where the medium can: how many bytes; 0 where it cannot. What the
    /// pages hold from then on is undefined, for loads and after a crash. Ordered as a flush is: what was ordered before is durable
    /// before it. It is not durable itself: after a crash the space may be taken still, or again.
    ///
    /// # Safety
    /// The caller alone uses the span: no reference into it lives and no other thread touches it. Nobody stores to those
    /// pages before [`Space::allocate`] has taken space for them, in this process or a later one.
    unsafe fn discard(&self, _span: Span) -> u64 {
        0
    }

    /// Takes space for all pages that `span` touches, as far as they have none: stores to them find it. Bytes that were
    /// there stay.
    ///
    /// # Errors
    /// [`MediumError::Full`], and nothing has changed that matters.
    fn allocate(&self, _span: Span) -> Result<(), MediumError> {
        Ok(())
    }

    /// The space that the region takes, holes not counted, if the medium knows.
    fn allocated_bytes(&self) -> Option<u64> {
        None
    }
}
