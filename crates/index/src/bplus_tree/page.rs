//! What a scan reads at a time: one leaf's worth.

use std::ops::Bound;

use crate::Position;

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// One leaf's items in the order of the scan, and where the leaf ends: reused from one to the next.
///
/// The positions are good for as long as the reader stays pinned; the end outlives the pin.
#[derive(Debug, Default)]
pub struct Page {
    pub(super) positions: Vec<Position>,
    pub(super) fence: Vec<u8>,
    pub(super) has_more: bool,
    pub(super) is_backward: bool,
}

impl Page {
    /// The items, in the order of the scan. May be empty although others follow.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// Where to read the next page from, or `None` where this was the last one.
    #[must_use]
    pub fn next(&self) -> Option<Bound<&[u8]>> {
        self.end().map(|end| if self.is_backward { Bound::Excluded(end) } else { Bound::Included(end) })
    }

    /// Where the leaf ends on the side that the scan goes to, or `None` where this was the last page.
    #[must_use]
    pub fn end(&self) -> Option<&[u8]> {
        self.has_more.then_some(&self.fence)
    }
}
