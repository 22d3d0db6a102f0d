//! Finds keys: one, several at once, or for a following change (`found`).

use epoch::Pinned;
use pmem::Dram;

use super::descent::RootWord;
use super::found::{Found, PrefetchedLeaf, find_at};
use super::inner::Seek;
use super::target::{Stop, Target};
use super::travel::GROUP_COUNT;
use super::{BPlusTree, ChangeError, Keys};
use crate::Position;

impl<D: Dram> BPlusTree<D> {
    /// Returns the item of this key, if there is one.
    ///
    /// # Errors
    /// Returns an error if an item's key cannot be read.
    pub fn find<K: Keys>(&self, keys: &K, key: &[u8]) -> Result<Option<Position>, K::Error> {
        let _pin = epoch::pin();
        loop {
            match self.nodes.root_word().try_find(keys, key) {
                Ok(item) => return Ok(item),
                Err(Stop::Failed(ChangeError::Keys(error))) => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Finds the items of `wanted`, in order, and calls `found` for each with its number. Before that, calls `near`
    /// with the probable items, which may be invalid positions, so that the caller can prefetch. Any number of keys
    /// is allowed; groups of 16 or more are fastest.
    pub fn find_many<K: Keys>(
        &self,
        keys: &K,
        wanted: &[&[u8]],
        near: impl Fn(Position),
        mut found: impl FnMut(usize, Result<Option<Position>, K::Error>),
    ) {
        let pin = epoch::pin();
        for (group, wanted) in wanted.chunks(GROUP_COUNT).enumerate() {
            let leaves = self.prefetch_many(pin.pinned(), keys, wanted);
            let leaves = &leaves[..wanted.len()];
            leaves.iter().filter_map(|prefetched| self.likely(keys, prefetched)).for_each(&near);
            for (number, prefetched) in leaves.iter().enumerate() {
                // A key whose descent failed is searched separately.
                let result =
                    self.lookup_prefetched(keys, prefetched).map_or_else(|| self.find(keys, prefetched.key()), Ok);
                found(group * GROUP_COUNT + number, result);
            }
        }
    }

    /// Descends to the key's leaf, and prefetches it.
    #[inline]
    pub fn prefetch<'t, 'k, K: Keys>(&'t self, _pinned: Pinned<'t>, keys: &K, key: &'k [u8]) -> PrefetchedLeaf<'t, 'k> {
        let mut seek = Seek::At(Target::whole(keys, key));
        PrefetchedLeaf {
            key,
            near: self.nodes.root_word().approach(&mut seek, |_, _, _| Ok(())).ok().map(|(near, _)| near),
        }
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
        let root_word = self.nodes.root_word();
        let root = root_word.root();
        let travellers = root_word.descend_to_leaves(root, |number| Some(Target::whole(keys, wanted.get(number)?)));
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
        let at = prefetched.land::<K::Error>(self.nodes.root_word()).ok()?;
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
        match prefetched.find(self.nodes.root_word(), keys) {
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
        Some(prefetched.find(self.nodes.root_word(), keys).ok()?.item())
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
            let leaf = self.nodes.root_word().descend(&mut seek, |_, _, _| Ok(()));
            match leaf.and_then(|(at, _)| find_at(at, &mut Target::whole(keys, key), key)) {
                Ok(found) => return Ok(found),
                Err(Stop::Failed(ChangeError::Keys(error))) => return Err(error),
                Err(_) => {}
            }
        }
    }
}

impl RootWord {
    /// Searches once from the root.
    #[inline(always)]
    fn try_find<K: Keys>(&self, keys: &K, key: &[u8]) -> Result<Option<Position>, Stop<K::Error>> {
        let (at, _) = self.descend(&mut Seek::At(Target::whole(keys, key)), |_, _, _| Ok(()))?;
        Ok(find_at(at, &mut Target::whole(keys, key), key)?.item())
    }
}
