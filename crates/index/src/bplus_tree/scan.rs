//! Scans read one leaf at a time, and hold nothing in between.
//!
//! A page has the items of one leaf as they were at one version, and the fence that the leaf had at that version.
//! The next page starts at that fence. So the pages of a scan cover the keys without gap or overlap, whatever is
//! split or merged between them.

use std::convert::Infallible;
use std::ops::Bound;
use std::sync::atomic::Ordering::Relaxed;

use pmem::Dram;

use super::descent::{At, Path, RootWord, prefetch};
use super::inner::Seek;
use super::layout::{LEAF_COUNT_MAX, Leaf};
use super::target::{Stop, Target};
use super::{BPlusTree, ChangeError, Direction, Keys, Page};
use crate::Position;

impl<D: Dram> BPlusTree<D> {
    /// Reads one leaf's items, beginning at `from`, in `direction`. [`Page::next`] returns the start of the next
    /// page.
    ///
    /// A scan that reads page after page returns ascending (or descending) keys, none twice, and every key that
    /// exists from its beginning to its end.
    ///
    /// # Errors
    /// Returns an error if an item's key cannot be read.
    pub fn read_page<K: Keys>(
        &self,
        keys: &K,
        from: Bound<&[u8]>,
        direction: Direction,
        page: &mut Page,
    ) -> Result<(), K::Error> {
        let _pin = epoch::pin();
        page.is_backward = direction == Direction::Backward;
        loop {
            match self.nodes.root_word().try_read_page(keys, from, page) {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(ChangeError::Keys(error))) => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Reads all items of the leaf whose range contains `key`, including those below it. [`Page::end`] is the start
    /// of the next leaf. It reads no item's key, so a caller can skip damaged items. If leaves are merged between
    /// two calls, items are returned twice.
    pub fn read_leaf(&self, key: &[u8], page: &mut Page) {
        let _pin = epoch::pin();
        page.is_backward = false;
        while self.nodes.root_word().try_read_leaf(key, page).is_err() {}
    }

    /// Returns the item of the lowest key.
    ///
    /// # Errors
    /// Returns an error if an item's key cannot be read.
    pub fn first<K: Keys>(&self, keys: &K) -> Result<Option<Position>, K::Error> {
        self.first_from(keys, Direction::Forward)
    }

    /// Returns the item of the highest key.
    ///
    /// # Errors
    /// Returns an error if an item's key cannot be read.
    pub fn last<K: Keys>(&self, keys: &K) -> Result<Option<Position>, K::Error> {
        self.first_from(keys, Direction::Backward)
    }

    fn first_from<K: Keys>(&self, keys: &K, direction: Direction) -> Result<Option<Position>, K::Error> {
        let (mut page, mut next) = (Page::default(), Page::default());
        self.read_page(keys, Bound::Unbounded, direction, &mut page)?;
        while let (None, Some(from)) = (page.positions.first(), page.next()) {
            self.read_page(keys, from, direction, &mut next)?;
            std::mem::swap(&mut page, &mut next);
        }
        Ok(page.positions.first().copied())
    }
}

impl RootWord {
    fn try_read_page<K: Keys>(&self, keys: &K, from: Bound<&[u8]>, page: &mut Page) -> Result<(), Stop<K::Error>> {
        let mut seek = Seek::page(keys, from, page.is_backward);
        let (at, path) = self.descend(&mut seek, |_, _, _| Ok(()))?;
        let edge = edge_of(at, from, page.is_backward, &mut seek)?;
        page.fill(at, edge, &path)
    }

    fn try_read_leaf(&self, key: &[u8], page: &mut Page) -> Result<(), Stop<Infallible>> {
        let (at, path) = self.descend(&mut Seek::At(Target::whole(&NoItems, key)), |_, _, _| Ok(()))?;
        page.fill(at, 0, &path)
    }
}

impl<'a, K: Keys> Seek<'a, K> {
    /// Returns the target of the descent for a scan's next items.
    fn page(keys: &'a K, from: Bound<&'a [u8]>, is_backward: bool) -> Seek<'a, K> {
        match from {
            Bound::Unbounded if is_backward => Seek::Last,
            Bound::Unbounded => Seek::At(Target::whole(keys, b"")),
            Bound::Excluded(key) if is_backward => Seek::Below(Target::whole(keys, key)),
            Bound::Included(key) | Bound::Excluded(key) => Seek::At(Target::whole(keys, key)),
        }
    }
}

/// Returns the index of the leaf's first item in a forward scan from `from`, or the index behind the last one in a
/// backward scan.
fn edge_of<K: Keys>(
    at: At<'_, Leaf>,
    from: Bound<&[u8]>,
    is_backward: bool,
    seek: &mut Seek<'_, K>,
) -> Result<usize, Stop<K::Error>> {
    let (Seek::At(target) | Seek::Below(target)) = seek else { return Ok(at.node.count()) };
    let spot = at.node.find(target, || at.check())?;
    let is_beyond =
        spot.is_there && matches!((from, is_backward), (Bound::Excluded(_), false) | (Bound::Included(_), true));
    Ok(spot.index + usize::from(is_beyond))
}

/// Prefetches the leaf to the right, which arrives before all items of this one are read.
fn prefetch_next(leaf: &Leaf) {
    let next = leaf.next.load(Relaxed).cast::<u8>();
    if !next.is_null() {
        prefetch(next, size_of::<Leaf>());
    }
}

/// For a search whose key is in memory and that ends at a leaf: it compares only with separators.
struct NoItems;

impl Keys for NoItems {
    type Error = Infallible;

    fn key(&self, _position: Position) -> Result<&[u8], Infallible> {
        unreachable!("no item is read on the way to a leaf")
    }

    fn prefetch(&self, _position: Position) {}
}

impl Page {
    /// Copies the items on the scan's side of `edge`, and the fence, from a leaf at its noted version.
    #[inline(always)]
    fn fill<E>(&mut self, at: At<'_, Leaf>, edge: usize, path: &Path<'_>) -> Result<(), Stop<E>> {
        self.positions.clear();
        self.positions.reserve(LEAF_COUNT_MAX);
        if self.is_backward {
            self.positions.extend(at.node.positions(0, edge).rev());
        } else {
            prefetch_next(at.node);
            // During a change of the leaf, the count may be less than the edge; the check below detects that.
            self.positions.extend(at.node.positions(edge, at.node.count().max(edge)));
        }
        at.check()?;
        self.set_fence(path)
    }

    /// Copies the fence of the leaf in the direction of the scan.
    fn set_fence<E>(&mut self, path: &Path<'_>) -> Result<(), Stop<E>> {
        self.fence.clear();
        let fence = if self.is_backward { path.low } else { path.high };
        self.has_more = fence.is_some();
        let Some(step) = fence else { return Ok(()) };
        let separator = step.inner.node.separator(step.inner.seen, step.index)?;
        separator.with(|bytes| self.fence.extend_from_slice(bytes));
        Ok(())
    }
}
