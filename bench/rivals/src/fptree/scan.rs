//! Scans: leaf after leaf, each as it was at one version.

use std::ops::ControlFlow;

use arrayvec::ArrayVec;
use epoch::pin;
use index::Position;
use items::prefetch_ahead;
use pmem::{Dram, Medium};

use super::FpTree;
use super::leaf::{ENTRY_COUNT_MAX, Leaf};
use crate::key::Key;
use crate::tree::{OnPair, TreeResult};
use crate::version::Version;

type Page = ArrayVec<(Key, Position), { ENTRY_COUNT_MAX as usize }>;

impl<M: Medium, D: Dram> FpTree<M, D> {
    /// Shows the keys from `from` on. The next leaf is read only if this one still had it as its next when the next
    /// one's version was noted; otherwise the scan descends again, to the key after the last one shown.
    pub(super) fn scan_from(&self, mut from: Key, each: &mut OnPair<'_>) -> TreeResult<()> {
        let pin = pin();
        let mut page = Page::new();
        let (mut leaf, mut version) = self.seek(from);
        loop {
            let next = (!leaf.next().is_null()).then(|| self.leaf(leaf.next()));
            if let Some(next) = next {
                next.prefetch_entries(self.entry_count);
            }
            self.read_page(leaf, from, &mut page);
            if !leaf.is_at(version) {
                (leaf, version) = self.seek(from);
                continue;
            }
            page.sort_unstable_by_key(|(key, _)| *key);
            for (key, position) in prefetch_ahead(&page, |(_, position)| self.records.prefetch(*position)) {
                let mut flow = ControlFlow::Continue(());
                self.records.value(*position, pin.pinned(), |value| flow = each(&key.bytes(), value))?;
                let (ControlFlow::Continue(()), Some(after)) = (flow, key.next()) else { return Ok(()) };
                from = after;
            }
            let Some(next) = next else { return Ok(()) };
            (leaf, version) = self.successor((leaf, version), next).unwrap_or_else(|| self.seek(from));
        }
    }

    /// Returns the next leaf with its version, if it still is the next one of `leaf` and not locked.
    fn successor<'a>(
        &self,
        (leaf, version): (Leaf<'_, M>, Version),
        next: Leaf<'a, M>,
    ) -> Option<(Leaf<'a, M>, Version)> {
        let next_version = next.version();
        (next_version.is_stable() && leaf.is_at(version)).then_some((next, next_version))
    }

    fn read_page(&self, leaf: Leaf<'_, M>, from: Key, page: &mut Page) {
        page.clear();
        let entries = leaf.entries().map(|entry| (leaf.key(entry), leaf.position(entry)));
        page.extend(entries.filter(|(key, _)| *key >= from));
    }
}
