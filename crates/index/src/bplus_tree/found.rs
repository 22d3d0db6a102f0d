//! What a search found, kept for the change that follows: the change goes to the leaf at once, if nothing else has changed that
//! meanwhile.

use epoch::Pin;
use pmem::Dram;

use super::descent::At;
use super::inner::Seek;
use super::layout::Leaf;
use super::search::{Stop, Target};
use super::{BPlusTree, Change, ChangeError, Edit, KeyStart, Keys};
use crate::Position;

/// A key that was searched for, for as long as the thread stays pinned.
pub struct Found<'t, 'k> {
    key: &'k [u8],
    item: Option<Position>,
    /// The key's leaf, and the version it had. While the thread is pinned no other node comes to this place: the version tells whether the leaf
    /// is the same.
    at: At<'t, Leaf>,
}

impl Found<'_, '_> {
    /// The key's item, if it has one.
    #[must_use]
    pub fn item(&self) -> Option<Position> {
        self.item
    }
}

impl<D: Dram> BPlusTree<D> {
    /// As [`BPlusTree::find`], for a caller who is going to change the key.
    ///
    /// # Errors
    /// If an item's key cannot be read.
    #[inline]
    pub fn look<'t, 'k, K: Keys>(&'t self, _pin: &'t Pin, keys: &K, key: &'k [u8]) -> Result<Found<'t, 'k>, K::Error> {
        loop {
            match self.try_find(keys, key) {
                Ok((at, item)) => return Ok(Found { key, item, at }),
                Err(Stop::Failed(ChangeError::Keys(error))) => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Applies what happened to the key that was found.
    ///
    /// # Errors
    /// See [`ChangeError`]; the tree is as it was before.
    #[inline]
    pub fn apply_to<K: Keys>(&self, keys: &K, found: &Found<'_, '_>, edit: Edit) -> Result<(), ChangeError<K::Error>> {
        let key = KeyStart::whole(found.key);
        let mut seek = Seek::At(Target::of_item(keys, key, edit.item()));
        let applied = match self.edit_at(found.at, &mut seek, edit) {
            Ok(()) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Again | Stop::Full) => self.apply_one(keys, &Change { key, edit }),
        };
        if applied.is_ok() {
            self.grow(edit.growth());
        }
        applied
    }
}
