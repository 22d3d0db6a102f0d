//! A page, the unit that a scan reads: the items of one leaf.

use std::ops::Bound;

use crate::Position;

/// The direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// The items of one leaf in the order of the scan, and the end of the leaf. A scan reuses one page for all its
/// reads.
///
/// The positions are valid while the reader stays pinned. The end outlives the pin.
#[derive(Debug, Default)]
pub struct Page {
    pub(super) positions: Vec<Position>,
    pub(super) fence: Vec<u8>,
    pub(super) has_more: bool,
    pub(super) is_backward: bool,
}

impl Page {
    /// Returns the items, in the order of the scan. The result may be empty although other items follow.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// Returns the bound from which to read the next page, or `None` if this was the last one.
    #[must_use]
    pub fn next(&self) -> Option<Bound<&[u8]>> {
        self.end().map(|end| if self.is_backward { Bound::Excluded(end) } else { Bound::Included(end) })
    }

    /// Returns the end of the leaf in the direction of the scan, or `None` if this was the last page.
    #[must_use]
    pub fn end(&self) -> Option<&[u8]> {
        self.has_more.then_some(&self.fence)
    }
}
