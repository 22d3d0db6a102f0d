//! Snapshots: the store as it was at one moment, while writes go on (`docs/decisions/0016-take-a-snapshot-by-advancing-an-epoch.md`).
//!
//! Items are stamped with the store's *snapshot epoch*, which advances only when a snapshot is taken: no write counts
//! anything. A snapshot of epoch s sees the items of stamps up to s. A replaced item that the snapshot sees stays in place,
//! and a side table ([`kept`]) in volatile memory has it, until no snapshot sees that item any more.
//!
//! # Taking one
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the epoch s enters the set of live snapshots | nothing of it |
//! | 2 the region's epoch word becomes s + 1; ordered | an epoch that no item has yet |
//! | 3 writers find s + 1, and that a snapshot lives | items of stamp s + 1, and the word that says so |
//! | 4 every thread that was pinned before 3 is done | the same: live snapshots end with the process |
//!
//! # A write
//! 1 The writer stamps the item with the epoch that it finds. 2 Under the bucket's lock, when nothing can keep the write
//! from publishing any more, the writer looks again: if the epoch has advanced, it unlocks, stamps the item anew and starts
//! over; if a live snapshot sees the item that is replaced or removed, the writer enters that one into the side table. 3 It
//! publishes. A crash between leaves what it leaves without snapshots: the side table is lost, and what it alone knew is
//! free space.
//!
//! # Why a snapshot does not change
//! - *Stamps of a key never fall*: they were the epoch while the bucket was locked.
//! - *What a snapshot sees was published before it was there.* A writer that found s was pinned before step 3, and has
//!   published before step 4 is over.
//! - *What it sees is found.* Only a write of a later stamp takes an item of stamp s or less out of the index; that write found the
//!   snapshot live (1 comes before 3), and had entered the item before its own was visible. So a reader that finds a later item in
//!   the index, or none, finds the kept one after that.
//! - *At most one version of a key is seen*: each was the key's item from its stamp until that of the next.
//!
//! # The end of a snapshot
//! Each kept item belongs to the newest live snapshot that sees it ([`owners`]). At the end of that snapshot the items go to the next older snapshot, where
//! that sees the items, and out of the side table otherwise, some hundred at a time. Both the end of a snapshot and a write look live snapshots up by their
//! epochs, in a tree: their number does not slow writes.
//!
//! # Lock order
//! taking -> live; bucket -> live -> the side table. The side table's lock is a leaf. Nobody waits for a grace period while
//! holding any of them.

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

pub(super) use disposal::Disposal;
use kept::Kept;
use live::LiveSnapshots;

/// A store's live snapshots, and what they keep.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// What writers look at: the epoch above, and below the newest live snapshot's plus one, 0 if none lives.
    summary: AtomicU64,
    /// Held while a snapshot is taken, as far as step 3, and while every key is deleted.
    taking: Mutex<()>,
    live: RwLock<LiveSnapshots>,
    pub(super) kept: Kept,
}

impl Snapshots {
    /// No snapshot, in a store of this epoch.
    pub(super) fn of_epoch(epoch: u32) -> Snapshots {
        Snapshots {
            summary: AtomicU64::new(summary(epoch, None)),
            taking: Mutex::new(()),
            live: RwLock::default(),
            kept: Kept::default(),
        }
    }

    /// What an item that is written now is stamped with.
    #[inline(always)]
    pub(super) fn stamp(&self) -> u32 {
        (self.summary.load(Ordering::Acquire) >> 32) as u32
    }

    /// True if no snapshot was taken since `stamp` was the epoch, and none is live.
    #[inline(always)]
    pub(super) fn has_no_snapshot(&self, stamp: u32) -> bool {
        self.summary.load(Ordering::Acquire) == u64::from(stamp) << 32
    }

    #[inline(always)]
    fn any_is_live(&self) -> bool {
        self.summary.load(Ordering::Acquire) as u32 != 0
    }

    /// Keeps snapshots from being taken.
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
