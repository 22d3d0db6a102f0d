//! Scans by pages of the tree: a scan's cursor stores one page.

use std::ops::Bound;

use engine::{Direction, ScanCursor};
use index::bplus_tree::{self, Page};

/// A cursor whose last step read a page.
pub(super) trait Paged {
    /// Returns the page.
    fn page(&self) -> &Page;
    /// Continues at the first key after the page; returns false if there is none.
    fn follow_page(&mut self) -> bool;
    /// Returns true if `key` comes before `other` in the scan.
    fn comes_before(&self, key: &[u8], other: &[u8]) -> bool;
    /// Returns the range of keys that the page covers: from where it was read to where the next page begins.
    fn page_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl Paged for ScanCursor {
    fn page(&self) -> &Page {
        self.state().expect("a page was read")
    }

    fn follow_page(&mut self) -> bool {
        self.continue_at_state(Page::next)
    }

    fn comes_before(&self, key: &[u8], other: &[u8]) -> bool {
        if self.is_backward() { key > other } else { key < other }
    }

    fn page_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let end = self.page().next().map_or(Bound::Unbounded, complement);
        if self.is_backward() { (end, self.from()) } else { (self.from(), end) }
    }
}

/// Returns the end of a page, from the begin of the next one.
fn complement(bound: Bound<&[u8]>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Excluded(key),
        Bound::Excluded(key) => Bound::Included(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Returns the direction in the tree's form.
pub(super) fn way(direction: Direction) -> bplus_tree::Direction {
    match direction {
        Direction::Forward => bplus_tree::Direction::Forward,
        Direction::Backward => bplus_tree::Direction::Backward,
    }
}
