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
//! # Modules
//! The tree is its nodes and their number. `Nodes` is the memory of the nodes and the `RootWord`, the word that names
//! the root; reads need only the root word. Each module uses only those after it: `apply`, `find` -> `travel`, `found`
//! -> `ops` -> `merge` -> `split` -> `nodes`, `scan`, `check` -> `descent`, `memory` -> `inner`, `leaf` -> `target`,
//! `separator` -> `arena`, `layout` -> `version`. `bulk` uses `nodes`.
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
mod find;
mod found;
mod inner;
mod layout;
mod leaf;
mod memory;
mod merge;
mod nodes;
mod ops;
mod page;
mod scan;
mod separator;
mod split;
mod target;
#[cfg(test)]
mod tests;
mod travel;
mod version;

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Dram;

pub use bulk::{Loader, Part};
pub use change::{Change, ChangeError, Edit, KeyStart, Keys, LoadError, NoDram};
pub use check::TreeDamage;
pub use found::{Found, PrefetchedLeaf};
pub use page::{Direction, Page};
pub use travel::GROUP_COUNT;

use check::Checker;
use nodes::Nodes;

/// The tree.
#[derive(Debug)]
pub struct BPlusTree<D: Dram> {
    nodes: Nodes<D>,
    item_count: AtomicU64,
}

impl<D: Dram> BPlusTree<D> {
    /// Creates an empty tree.
    ///
    /// # Errors
    /// Returns an error if the host has no memory.
    pub fn new(dram: D) -> Result<BPlusTree<D>, NoDram> {
        Ok(BPlusTree { nodes: Nodes::empty(dram)?, item_count: AtomicU64::new(0) })
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
        let clear = self.nodes.clearing()?;
        Ok(move || {
            clear();
            self.item_count.store(0, Ordering::Relaxed);
        })
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
        self.nodes.memory().arena.allocated_bytes()
    }

    /// Frees nodes that no reader can reach any more, and returns true if there were any. It is meant for idle
    /// times: changes do the same as they proceed.
    pub fn collect(&self) -> bool {
        self.nodes.memory().collect()
    }

    /// Reports all damage to `damaged`: wrong order, structure or fences, heads that do not match their keys, and
    /// items whose keys cannot be read. No thread may apply changes during the call.
    pub fn check<K: Keys>(&self, keys: &K, damaged: &mut dyn FnMut(TreeDamage)) {
        Checker::check(self.nodes.root_word(), self.len(), keys, damaged);
    }
}
