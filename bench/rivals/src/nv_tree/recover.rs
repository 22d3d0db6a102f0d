//! Opening: voids locks and rebuilds the inner nodes from the list. An empty leaf is taken off the list, unless it
//! would be the only one.

use std::sync::atomic::Ordering;

use pmem::{Dram, Medium, Offset};

use super::leaf::leaf_bytes;
use super::upper::Upper;
use super::{ENTRY_COUNT, HEAD, NvTree, check_entry_count};
use crate::canary;
use crate::key::Key;
use crate::records::Records;
use crate::tree::{TreeError, TreeResult};
use crate::version::Version;

pub(super) fn open<M: Medium, D: Dram>(records: Records<M, D>) -> TreeResult<NvTree<M, D>> {
    let entry_count = records.medium.load(ENTRY_COUNT, Ordering::Acquire);
    check_entry_count(entry_count)?;
    let mut tree = NvTree::new(records, Upper::build(&[(Key::LAST, Offset::NULL)]), entry_count);
    let leaves = tree.collect_leaves()?;
    tree.records.medium.order();
    tree.records.heap.sweep().finish(&tree.records.medium);
    // SAFETY: the pointer came from a box, and no other thread uses the tree yet.
    unsafe { **tree.upper.get_mut() = Upper::build(&leaves) };
    Ok(tree)
}

impl<M: Medium, D: Dram> NvTree<M, D> {
    /// Walks the list: marks leaves and records for the sweep, voids locks, takes empty leaves off. Returns the leaves
    /// with their greatest keys.
    fn collect_leaves(&self) -> TreeResult<Vec<(Key, Offset)>> {
        let medium = &self.records.medium;
        let mut leaves: Vec<(Key, Offset)> = Vec::new();
        let mut at = Offset(medium.load(HEAD, Ordering::Acquire));
        while !at.is_null() {
            self.records.mark(self.leaf_place(at))?;
            let leaf = self.leaf(at);
            let next = leaf.next();
            if leaf.count() > self.entry_count {
                return Err(TreeError::Damaged { offset: at.0, what: "a leaf has more entries than fit" });
            }
            if leaf.is_locked() && medium.breaks(canary::NV_TREE_LOCK_BELIEVED) {
                // The broken variant leaves the leaf to the writer that seems to hold it.
                self.unlink(&leaves, next);
                at = next;
                continue;
            }
            leaf.set_version(Version::FIRST);
            let mut greatest = None;
            for (key, position) in leaf.entries() {
                if !position.is_deleted() {
                    self.records.mark_record(position, at)?;
                }
                greatest = greatest.max(Some(key));
            }
            match greatest {
                Some(key) => leaves.push((key, at)),
                None if leaves.is_empty() && next.is_null() => leaves.push((Key::LAST, at)),
                None => {
                    self.unlink(&leaves, next);
                    self.records.retire_place(self.leaf_place(at), leaf_bytes(self.entry_count));
                }
            }
            at = next;
        }
        if leaves.is_empty() {
            return Err(TreeError::Damaged { offset: HEAD.0, what: "there is no leaf" });
        }
        Ok(leaves)
    }

    fn unlink(&self, before: &[(Key, Offset)], next: Offset) {
        match before.last() {
            Some((_, before)) => self.leaf(*before).set_next(next),
            None => {
                self.records.medium.store(HEAD, next.0, Ordering::Release);
                self.records.medium.flush(HEAD.span(8));
            }
        }
    }
}
