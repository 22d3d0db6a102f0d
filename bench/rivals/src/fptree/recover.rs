//! Opening: completes interrupted splits and unlinks, voids locks, and rebuilds the inner nodes from the list.
//!
//! An empty leaf is taken off the list, unless it would be the only one. A crash during any of this leaves a tree that
//! opens in the same way.

use std::sync::atomic::Ordering;

use pmem::{Dram, LINE_BYTES, Medium, Offset};

use super::inner::Inner;
use super::leaf::leaf_bytes;
use super::log::{Change, replay};
use super::{ENTRY_COUNT, FpTree, HEAD, check_entry_count};
use crate::canary;
use crate::key::Key;
use crate::records::Records;
use crate::tree::{TreeError, TreeResult};
use crate::version::Version;

pub(super) fn open<M: Medium, D: Dram>(records: Records<M, D>) -> TreeResult<FpTree<M, D>> {
    let entry_count = records.medium.load(ENTRY_COUNT, Ordering::Acquire);
    check_entry_count(entry_count)?;
    let mut tree = FpTree::new(records, Inner::build(&[(Key::LAST, Offset::NULL)]), entry_count);
    replay(&tree.records.medium, |change| tree.complete(change))?;
    let leaves = tree.collect_leaves()?;
    tree.records.medium.order();
    tree.records.heap.sweep().finish(&tree.records.medium);
    tree.inner = Inner::build(&leaves);
    Ok(tree)
}

impl<M: Medium, D: Dram> FpTree<M, D> {
    fn complete(&self, change: Change) -> TreeResult<()> {
        match change {
            Change::Split { leaf, new } => {
                let [leaf, new] = [self.checked(leaf)?, self.checked(new)?];
                // A full leaf was not split yet.
                if self.leaf(leaf).bitmap() != self.full() {
                    self.leaf(leaf).set_next(new);
                }
            }
            Change::Unlink { leaf, before } => {
                let [leaf, before] = [self.checked(leaf)?, self.checked(before)?];
                if self.leaf(before).next() == leaf {
                    self.leaf(before).set_next(self.leaf(leaf).next());
                }
            }
        }
        Ok(())
    }

    /// Checks an offset that was read from a log.
    fn checked(&self, at: Offset) -> TreeResult<Offset> {
        if !at.0.is_multiple_of(LINE_BYTES) {
            return Err(TreeError::Damaged { offset: at.0, what: "a log names a leaf that is none" });
        }
        self.records.medium.check(at.span(leaf_bytes(self.entry_count)))?;
        Ok(at)
    }

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
            if leaf.version().is_locked() && medium.breaks(canary::FPTREE_LOCK_BELIEVED) {
                // The broken variant leaves the leaf to the writer that seems to hold it.
                self.unlink_in_recovery(&leaves, next);
                at = next;
                continue;
            }
            leaf.set_version(Version::FIRST);
            let mut greatest = None;
            for entry in leaf.entries() {
                self.records.mark_record(leaf.position(entry), at)?;
                greatest = greatest.max(Some(leaf.key(entry)));
            }
            match greatest {
                Some(key) => leaves.push((key, at)),
                None if leaves.is_empty() && next.is_null() => leaves.push((Key::LAST, at)),
                None => {
                    self.unlink_in_recovery(&leaves, next);
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

    fn unlink_in_recovery(&self, before: &[(Key, Offset)], next: Offset) {
        match before.last() {
            Some((_, before)) => self.leaf(*before).set_next(next),
            None => {
                self.records.medium.store(HEAD, next.0, Ordering::Release);
                self.records.medium.flush(HEAD.span(8));
            }
        }
    }
}
