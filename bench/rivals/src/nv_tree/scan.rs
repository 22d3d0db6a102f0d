//! Scans: leaf after leaf, each as it was when its number of entries was read.

use std::ops::ControlFlow;

use epoch::pin;
use items::prefetch_ahead;
use pmem::{Dram, Medium};

use super::NvTree;
use super::leaf::{AppendLeaf, Entry};
use crate::key::Key;
use crate::tree::{OnPair, TreeResult};

impl<M: Medium, D: Dram> NvTree<M, D> {
    /// Shows the keys from `from` on. The next of a replaced leaf is one that followed it since the scan began, so the
    /// scan need not descend again.
    pub(super) fn scan_from(&self, mut from: Key, each: &mut OnPair<'_>) -> TreeResult<()> {
        let pin = pin();
        let mut page: Vec<Entry> = Vec::with_capacity(self.entry_count as usize);
        let mut leaf = self.seek(from);
        loop {
            read_page(leaf, from, &mut page);
            let next = leaf.next();
            if !next.is_null() {
                self.leaf(next).prefetch_all(self.entry_count);
            }
            for (key, position) in prefetch_ahead(&page, |(_, position)| self.records.prefetch(*position)) {
                let mut flow = ControlFlow::Continue(());
                self.records.value(*position, pin.pinned(), |value| flow = each(&key.bytes(), value))?;
                let (ControlFlow::Continue(()), Some(after)) = (flow, key.next()) else { return Ok(()) };
                from = after;
            }
            if next.is_null() {
                return Ok(());
            }
            leaf = self.leaf(next);
        }
    }
}

/// Collects the newest entries of keys from `from` on that exist, in ascending order.
fn read_page<M: Medium>(leaf: AppendLeaf<'_, M>, from: Key, page: &mut Vec<Entry>) {
    page.clear();
    page.extend(leaf.entries().rev().filter(|(key, _)| *key >= from));
    // Stable: the newest entry of a key comes first.
    page.sort_by_key(|(key, _)| *key);
    page.dedup_by_key(|(key, _)| *key);
    page.retain(|(_, position)| !position.is_deleted());
}
