//! Scans: a leaf at a time, holding nothing in between.
//!
//! A page is one leaf's items as they were at one version, with the fence that the leaf had at that version; the next
//! page starts at that fence. So pages of a scan cover the keys without gap or overlap, whatever is split or merged
//! between them.

use std::convert::Infallible;
use std::ops::Bound;
use std::sync::atomic::Ordering::Relaxed;

use pmem::Dram;

use super::descent::{At, Path};
use super::found::find_at;
use super::inner::Seek;
use super::layout::{LEAF_COUNT_MAX, Leaf};
use super::target::{Stop, Target};
use super::{BPlusTree, ChangeError, Direction, Keys, Page};
use crate::Position;

impl<D: Dram> BPlusTree<D> {
    /// The item of this key, if there is one.
    ///
    /// # Errors
    /// If an item's key cannot be read.
    pub fn find<K: Keys>(&self, keys: &K, key: &[u8]) -> Result<Option<Position>, K::Error> {
        let _pin = epoch::pin();
        loop {
            match self.try_find(keys, key) {
                Ok(item) => return Ok(item),
                Err(Stop::Failed(ChangeError::Keys(error))) => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// One search from the root.
    #[inline(always)]
    fn try_find<K: Keys>(&self, keys: &K, key: &[u8]) -> Result<Option<Position>, Stop<K::Error>> {
        let (at, _) = self.descend(&mut Seek::At(Target::whole(keys, key)), |_, _, _| Ok(()))?;
        Ok(find_at(at, &mut Target::whole(keys, key), key)?.item())
    }

    /// Reads one leaf's items from `from` on, in `direction`: [`Page::next`] says where to go on.
    ///
    /// A scan that reads page after page shows ascending (or descending) keys, none twice, and every key that is there
    /// from its beginning to its end.
    ///
    /// # Errors
    /// If an item's key cannot be read.
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
            match self.try_read_page(keys, from, page) {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(ChangeError::Keys(error))) => return Err(error),
                Err(_) => {}
            }
        }
    }

    fn try_read_page<K: Keys>(&self, keys: &K, from: Bound<&[u8]>, page: &mut Page) -> Result<(), Stop<K::Error>> {
        let mut seek = Seek::page(keys, from, page.is_backward);
        let (at, path) = self.descend(&mut seek, |_, _, _| Ok(()))?;
        let edge = edge_of(at, from, page.is_backward, &mut seek)?;
        page.fill(at, edge, &path)
    }

    /// Reads all items of the leaf whose range has `key`, those below it too; [`Page::end`] is where the next leaf begins. No item's key is
    /// read: for a caller who comes past items that are damaged. Of leaves that are merged between two readings items are read twice.
    pub fn read_leaf(&self, key: &[u8], page: &mut Page) {
        let _pin = epoch::pin();
        page.is_backward = false;
        while self.try_read_leaf(key, page).is_err() {}
    }

    fn try_read_leaf(&self, key: &[u8], page: &mut Page) -> Result<(), Stop<Infallible>> {
        let (at, path) = self.descend(&mut Seek::At(Target::whole(&NoItems, key)), |_, _, _| Ok(()))?;
        page.fill(at, 0, &path)
    }

    /// The item of the least key.
    ///
    /// # Errors
    /// If an item's key cannot be read.
    pub fn first<K: Keys>(&self, keys: &K) -> Result<Option<Position>, K::Error> {
        self.first_from(keys, Direction::Forward)
    }

    /// The item of the greatest key.
    ///
    /// # Errors
    /// If an item's key cannot be read.
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

impl<'a, K: Keys> Seek<'a, K> {
    /// To the leaf of a scan's next items.
    fn page(keys: &'a K, from: Bound<&'a [u8]>, is_backward: bool) -> Seek<'a, K> {
        match from {
            Bound::Unbounded if is_backward => Seek::Last,
            Bound::Unbounded => Seek::At(Target::whole(keys, b"")),
            Bound::Excluded(key) if is_backward => Seek::Below(Target::whole(keys, key)),
            Bound::Included(key) | Bound::Excluded(key) => Seek::At(Target::whole(keys, key)),
        }
    }
}

/// The index of the leaf's first item of a forward scan from `from`, or one past that of a backward scan.
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

/// Asks the cache for the leaf to the right: reading this one's items takes longer than that.
fn prefetch_next(leaf: &Leaf) {
    let next = leaf.next.load(Relaxed).cast::<u8>();
    if !next.is_null() {
        super::apply::prefetch(next, size_of::<Leaf>());
    }
}

/// For a search whose key is at hand and ends at a leaf: it compares with separators alone.
struct NoItems;

impl Keys for NoItems {
    type Error = Infallible;

    fn key(&self, _position: Position) -> Result<&[u8], Infallible> {
        unreachable!("no item is read on the way to a leaf")
    }

    fn prefetch(&self, _position: Position) {}
}

impl Page {
    /// Takes over the items on the scan's side of `edge`, and the fence, of a leaf as it was seen.
    #[inline(always)]
    fn fill<E>(&mut self, at: At<'_, Leaf>, edge: usize, path: &Path<'_>) -> Result<(), Stop<E>> {
        self.positions.clear();
        self.positions.reserve(LEAF_COUNT_MAX);
        if self.is_backward {
            self.positions.extend(at.node.positions(0, edge).rev());
        } else {
            prefetch_next(at.node);
            // While the leaf is changed, the count may have become less than the edge; the check tells.
            self.positions.extend(at.node.positions(edge, at.node.count().max(edge)));
        }
        at.check()?;
        self.set_fence(path)
    }

    /// Takes over the fence that a leaf has on the side that the scan goes to.
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
