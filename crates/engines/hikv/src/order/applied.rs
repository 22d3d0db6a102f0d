//! Counts of applied changes: for statistics, and for a pool that splits its threads between serving and applying.

use std::sync::atomic::{AtomicU64, Ordering};

use super::change::Change;

/// The counts of one queue, written by its drainer.
#[derive(Debug, Default)]
pub(super) struct Applied {
    change_count: AtomicU64,
    update_count: AtomicU64,
}

impl Applied {
    /// Adds a group that was applied.
    pub(super) fn add(&self, group: &[Change]) {
        let updates = group.iter().filter(|change| change.old.is_some() && change.new.is_some()).count();
        self.change_count.fetch_add(group.len() as u64, Ordering::Relaxed);
        self.update_count.fetch_add(updates as u64, Ordering::Relaxed);
    }

    /// Returns the number of changes, and of updates among them.
    pub(super) fn counts(&self) -> [u64; 2] {
        [&self.change_count, &self.update_count].map(|count| count.load(Ordering::Relaxed))
    }
}
