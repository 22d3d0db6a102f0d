//! Scans: a page at a time, of one leaf or of a part of it. Between two pages nothing is held: the next one begins where the last one ended.
//! Every key is shown as it was at some time during the scan, in order, at most once.
//!
//! A scan remembers where it is (`place.rs`), so that the next page is seldom looked for from the root.

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

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards greater keys.
    Forward,
    /// Towards lesser ones.
    Backward,
}

/// Is given what a leaf has. Runs under locks, so it copies and does nothing else.
pub trait Page {
    /// A key and its value, in the scan's order.
    fn item(&mut self, key: &[u8], value: &Value<'_>);

    /// Where the leaf ends that the page is of: it has keys below `fence` only, going forward, and none below it, going backward. The last call
    /// counts, of this page or of one before.
    fn ends_at(&mut self, fence: &[u8]);
}

/// Where a page ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Behind the item that was shown last: the page was full, and the leaf may have more.
    Within,
    /// With its leaf: the next page is from `Included(fence)` going forward, from `Excluded(fence)` going backward.
    AtFence,
    /// With the last leaf.
    AtEnd,
}

/// A leaf, locked, and what of it is to be shown.
type Part<'t, M> = (Reached<'t, M>, Range<usize>);

/// A scan under way.
pub struct Scan<'t, M: Medium, D: Dram, R: Retire<M, D>> {
    tree: &'t Tree<M, D, R>,
    direction: Direction,
    /// The leaf of the last page, and its pairs that were not shown.
    leaf: Option<(Spot<'t, M>, Range<usize>)>,
    /// The leaf's parent, and the child that comes next.
    parent: Option<(Spot<'t, M>, usize)>,
    /// That child, until its lines were asked for.
    next: Option<Node<'t, M>>,
    /// Whether there are leaves behind this one.
    has_more: bool,
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Gives `page` the keys of one leaf, from `from` on; it may have none. False if that was the last leaf. What was given
    /// is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn scan(&self, from: Bound<&[u8]>, direction: Direction, page: &mut impl Page) -> Result<bool, Error> {
        Ok(self.scanning(direction).page(from, usize::MAX, page)? != Ended::AtEnd)
    }

    /// A scan of several pages.
    pub fn scanning(&self, direction: Direction) -> Scan<'_, M, D, R> {
        Scan { tree: self, direction, leaf: None, parent: None, next: None, has_more: false }
    }
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Scan<'_, M, D, R> {
    /// Gives `page` up to `items_max` items of one leaf, from `from` on, which is for all pages but the first where the one before ended. What was
    /// given is durable when this returns.
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
        // What a damaged pair keeps from being shown is not gone by.
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
