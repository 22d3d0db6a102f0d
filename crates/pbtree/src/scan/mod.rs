//! Scans: one page at a time, of one leaf or a part of it. No lock is held between two pages: the next page begins
//! where the last one ended. Every key is shown with the value that it had at some time during the scan, in order, at
//! most once.
//!
//! A scan remembers its position (`place.rs`), so the next page rarely needs a descent from the root.

mod place;
mod visit;

use core::ops::{Bound, Range};

use pmem::{Dram, Medium};

use crate::Error;
use crate::descent::Reached;
use crate::node::Node;
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::Value;
use place::Spot;

/// The direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards greater keys.
    Forward,
    /// Towards smaller keys.
    Backward,
}

/// Receives the contents of a leaf. Runs under locks, so it should only copy.
pub trait Page {
    /// Receives a key and its value, in the scan's order.
    fn item(&mut self, key: &[u8], value: &Value<'_>);

    /// Receives the end of the page's leaf. Going forward, all keys of the leaf are below `fence`; going backward,
    /// none is. The last call counts, for this page or an earlier one.
    fn ends_at(&mut self, fence: &[u8]);
}

/// The end of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Behind the item that was passed last: the page was full, and the leaf may have more items.
    Within,
    /// At the leaf's end: the next page is from `Included(fence)` going forward, from `Excluded(fence)` going
    /// backward.
    AtFence,
    /// At the end of the last leaf.
    AtEnd,
}

/// A locked leaf, and the range of its pairs to show.
type Part<'t, M> = (Reached<'t, M>, Range<usize>);

/// The state of a scan.
pub struct Scan<'t, M: Medium, D: Dram, R: Retire<M, D>> {
    tree: &'t Tree<M, D, R>,
    direction: Direction,
    /// The leaf of the last page, and its pairs that were not shown.
    leaf: Option<(Spot<'t, M>, Range<usize>)>,
    /// The leaf's parent, and the number of the next child.
    parent: Option<(Spot<'t, M>, usize)>,
    /// That child, until its lines were prefetched.
    next: Option<Node<'t, M>>,
    /// True if there are leaves behind this one.
    has_more: bool,
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Passes the keys of one leaf to `page`, starting at `from`; there may be none. Returns false if that was the
    /// last leaf. The items are durable when this returns.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn scan(&self, from: Bound<&[u8]>, direction: Direction, page: &mut impl Page) -> Result<bool, Error> {
        Ok(self.scanning(direction).page(from, usize::MAX, page)? != Ended::AtEnd)
    }

    /// Begins a scan of several pages.
    pub fn scanning(&self, direction: Direction) -> Scan<'_, M, D, R> {
        Scan { tree: self, direction, leaf: None, parent: None, next: None, has_more: false }
    }
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Scan<'_, M, D, R> {
    /// Passes up to `items_max` items of one leaf to `page`, starting at `from`: for every page but the first, the
    /// end of the page before. The items are durable when this returns.
    ///
    /// # Errors
    /// As for [`Tree::scan`].
    ///
    /// # Panics
    /// If `items_max` is 0.
    pub fn page(&mut self, from: Bound<&[u8]>, items_max: usize, page: &mut impl Page) -> Result<Ended, Error> {
        assert!(items_max > 0, "a page of nothing would be one for ever");
        let (leaf, within) = self.find(from, page)?;
        let shown = self.visit(&leaf, within, items_max, page);
        // Pairs that a damaged pair keeps from being shown must not be skipped.
        let rest = shown.inspect_err(|_| self.parent = None)?;
        let ended = match (rest.is_empty(), self.has_more) {
            (false, _) => Ended::Within,
            (true, true) => Ended::AtFence,
            (true, false) => Ended::AtEnd,
        };
        self.leaf = (ended == Ended::Within).then(|| (Spot::of(&leaf), rest));
        self.tree.settled(leaf)?;
        Ok(ended)
    }
}
