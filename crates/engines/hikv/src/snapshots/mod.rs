//! Snapshots: the store as it was at one moment, while writes continue
//! (`docs/decisions/0016-take-a-snapshot-by-advancing-an-epoch.md`).
//!
//! Items are stamped with the store's *snapshot epoch*, which advances only when a snapshot is taken, so writes update
//! no counter. A snapshot of epoch s sees the items of stamps up to s. A replaced item that the snapshot sees stays in
//! place, and a side table ([`kept`]) in DRAM records it until no snapshot sees that item any more.
//!
//! # Taking one
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the epoch s enters the set of live snapshots | nothing of it |
//! | 2 the region's epoch word becomes s + 1; ordered | an epoch that no item has yet |
//! | 3 writers find s + 1, and that a snapshot is live | items of stamp s + 1, and the epoch word s + 1 |
//! | 4 every thread that was pinned before 3 has unpinned | the same: live snapshots end with the process |
//!
//! # A write
//! 1. The writer stamps the item with the epoch that it finds.
//! 2. Under the bucket's lock, when the write will otherwise certainly be published, the writer checks the epoch again.
//!    If the epoch has advanced, the writer unlocks, stamps the item again and starts over. If a live snapshot sees the
//!    replaced or removed item, the writer enters that item into the side table.
//! 3. The writer publishes the item.
//!
//! A crash in between leaves the same as without snapshots: the side table is lost, and the items that were only in the
//! table are free space.
//!
//! # Why a snapshot does not change
//! - *Stamps of a key never fall*: each was the epoch while the bucket was locked.
//! - *Every item that a snapshot sees was published before the snapshot was returned.* A writer that found s was pinned
//!   before step 3, and has published before step 4 is over.
//! - *Every such item is found.* Only a write of a later stamp removes an item of stamp s or less from the index. That
//!   write found the snapshot live (1 comes before 3), and had entered the old item before the new one was visible. So
//!   a reader that finds a later item in the index, or none, finds the kept item afterwards.
//! - *At most one version of a key is seen*: each was the key's item from its stamp until that of the next.
//!
//! # The end of a snapshot
//! Each kept item belongs to the newest live snapshot that sees it ([`owners`]). At the end of that snapshot the items
//! that the next older snapshot sees go to that snapshot. The other items are removed from the side table, some hundred
//! at a time. The end of a snapshot and a write both find live snapshots by epoch in a tree, so the number of snapshots
//! does not slow writes.
//!
//! # Lock order
//! taking -> live; bucket -> live -> the side table. The side table's lock is a leaf. No thread waits for a grace
//! period while holding any of the locks.

mod disposal;
mod keep;
mod kept;
mod live;
mod owners;
mod read;
mod take;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};

use engine::Error;
use engine::SnapshotStats;

pub(crate) use disposal::Disposal;
pub(crate) use keep::Replacement;
use kept::Kept;
use live::LiveSnapshots;
pub(crate) use read::SnapshotReader;

/// A store's live snapshots, and the items that they keep.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// The word that writers read: the epoch in the upper half; the newest live snapshot's epoch plus one, or 0 if none
    /// is live, in the lower half.
    summary: AtomicU64,
    /// Held while a snapshot is taken, up to step 3, and while every key is deleted.
    taking: Mutex<()>,
    live: RwLock<LiveSnapshots>,
    kept: Kept,
}

impl Snapshots {
    /// Returns the state of a store of this epoch without snapshots.
    pub(super) fn of_epoch(epoch: u32) -> Snapshots {
        Snapshots {
            summary: AtomicU64::new(summary(epoch, None)),
            taking: Mutex::new(()),
            live: RwLock::default(),
            kept: Kept::default(),
        }
    }

    /// Returns the stamp of an item that is written now.
    #[inline(always)]
    pub(super) fn stamp(&self) -> u32 {
        (self.summary.load(Ordering::Acquire) >> 32) as u32
    }

    /// Returns true if no snapshot was taken since `stamp` was the epoch, and none is live.
    #[inline(always)]
    pub(super) fn has_no_snapshot(&self, stamp: u32) -> bool {
        self.summary.load(Ordering::Acquire) == u64::from(stamp) << 32
    }

    #[inline(always)]
    fn any_is_live(&self) -> bool {
        self.summary.load(Ordering::Acquire) as u32 != 0
    }

    /// Prevents snapshots from being taken.
    ///
    /// # Errors
    /// [`Error::SnapshotLive`] if there is one.
    pub(super) fn exclude(&self) -> Result<MutexGuard<'_, ()>, Error> {
        let taking = self.taking.lock();
        match self.live.read().count() {
            0 => Ok(taking),
            count => Err(Error::SnapshotLive { count }),
        }
    }

    pub(super) fn stats(&self) -> SnapshotStats {
        let live = self.live.read();
        SnapshotStats { snapshot_count: live.count() as u64, oldest_age: live.oldest_age(), ..self.kept.stats() }
    }
}

fn summary(epoch: u32, newest_live: Option<u32>) -> u64 {
    u64::from(epoch) << 32 | newest_live.map_or(0, |newest| u64::from(newest) + 1)
}
