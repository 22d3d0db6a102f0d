//! The live snapshots, by their epochs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

/// The live snapshots.
#[derive(Debug, Default)]
pub(super) struct LiveSnapshots {
    by_epoch: BTreeMap<u32, Live>,
    count: usize,
}

/// The snapshots of one epoch. A store that is open for writing has only one per epoch.
#[derive(Debug)]
struct Live {
    since: Instant,
    count: usize,
}

impl LiveSnapshots {
    pub(super) fn add(&mut self, epoch: u32) {
        self.count += 1;
        self.by_epoch.entry(epoch).or_insert_with(|| Live { since: Instant::now(), count: 0 }).count += 1;
    }

    /// Removes a snapshot; returns true if it was the last of its epoch.
    pub(super) fn remove(&mut self, epoch: u32) -> bool {
        let Entry::Occupied(mut live) = self.by_epoch.entry(epoch) else { return false };
        self.count -= 1;
        live.get_mut().count -= 1;
        let is_last = live.get().count == 0;
        if is_last {
            live.remove();
        }
        is_last
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn newest(&self) -> Option<u32> {
        self.by_epoch.last_key_value().map(|(epoch, _)| *epoch)
    }

    /// Returns the newest snapshot that is older than this epoch.
    pub(super) fn older_than(&self, epoch: u32) -> Option<u32> {
        self.by_epoch.range(..epoch).next_back().map(|(epoch, _)| *epoch)
    }

    /// Returns the newest snapshot that sees an item which its key had from the stamp `from` until `until`.
    pub(super) fn newest_viewer(&self, from: u32, until: u32) -> Option<u32> {
        self.older_than(until).filter(|epoch| from <= *epoch)
    }

    /// Returns the age of the oldest snapshot.
    pub(super) fn oldest_age(&self) -> Duration {
        self.by_epoch.first_key_value().map_or(Duration::ZERO, |(_, oldest)| oldest.since.elapsed())
    }
}
