//! The position of a scan, and the search for the next page.
//!
//! # Remembered position
//! A scan remembers the leaf of the last page with the pairs that were not shown, and the leaf's parent with the
//! number of the next child; for both nodes also the lock's version (`locks/latch.rs`). The next page goes directly
//! there if the version is unchanged. Then no thread has changed or released the node, so it has the same keys
//! between the same separators: both are changed only under the exclusive lock. The lock may be taken whatever became
//! of the node, because locks exist as long as the tree. Otherwise the scan descends from the root.

use core::ops::{Bound, Range};

use pmem::{Dram, Medium};

use super::page::{Direction, Ended, Page};
use super::visit::{Visit, ask_for_first};
use crate::Error;
use crate::canary;
use crate::key;
use crate::locks::{Mode, NodeLock, WaitPolicy};
use crate::node::Node;
use crate::nodes::{Reached, Target};
use crate::read::Reader;

/// A locked leaf, and the range of its pairs to show.
type Part<'t, M> = (Reached<'t, M>, Range<usize>);

/// A node that a scan may return to.
struct Spot<'t, M: Medium> {
    lock: &'t NodeLock,
    node: Node<'t, M>,
    version: u64,
}

impl<'t, M: Medium> Spot<'t, M> {
    fn of(node: &Reached<'t, M>) -> Spot<'t, M> {
        Spot { lock: node.held.lock(), node: node.node, version: node.held.version() }
    }
}

/// The state of a scan.
pub struct Scan<'t, M: Medium, D: Dram> {
    reader: &'t Reader<M, D>,
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

impl<'t, M: Medium, D: Dram> Scan<'t, M, D> {
    /// Begins at no position: the first page searches for its start.
    pub(crate) fn new(reader: &'t Reader<M, D>, direction: Direction) -> Scan<'t, M, D> {
        Scan { reader, direction, leaf: None, parent: None, next: None, has_more: false }
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
        let reader = self.reader;
        reader.nodes().medium().held(|| self.visit(from, items_max, page))
    }

    fn visit(&mut self, from: Bound<&[u8]>, items_max: usize, page: &mut impl Page) -> Result<Ended, Error> {
        let (leaf, within) = self.find(from, page)?;
        let mut visit = Visit { reader: self.reader, leaf: &leaf, next: &mut self.next, page };
        let shown = visit.run(self.direction, within, items_max);
        // Pairs that a damaged pair keeps from being shown must not be skipped.
        let rest = shown.inspect_err(|_| self.parent = None)?;
        let ended = match (rest.is_empty(), self.has_more) {
            (false, _) => Ended::Within,
            (true, true) => Ended::AtFence,
            (true, false) => Ended::AtEnd,
        };
        self.leaf = (ended == Ended::Within).then(|| (Spot::of(&leaf), rest));
        self.reader.settled(leaf)?;
        Ok(ended)
    }

    /// Finds the leaf of the next page.
    fn find(&mut self, from: Bound<&[u8]>, page: &mut impl Page) -> Result<Part<'t, M>, Error> {
        if let Some(same) = self.same_leaf()? {
            return Ok(same);
        }
        match self.next_leaf(from, page)? {
            Some(next) => Ok(next),
            None => self.first_leaf(from, page),
        }
    }

    /// Returns the leaf of the page before, and the pairs that were not shown.
    fn same_leaf(&mut self) -> Result<Option<Part<'t, M>>, Error> {
        let Some((spot, rest)) = self.leaf.take() else { return Ok(None) };
        let again = self.again(&spot)?;
        if again.is_none() {
            self.parent = None;
        }
        Ok(again.map(|leaf| (leaf, rest)))
    }

