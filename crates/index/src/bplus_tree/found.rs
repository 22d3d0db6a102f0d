//! Results of searches that are kept for a following change, which then needs no second search if the leaf is
//! unchanged; and prefetched leaves, for callers that do other work until the lines arrive.

use epoch::Pinned;
use pmem::Dram;

use super::apply::GROUP_COUNT;
use super::descent::{At, Near};
use super::inner::Seek;
use super::layout::{LEAF_COUNT_MAX, Leaf};
use super::leaf::{Entry, Spot};
use super::ops::Outcome;
use super::target::{Stop, Target};
use super::{BPlusTree, Change, ChangeError, Edit, KeyStart, Keys};
use crate::Position;

/// A key with its prefetched leaf. It is valid while the thread stays pinned.
pub struct PrefetchedLeaf<'t, 'k> {
    key: &'k [u8],
    /// The leaf, or `None` if a concurrent change interrupted the descent.
    near: Option<Near<'t>>,
}

/// The result of a search for a key. It is valid while the thread stays pinned.
pub struct Found<'t, 'k> {
    key: &'k [u8],
    item: Option<Position>,
    /// The index in the leaf at which the key is, or would be.
    index: usize,
    /// The key's leaf, and the version that was noted. While the thread is pinned, no other node is placed at this
    /// address. So the version shows whether the leaf is unchanged.
    at: At<'t, Leaf>,
}

impl<'k> PrefetchedLeaf<'_, 'k> {
    /// Returns the key.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &'k [u8] {
        self.key
    }
}

impl Found<'_, '_> {
    /// Returns the key's item, if there is one.
    #[inline(always)]
    #[must_use]
    pub fn item(&self) -> Option<Position> {
        self.item
    }
}

impl<D: Dram> BPlusTree<D> {
    /// Descends to the key's leaf, and prefetches it.
    #[inline]
    pub fn prefetch<'t, 'k, K: Keys>(&'t self, _pinned: Pinned<'t>, keys: &K, key: &'k [u8]) -> PrefetchedLeaf<'t, 'k> {
        let mut seek = Seek::At(Target::whole(keys, key));
        PrefetchedLeaf { key, near: self.approach(&mut seek, |_, _, _| Ok(())).ok().map(|(near, _)| near) }
    }

