//! The removal of a leaf from the list.

use pmem::{Dram, Medium};

use super::FpTree;
use super::leaf::{Leaf, leaf_bytes};
use super::log::Change;
use super::write::Locked;
use crate::key::Key;
use crate::tree::TreeResult;

impl<M: Medium, D: Dram> FpTree<M, D> {
    /// Takes a locked leaf, whose only key is `key`, off the list, and makes it obsolete. Returns false if it has no
    /// left sibling whose lock is free; nothing has changed then. Calls `done` as [`FpTree::delete_entry`] does.
    #[cold]
    pub(super) fn try_unlink(&self, leaf: Leaf<'_, M>, key: Key, done: &impl Fn()) -> TreeResult<bool> {
        let parent = loop {
            // The lock of the leaf keeps it the leaf for its key.
            if let Some(parent) = self.inner.locate(key).try_lock() {
                break parent;
            }
        };
        let Some(before) = parent.left_sibling().map(|at| self.leaf(at)) else { return Ok(false) };
        if !before.try_lock_now() {
            return Ok(false);
        }
        let (before, medium, log) = (Locked(before), &self.records.medium, self.logs.take());
        log.begin(medium, Change::Unlink { leaf: leaf.at, before: before.0.at });
        medium.order();
        before.0.set_next(leaf.next());
        medium.order();
        log.end(medium);
        self.wait()?;
        done();
        parent.remove_leaf();
        leaf.unlock_obsolete();
        self.reshapes.count_removed_leaf();
        self.records.retire_place(self.leaf_place(leaf.at), leaf_bytes(self.entry_count));
        Ok(true)
    }
}
