//! Scans: one page at a time, of one leaf or a part of it. No lock is held between two pages: the next page begins
//! where the last one ended. Every key is shown with the value that it had at some time during the scan, in order, at
//! most once.
//!
//! A scan remembers its position (`place.rs`), so the next page rarely needs a descent from the root.

mod page;
mod place;
mod visit;

use core::ops::Bound;

use pmem::{Dram, Medium};

use crate::Error;
use crate::read::Reader;
pub use page::{Direction, Ended, Page};
use place::Position;
use visit::Visit;

/// The state of a scan.
pub struct Scan<'t, M: Medium, D: Dram> {
    reader: &'t Reader<M, D>,
    direction: Direction,
    position: Position<'t, M, D>,
}

impl<'t, M: Medium, D: Dram> Scan<'t, M, D> {
    /// Begins at no position: the first page searches for its start.
    pub(crate) fn new(reader: &'t Reader<M, D>, direction: Direction) -> Scan<'t, M, D> {
        Scan { reader, direction, position: Position::new(reader.nodes(), direction) }
    }

    /// Passes up to `items_max` items of one leaf to `page`, starting at `from`: for every page but the first, the
    /// end of the page before. The items are durable when this returns.
    ///
    /// # Errors
    /// As for [`Tree::scan`](crate::Tree::scan).
    ///
    /// # Panics
    /// If `items_max` is 0.
    pub fn page(&mut self, from: Bound<&[u8]>, items_max: usize, page: &mut impl Page) -> Result<Ended, Error> {
        assert!(items_max > 0, "a page of nothing would be one for ever");
        let (leaf, within) = self.position.find(from, page)?;
        let mut visit = Visit { reader: self.reader, leaf: &leaf, next: self.position.next_leaf_mut(), page };
        let shown = visit.run(self.direction, within, items_max);
        // Pairs that a damaged pair keeps from being shown must not be skipped.
        let rest = shown.inspect_err(|_| self.position.forget_parent())?;
        let ended = self.position.keep(&leaf, rest);
        self.reader.settled(leaf)?;
        Ok(ended)
    }
}