    /// Like [`BPlusTree::prefetch`], for up to [`GROUP_COUNT`] keys, which descend together. Entries beyond the
    /// length of `wanted` have an empty key.
    #[inline]
    pub fn prefetch_many<'t, 'k, K: Keys>(
        &'t self,
        _pinned: Pinned<'t>,
        keys: &K,
        wanted: &[&'k [u8]],
    ) -> [PrefetchedLeaf<'t, 'k>; GROUP_COUNT] {
        let root = self.root();
        let travellers = self.travel_together(root, |number| Some(Target::whole(keys, wanted.get(number)?)));
        let mut number = 0;
        travellers.map(|traveller| {
            let key = wanted.get(number).copied().unwrap_or_default();
            number += 1;
            PrefetchedLeaf { key, near: traveller.and_then(|traveller| traveller.near(root)) }
        })
    }

    /// Returns the item that probably belongs to the key, so that the caller can prefetch it. The position may be
    /// invalid.
    #[inline]
    pub fn likely<K: Keys>(&self, keys: &K, prefetched: &PrefetchedLeaf<'_, '_>) -> Option<Position> {
        let at = self.land::<K::Error>(prefetched.near?).ok()?;
        at.node.likely(&mut Target::whole(keys, prefetched.key)).ok()?
    }

    /// Like [`BPlusTree::find_to_change`], in the prefetched leaf if that is still the key's.
    ///
    /// # Errors
    /// Returns an error if an item's key cannot be read.
    #[inline]
    pub fn find_prefetched_to_change<'t, 'k, K: Keys>(
        &'t self,
        pinned: Pinned<'t>,
        keys: &K,
        prefetched: &PrefetchedLeaf<'t, 'k>,
    ) -> Result<Found<'t, 'k>, K::Error> {
        match self.try_find_prefetched(keys, prefetched) {
            Ok(found) => Ok(found),
            Err(Stop::Failed(ChangeError::Keys(error))) => Err(error),
            Err(_) => self.find_to_change(pinned, keys, prefetched.key),
        }
    }

    /// Returns the item of the key whose leaf was prefetched. `None` means that the leaf has changed and a search
    /// is needed.
    #[inline(always)]
    pub fn lookup_prefetched<K: Keys>(
        &self,
        keys: &K,
        prefetched: &PrefetchedLeaf<'_, '_>,
    ) -> Option<Option<Position>> {
        Some(self.try_find_prefetched(keys, prefetched).ok()?.item())
    }

    #[inline(always)]
    fn try_find_prefetched<'t, 'k, K: Keys>(
        &'t self,
        keys: &K,
        prefetched: &PrefetchedLeaf<'t, 'k>,
    ) -> Result<Found<'t, 'k>, Stop<K::Error>> {
        let at = self.land(prefetched.near.ok_or(Stop::Again)?)?;
        find_at(at, &mut Target::whole(keys, prefetched.key), prefetched.key)
    }

    /// Like [`BPlusTree::find`], for a caller that is going to change the key.
    ///
    /// # Errors
    /// Returns an error if an item's key cannot be read.
    #[inline(never)]
    pub fn find_to_change<'t, 'k, K: Keys>(
        &'t self,
        _pinned: Pinned<'t>,
        keys: &K,
        key: &'k [u8],
    ) -> Result<Found<'t, 'k>, K::Error> {
        loop {
            let mut seek = Seek::At(Target::whole(keys, key));
            let leaf = self.descend(&mut seek, |_, _, _| Ok(()));
            match leaf.and_then(|(at, _)| find_at(at, &mut Target::whole(keys, key), key)) {
                Ok(found) => return Ok(found),
                Err(Stop::Failed(ChangeError::Keys(error))) => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Applies a change of the key that was found.
    ///
    /// # Errors
    /// See [`ChangeError`]; the tree is as it was before.
    #[inline]
    pub fn apply_to<K: Keys>(&self, keys: &K, found: &Found<'_, '_>, edit: Edit) -> Result<(), ChangeError<K::Error>> {
        match edit_found(keys, found, edit) {
            Some(Outcome { is_sparse: false, .. }) => {}
            Some(_) => self.merge_around(&mut Seek::At(Target::whole(keys, found.key))),
            None => self.apply_one(keys, &Change { key: KeyStart::whole(found.key), edit })?,
        }
        self.grow(edit.growth());
        Ok(())
    }
}

/// Finds the key in its leaf.
#[inline(always)]
pub(super) fn find_at<'t, 'k, K: Keys>(
    at: At<'t, Leaf>,
    target: &mut Target<'_, K>,
    key: &'k [u8],
) -> Result<Found<'t, 'k>, Stop<K::Error>> {
    let Spot { index, is_there } = at.node.find(target, || at.check())?;
    let item = is_there.then(|| at.node.position(index));
    at.check()?;
    Ok(Found { key, item, index, at })
}

/// Changes the leaf in which the key was found. Returns `None` if the leaf has changed since or is full, or if the
/// change names another item.
#[inline(always)]
fn edit_found<K: Keys>(keys: &K, found: &Found<'_, '_>, edit: Edit) -> Option<Outcome> {
    let (leaf, index) = (found.at.node, found.index);
    let old = match edit {
        Edit::Insert(_) => None,
        Edit::Replace { old, .. } | Edit::Remove(old) => Some(old),
    };
    if found.item != old {
        return None;
    }
    let lock = leaf.version.try_lock(found.at.seen)?;
    match edit {
        Edit::Replace { new, .. } => leaf.set_position(index, new),
        Edit::Remove(_) => leaf.remove(index),
        Edit::Insert(new) => {
            let head = Target::whole(keys, found.key).head(leaf.prefix_bytes()).ok();
            let Some(head) = head.filter(|_| leaf.count() < LEAF_COUNT_MAX) else {
                lock.release_unchanged();
                return None;
            };
            leaf.insert(index, Entry { head, position: new });
        }
    }
    Some(Outcome::of(leaf, found.at.seen, edit))
}
