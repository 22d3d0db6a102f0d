//! Snapshots: the store as it was at one moment, while it is written on (`docs/decisions/0016-snapshots.md`).
//!
//! Items are stamped with the store's *snapshot epoch*, which advances only when a snapshot is taken: no write counts
//! anything. A snapshot of epoch s sees the items of stamps up to s. An item that it sees and that is replaced stays where it
//! is, and a side table ([`kept`]) in volatile memory knows it, until no snapshot sees it any more.
//!
//! # Taking one
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the epoch s enters the set of live snapshots | nothing of it |
//! | 2 the region's epoch word becomes s + 1; ordered | an epoch that no item has yet |
//! | 3 writers find s + 1, and that a snapshot lives | items of stamp s + 1, and the word that says so |
//! | 4 everybody who was pinned before 3 is done | the same: live snapshots end with the process |
//!
//! # A write
//! 1 It stamps its item with the epoch that it finds. 2 Under the bucket's lock, when nothing can keep it from publishing
//! any more, it looks again: if the epoch has advanced, it unlocks, stamps the item anew and starts over; if a live snapshot
//! sees the item that it replaces or removes, it enters that one into the side table. 3 It publishes. A crash between leaves
//! what it leaves without snapshots: the side table is lost, and what it alone knew is free space.
//!
//! # Why a snapshot does not change
//! - *Stamps of a key never fall*: they were the epoch while the bucket was locked.
//! - *What a snapshot sees was published before it was there.* A writer that found s was pinned before step 3, and has
//!   published before step 4 is over.
//! - *What it sees is found.* Only a write of a later stamp takes an item of stamp s or less out of the index; it found
//!   the snapshot live (1 comes before 3), and had entered the item before its own was visible. So who finds a later item in
//!   the index, or none, finds the kept one after that.
//! - *At most one version of a key is seen*: each was the key's item from its stamp until that of the next.
//!
//! # Lock order
//! taking -> live; bucket -> live -> the side table. The side table's lock is a leaf. Nobody waits for a grace period while
//! holding any of them.

mod keep;
mod kept;
mod read;

use crate::canary;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use epoch::Grace;
use parking_lot::{Mutex, MutexGuard, RwLock};
use pmem::{Backoff, Medium};

use super::{HiKv, Memory};
use engine::Error;
use engine::{Moment, SnapshotStats};

pub(super) use keep::Disposal;
use kept::Kept;

/// Snapshots that one store can take: stamps have 32 bits, and the summary counts one beyond.
const EPOCH_MAX: u32 = u32::MAX - 1;

/// A store's live snapshots, and what they keep.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// What writers look at: the epoch above, and below the newest live snapshot's plus one, 0 if none lives.
    summary: AtomicU64,
    /// Held by who takes a snapshot, as far as step 3, and by who deletes every key.
    taking: Mutex<()>,
    /// Oldest first.
    live: RwLock<Vec<Live>>,
    pub(super) kept: Kept,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    epoch: u32,
    since: Instant,
}

impl Snapshots {
    /// No snapshot, in a store of this epoch.
    pub(super) fn of_epoch(epoch: u32) -> Snapshots {
        Snapshots {
            summary: AtomicU64::new(summary(epoch, &[])),
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
    pub(super) fn is_calm(&self, stamp: u32) -> bool {
        self.summary.load(Ordering::Acquire) == u64::from(stamp) << 32
    }

    #[inline(always)]
    fn any_is_live(&self) -> bool {
        self.summary.load(Ordering::Acquire) as u32 != 0
    }

    /// True if some live snapshot sees an item that was its key's from the stamp `from` until `until`.
    fn any_sees(live: &[Live], from: u32, until: u32) -> bool {
        live.iter().any(|snapshot| from <= snapshot.epoch && snapshot.epoch < until)
    }

    /// Keeps snapshots from being taken.
    ///
    /// # Errors
    /// [`Error::SnapshotLive`] if there is one.
    pub(super) fn exclude(&self) -> Result<MutexGuard<'_, ()>, Error> {
        let taking = self.taking.lock();
        match self.live.read().len() {
            0 => Ok(taking),
            count => Err(Error::SnapshotLive { count }),
        }
    }

    pub(super) fn stats(&self) -> SnapshotStats {
        let live = self.live.read();
        SnapshotStats {
            snapshot_count: live.len() as u64,
            oldest_age: live.first().map_or(Duration::ZERO, |oldest| oldest.since.elapsed()),
            ..self.kept.stats()
        }
    }
}

fn summary(epoch: u32, live: &[Live]) -> u64 {
    let newest = live.last().map_or(0, |newest| u64::from(newest.epoch) + 1);
    u64::from(epoch) << 32 | newest
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Takes a snapshot.
    pub(super) fn take_snapshot(&self) -> Result<Moment, Error> {
        if epoch::is_pinned() {
            return Err(Error::InsideCallback);
        }
        let taken = self.begin_snapshot()?;
        let (grace, mut backoff) = (Grace::start(), Backoff::long());
        while !self.medium.breaks(canary::SNAPSHOT_BEFORE_WRITERS) && !grace.is_over() {
            backoff.relax();
        }
        Ok(taken)
    }

    /// Steps 1 to 3. Where nobody may write, every item is of the snapshot.
    fn begin_snapshot(&self) -> Result<Moment, Error> {
        let snapshots = &self.snapshots;
        let _taking = snapshots.taking.lock();
        let (epoch, now_ms) = (snapshots.stamp(), self.clock.now_ms());
        if epoch >= EPOCH_MAX {
            return Err(Error::TooManySnapshots { count: u64::from(epoch) });
        }
        snapshots.live.write().push(Live { epoch, since: Instant::now() });
        if self.medium.is_writable() {
            self.heap.set_snapshot_epoch(&self.medium, epoch + 1);
            let live = snapshots.live.write();
            snapshots.summary.store(summary(epoch + 1, &live), Ordering::Release);
        }
        Ok(Moment::new(epoch, now_ms))
    }

    /// Ends a snapshot, and frees what no other one sees.
    pub(super) fn release_snapshot(&self, released: Moment) {
        let snapshots = &self.snapshots;
        {
            let mut live = snapshots.live.write();
            if let Some(index) = live.iter().position(|snapshot| snapshot.epoch == released.epoch()) {
                live.remove(index);
            }
            snapshots.summary.store(summary(snapshots.stamp(), &live), Ordering::Release);
        }
        let mut next = snapshots.kept.first();
        while let Some(at) = next {
            let free;
            (free, next) = {
                // Under the lock: a snapshot that is taken meanwhile may see what is entered meanwhile.
                let live = snapshots.live.read();
                snapshots.kept.release(&at, |from, until| !Snapshots::any_sees(&live, from, until))
            };
            free.into_iter().for_each(|position| self.disposal().retire(Some(position)));
        }
    }
}
