//! Results of searches that are kept for a following change, which then needs no second search if the leaf is
//! unchanged; and prefetched leaves, for callers that do other work until the lines arrive.

use super::descent::{At, Near, RootWord};
use super::layout::{LEAF_COUNT_MAX, Leaf};
use super::leaf::{Entry, Spot};
use super::ops::Outcome;
use super::target::{Stop, Target};
use super::{Edit, Keys};
use crate::Position;

/// A key with its prefetched leaf. It is valid while the thread stays pinned.
pub struct PrefetchedLeaf<'t, 'k> {
    pub(super) key: &'k [u8],
    /// The leaf, or `None` if a concurrent change interrupted the descent.
    pub(super) near: Option<Near<'t>>,
}

/// The result of a search for a key. It is valid while the thread stays pinned.
pub struct Found<'t, 'k> {
    pub(super) key: &'k [u8],
    item: Option<Position>,
    /// The index in the leaf at which the key is, or would be.
    index: usize,
    /// The key's leaf, and the version that was noted. While the thread is pinned, no other node is placed at this
    /// address. So the version shows whether the leaf is unchanged.
    at: At<'t, Leaf>,
}

impl<'t, 'k> PrefetchedLeaf<'t, 'k> {
    /// Returns the key.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &'k [u8] {
        self.key
    }

    /// Returns the leaf, if it is still the key's.
    #[inline(always)]
    pub(super) fn land<E>(&self, root_word: &'t RootWord) -> Result<At<'t, Leaf>, Stop<E>> {
        root_word.land(self.near.ok_or(Stop::Again)?)
    }

    /// Finds the key in the leaf.
    #[inline(always)]
    pub(super) fn find<K: Keys>(&self, root_word: &'t RootWord, keys: &K) -> Result<Found<'t, 'k>, Stop<K::Error>> {
        find_at(self.land(root_word)?, &mut Target::whole(keys, self.key), self.key)
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
pub(super) fn edit_found<K: Keys>(keys: &K, found: &Found<'_, '_>, edit: Edit) -> Option<Outcome> {
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