    /// Finds the next leaf through the parent, if that is unchanged, and passes the leaf's end to `page`.
    fn next_leaf(&mut self, from: Bound<&[u8]>, page: &mut impl Page) -> Result<Option<Part<'t, M>>, Error> {
        let Some((spot, child)) = self.parent.take() else { return Ok(None) };
        let Some(parent) = self.again(&spot)? else { return Ok(None) };
        if self.pass(&parent, child, page)?.is_some_and(|end| !self.is_ahead(from, end)) {
            // The scan would return there and never end.
            return Err(Error::out_of_order(parent.node.at));
        }
        let leaf = self.reader.nodes().reach(parent.node.child(child)?, 0, Mode::Shared, WaitPolicy::Wait)?;
        let all = 0..leaf.meta.count;
        ask_for_first(self.direction, leaf.node, &all);
        Ok(Some((leaf, all)))
    }

    /// Locks the node of a spot, if it is unchanged.
    fn again(&self, spot: &Spot<'t, M>) -> Result<Option<Reached<'t, M>>, Error> {
        let held = spot.lock.lock(Mode::Shared, WaitPolicy::Wait)?;
        if held.version() != spot.version && !self.reader.nodes().medium().breaks(canary::CHANGES_UNSEEN) {
            return Ok(None);
        }
        Ok(Some(Reached { held, node: spot.node, meta: spot.node.meta()? }))
    }

    /// Finds the leaf that covers `from` from the root, and the range of its pairs within the bound.
    fn first_leaf(&mut self, from: Bound<&[u8]>, page: &mut impl Page) -> Result<Part<'t, M>, Error> {
        (self.has_more, self.next) = (false, None);
        let (nodes, target) = (self.reader.nodes(), target(from, self.direction));
        let leaf = nodes.descend(target, (0, Mode::Shared), WaitPolicy::Wait, |inner, child| {
            self.pass(inner, child, page).map(drop)
        })?;
        let within = self.pairs_within(&leaf, from)?;
        Ok((leaf, within))
    }

    /// Passes an inner node on the way to its child: reports the child's end to `page`, and remembers the next child
    /// if the node has a separator behind it.
    fn pass(&mut self, inner: &Reached<'t, M>, child: usize, page: &mut impl Page) -> Result<Option<&'t [u8]>, Error> {
        let (fence, next) = match self.direction {
            Direction::Forward => ((child < inner.meta.count).then_some(child), child + 1),
            Direction::Backward => (child.checked_sub(1), child.wrapping_sub(1)),
        };
        let Some(fence) = fence else { return Ok(None) };
        if inner.meta.level == 1 {
            // Prefetched before the separator is read.
            inner.node.prefetch_key(fence);
            self.reader.nodes().node(inner.node.child(child)?.offset).prefetch();
        }
        let end = inner.node.key(fence)?;
        page.ends_at(end);
        self.has_more = true;
        if inner.meta.level == 1 && (1..inner.meta.count).contains(&next) {
            self.next = Some(self.reader.nodes().node(inner.node.child(next)?.offset));
            self.parent = Some((Spot::of(inner), next));
        }
        Ok(Some(end))
    }

    /// Returns true if a leaf with this start can have this end.
    fn is_ahead(&self, from: Bound<&[u8]>, end: &[u8]) -> bool {
        match (self.direction, from) {
            (_, Bound::Unbounded) => true,
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key)) => end > key,
            (Direction::Backward, Bound::Included(key) | Bound::Excluded(key)) => end < key,
        }
    }

    /// Returns the range of a leaf's pairs within the bound, and prefetches the first of them. Most scans begin at a
    /// key that exists: then no other key is read, and the pairs behind it are prefetched before the key is compared.
    fn pairs_within(&self, leaf: &Reached<'t, M>, from: Bound<&[u8]>) -> Result<Range<usize>, Error> {
        let (node, count) = (leaf.node, leaf.meta.count);
        let (key, is_included) = match from {
            Bound::Unbounded => {
                ask_for_first(self.direction, node, &(0..count));
                return Ok(0..count);
            }
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        let behind = |i, is_shown: bool| match self.direction {
            Direction::Forward => i + usize::from(!is_shown)..count,
            Direction::Backward => 0..i + usize::from(is_shown),
        };
        if let Some(i) = node
            .find(count, (key, key::checksum(key)), |i| ask_for_first(self.direction, node, &behind(i, is_included)))?
        {
            return Ok(behind(i, is_included));
        }
        let gap = self.gap_within(leaf, key)?;
        let within = behind(gap, self.direction == Direction::Forward);
        ask_for_first(self.direction, node, &within);
        Ok(within)
    }

    /// Returns the position of a key that the leaf does not have. A page that begins at a separator has all pairs,
    /// and one comparison suffices.
    fn gap_within(&self, leaf: &Reached<'t, M>, key: &[u8]) -> Result<usize, Error> {
        let (node, count) = (leaf.node, leaf.meta.count);
        match self.direction {
            _ if count == 0 => Ok(0),
            Direction::Forward if node.key(0)? > key => Ok(0),
            Direction::Backward if node.key(count - 1)? < key => Ok(count),
            _ => node.gap_for(count, key),
        }
    }
}

fn target(from: Bound<&[u8]>, direction: Direction) -> Target<'_> {
    match (from, direction) {
        (Bound::Unbounded, Direction::Forward) => Target::First,
        (Bound::Unbounded, Direction::Backward) => Target::Last,
        (Bound::Excluded(key), Direction::Backward) => Target::Before(key),
        (Bound::Included(key) | Bound::Excluded(key), _) => Target::At(key),
    }
}
