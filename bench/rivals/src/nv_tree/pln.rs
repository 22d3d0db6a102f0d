//! The last level of inner nodes, in DRAM: keys and leaves.
//!
//! Key `i` is the greatest that leaf `i` may hold; the last leaf is bound by the node above. A thread that changes the
//! node, or the `next` of one of its leaves, holds the node's lock. Readers check the version, which is odd only while
//! the words change.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use pmem::{Backoff, Offset};

use crate::key::Key;
use crate::version::Version;

/// Leaves of a node.
pub(super) const LEAF_COUNT_MAX: usize = 32;

#[repr(align(64))]
pub(super) struct Pln {
    version: AtomicU64,
    count: AtomicU64,
    lock: Mutex<()>,
    keys: [[AtomicU64; 2]; LEAF_COUNT_MAX - 1],
    leaves: [AtomicU64; LEAF_COUNT_MAX],
}

impl Pln {
    /// Creates a node of one leaf.
    pub(super) fn of(leaf: Offset) -> Pln {
        let pln = Pln {
            version: AtomicU64::new(Version::FIRST.0),
            count: AtomicU64::new(1),
            lock: Mutex::default(),
            keys: [const { [const { AtomicU64::new(0) }; 2] }; LEAF_COUNT_MAX - 1],
            leaves: [const { AtomicU64::new(0) }; LEAF_COUNT_MAX],
        };
        pln.set_leaf(0, leaf);
        pln
    }

    #[inline(always)]
    fn version(&self) -> Version {
        Version(self.version.load(Ordering::Acquire))
    }

    /// Returns the number of leaves, which during a change may be any that fits.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        (self.count.load(Ordering::Acquire) as usize).min(LEAF_COUNT_MAX)
    }

    #[inline(always)]
    pub(super) fn key(&self, i: usize) -> Key {
        Key::of_words([self.keys[i][0].load(Ordering::Acquire), self.keys[i][1].load(Ordering::Acquire)])
    }

    #[inline(always)]
    pub(super) fn leaf(&self, i: usize) -> Offset {
        Offset(self.leaves[i].load(Ordering::Acquire))
    }

    fn set_key(&self, i: usize, key: Key) {
        for (to, word) in self.keys[i].iter().zip(key.words()) {
            to.store(word, Ordering::Release);
        }
    }

    fn set_leaf(&self, i: usize, leaf: Offset) {
        self.leaves[i].store(leaf.0, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn index_of(&self, key: Key) -> usize {
        let (mut first, mut count) = (0, self.count().saturating_sub(1));
        while count > 0 {
            let half = count / 2;
            let is_above = self.key(first + half) < key;
            (first, count) = if is_above { (first + half + 1, count - half - 1) } else { (first, half) };
        }
        first
    }

    /// Returns the leaf for `key`.
    #[inline(always)]
    pub(super) fn locate(&self, key: Key) -> Offset {
        let mut backoff = Backoff::short();
        loop {
            let version = self.version();
            let leaf = self.leaf(self.index_of(key));
            if version.is_stable() && self.version() == version {
                return leaf;
            }
            backoff.relax();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }

    /// Changes the words. The caller holds the lock.
    pub(super) fn change(&self, change: impl FnOnce(&Pln)) {
        self.version.store(self.version().locked().0, Ordering::Relaxed);
        change(self);
        self.version.store(self.version().unlocked().0, Ordering::Release);
    }

    /// Replaces leaf `index`; within [`Pln::change`].
    pub(super) fn replace(&self, index: usize, leaf: Offset) {
        self.set_leaf(index, leaf);
    }

    /// Divides leaf `index` at `key`; within [`Pln::change`], in a node that is not full.
    pub(super) fn insert(&self, index: usize, key: Key, right: Offset) {
        let count = self.count();
        for i in (index + 1..count).rev() {
            self.set_leaf(i + 1, self.leaf(i));
            self.set_key(i, self.key(i - 1));
        }
        self.set_key(index, key);
        self.set_leaf(index + 1, right);
        self.count.store(count as u64 + 1, Ordering::Release);
    }

    /// Removes leaf `index` + 1, whose keys become those of leaf `index`; within [`Pln::change`].
    pub(super) fn remove_after(&self, index: usize) {
        let count = self.count();
        for i in index + 1..count - 1 {
            self.set_leaf(i, self.leaf(i + 1));
            self.set_key(i - 1, self.key(i));
        }
        self.count.store(count as u64 - 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u8) -> Key {
        Key::of(&[i; 16])
    }

    #[test]
    fn leaves_are_divided_and_removed() {
        let pln = Pln::of(Offset(1));
        pln.change(|pln| pln.insert(0, key(20), Offset(3)));
        pln.change(|pln| pln.insert(0, key(10), Offset(2)));
        pln.change(|pln| pln.insert(2, key(30), Offset(4)));
        let located = [5, 10, 11, 20, 21, 30, 31].map(|i| pln.locate(key(i)).0);
        assert_eq!(located, [1, 1, 2, 2, 3, 3, 4]);
        pln.change(|pln| pln.remove_after(1));
        assert_eq!([5, 11, 21, 30, 31].map(|i| pln.locate(key(i)).0), [1, 2, 2, 2, 4]);
        pln.change(|pln| pln.remove_after(1));
        assert_eq!([10, 11, 31].map(|i| pln.locate(key(i)).0), [1, 2, 2]);
    }
}
