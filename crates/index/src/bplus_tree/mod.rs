//! HiKV's ordered index (paper, section 3.2): a B+tree in DRAM that refers to items in persistent memory by
//! position.
//!
//! The tree stores no whole keys except separators. For each item, a leaf stores 14 bytes: a position of six bytes,
//! and the first eight bytes of the key behind the prefix that the leaf's keys share. A whole key is read from the
//! item ([`Keys`]), and only if these bytes tie.
//!
//! # Invariants
//! - The separators of a node ascend. Child `i` holds the keys from separator `i - 1` (inclusive) to separator `i`
//!   (exclusive).
//! - The keys of a leaf ascend. All keys of the leaf's range share its prefix. The prefix is never longer than the
//!   common prefix of the fences (the separators on either side), so a search need not compare the prefix. The
//!   prefix of an inner node is the common prefix of the separators, and a search does compare that one.
//! - Separators own their bytes and never change. A separator need not be an existing key.
//! - The range of a node changes only under the locks of the node and of its parent.
//!
//! # Concurrency
//! The tree uses optimistic lock coupling.
//!
//! - Readers take no locks. They note a node's version, read, and check the version (`version`). On the way down,
//!   they note the version of the child and then check that of the parent (`descent`).
//! - A writer locks a leaf from the version that its descent noted. This proves that the leaf is still the one for
//!   its key, so no other lock is needed. Splits and merges lock the parent also. Locks are only tried: a writer
//!   that fails releases all its locks and starts again.
//! - Unlinked nodes and separators are obsolete and wait in a limbo (`epoch`) for pinned readers. Every operation
//!   is pinned. So a pointer that was read from a node may be followed once the node's version was checked.
//!
//! # Lock order
//! Parent -> left node -> right node -> the arena. No thread waits for the lock of a node. The limbo's lock is
//! taken without them.
//!
//! Items stay alive while the tree refers to them, and after that until every thread that was pinned at that time
//! is unpinned: the caller of [`BPlusTree::apply`] retires a replaced item after the change was applied.

mod apply;
mod arena;
mod bulk;
mod change;
mod check;
mod descent;
mod find_many;
mod found;
mod inner;
mod layout;
mod leaf;
mod memory;
mod merge;
mod ops;
mod page;
mod scan;
mod separator;
mod split;
mod target;
#[cfg(test)]
mod tests;
mod version;

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pmem::Dram;

pub use apply::GROUP_COUNT;
pub use bulk::{Loader, Part};
pub use change::{Change, ChangeError, Edit, KeyStart, Keys, LoadError, NoDram};
pub use check::TreeDamage;
pub use found::{Found, PrefetchedLeaf};
pub use page::{Direction, Page};

use descent::Root;
use memory::Memory;

/// The tree.
#[derive(Debug)]
pub struct BPlusTree<D: Dram> {
    /// See [`Root`].
    root: AtomicPtr<u8>,
    memory: Memory<D>,
    item_count: AtomicU64,
}

impl<D: Dram> BPlusTree<D> {
    /// Creates an empty tree.
    ///
    /// # Errors
    /// Returns an error if the host has no memory.
    pub fn new(dram: D) -> Result<BPlusTree<D>, NoDram> {
        let memory = Memory::new(dram);
        let leaf = memory.new_leaf()?.link();
        let root = AtomicPtr::new(Root::new(leaf.cast(), 0).word());
        Ok(BPlusTree { root, memory, item_count: AtomicU64::new(0) })
    }

    /// Removes every item. No thread may apply changes during the call; readers may continue. Results of earlier
    /// searches are searched again by the changes that use them.
    ///
    /// # Errors
    /// Returns an error if the host has no memory.
    pub fn clear(&self) -> Result<(), NoDram> {
        self.clearing().map(|clear| clear())
    }

    /// Returns a function that removes every item and cannot fail, for a caller that takes an irrevocable step
    /// first.
    ///
    /// # Errors
    /// Returns an error if the host has no memory.
    pub fn clearing(&self) -> Result<impl FnOnce() + '_, NoDram> {
        let leaf = self.memory.new_leaf()?;
        Ok(move || {
            let _pin = epoch::pin();
            let old = Root::from_word(self.root.swap(Root::new(leaf.link().cast(), 0).word(), Ordering::AcqRel));
            self.item_count.store(0, Ordering::Relaxed);
            self.retire_all(old.node(), old.height());
        })
    }

    /// Retires a node and everything below it. No thread can find or change these nodes any more.
    fn retire_all(&self, node: *mut u8, level: usize) {
        if level == 0 {
            self.leaf(node).version.end();
            return self.memory.retire(self.leaf(node));
        }
        let inner = self.inner(node);
        inner.version.end();
        let (separators, children) = inner.contents();
        children.into_iter().for_each(|child| self.retire_all(child, level - 1));
        separators.into_iter().for_each(|separator| self.memory.retire_separator(separator));
        self.memory.retire(inner);
    }

    /// Returns the number of items to which the tree refers.
    pub fn len(&self) -> u64 {
        self.item_count.load(Ordering::Relaxed)
    }

    /// Returns true if the tree refers to no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the DRAM that was allocated for the tree.
    pub fn dram_bytes(&self) -> u64 {
        self.memory.arena.lent_bytes()
    }

    /// Frees nodes that no reader can reach any more, and returns true if there were any. It is meant for idle
    /// times: changes do the same as they proceed.
    pub fn collect(&self) -> bool {
        self.memory.collect()
    }

    fn grow(&self, by: i64) {
        if by != 0 {
            self.item_count.fetch_add(by as u64, Ordering::Relaxed);
        }
    }
}
