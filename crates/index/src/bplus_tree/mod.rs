//! HiKV's ordered index (paper, section 3.2): a B+tree in DRAM that refers to items in persistent memory by position.
//!
//! It owns no keys but separators and the first eight bytes of each, after what a leaf's keys share: 16 bytes of key
//! and position for each item. Whole keys are read from the items ([`Keys`]), and only where those bytes tie.
//!
//! # Invariants
//! - A node's separators ascend; child `i` holds the keys from separator `i - 1` on, below separator `i`.
//! - A leaf's keys ascend. All keys of the leaf's range share its prefix, whose length never exceeds what the fences (the
//!   separators on either side) share: a search need not compare it. An inner node's prefix is what the separators share,
//!   and a search does compare it.
//! - Separators own their bytes and never change. They need not be keys that are there.
//! - A node's range changes only under the node's lock and its parent's.
//!
//! # Concurrency
//! Optimistic lock coupling. Readers lock nothing: they note a node's version, read, and check the version (`version`). Going down,
//! they note the child's version and then check the parent's (`descent`). A writer locks a leaf from the version noted by the
//! descent, which proves that the leaf is still the one for its key; then only the leaf is locked. Splits and merges lock the
//! parent too. Locks are only tried: a writer that fails lets go of all and starts again. Unlinked nodes and separators are
//! obsolete and wait in a limbo (`epoch`) for pinned readers, and every operation is pinned: so what was read from a node, once
//! checked, may be followed.
//!
//! # Lock order
//! Parent -> left node -> right node -> the arena. Nodes' locks are never waited for; the limbo's is taken without them.
//!
//! Items are alive for as long as the tree refers to them, and then until every thread is unpinned that was pinned at that time:
//! the caller of [`BPlusTree::apply`] retires a replaced item after the change was applied.

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
    /// A tree of nothing.
    ///
    /// # Errors
    /// If the host lends no memory.
    pub fn new(dram: D) -> Result<BPlusTree<D>, NoDram> {
        let memory = Memory::new(dram);
        let leaf = memory.new_leaf()?.link();
        let root = AtomicPtr::new(Root::new(leaf.cast(), 0).word());
        Ok(BPlusTree { root, memory, item_count: AtomicU64::new(0) })
    }

    /// Forgets every item. Nobody applies changes meanwhile; readers may read on. What was searched for before is searched for anew by the change that follows.
    ///
    /// # Errors
    /// If the host lends no memory.
    pub fn clear(&self) -> Result<(), NoDram> {
        self.clearing().map(|clear| clear())
    }

    /// What forgets every item when it is called: that cannot fail. For a caller with an irrevocable step before it.
    ///
    /// # Errors
    /// If the host lends no memory.
    pub fn clearing(&self) -> Result<impl FnOnce() + '_, NoDram> {
        let leaf = self.memory.new_leaf()?;
        Ok(move || {
            let _pin = epoch::pin();
            let old = Root::from_word(self.root.swap(Root::new(leaf.link().cast(), 0).word(), Ordering::AcqRel));
            self.item_count.store(0, Ordering::Relaxed);
            self.retire_all(old.node(), old.height());
        })
    }

    /// Retires a node, and all below it, that nobody can find any more and nobody changes.
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

    /// How many items the tree refers to.
    pub fn len(&self) -> u64 {
        self.item_count.load(Ordering::Relaxed)
    }

    /// True if it refers to none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Volatile memory lent to the tree.
    pub fn dram_bytes(&self) -> u64 {
        self.memory.arena.lent_bytes()
    }

    /// Makes nodes that no reader can reach any more free for use; true if there were any. For idle times: changes do it
    /// as they go.
    pub fn collect(&self) -> bool {
        self.memory.collect()
    }

    fn grow(&self, by: i64) {
        if by != 0 {
            self.item_count.fetch_add(by as u64, Ordering::Relaxed);
        }
    }
}
