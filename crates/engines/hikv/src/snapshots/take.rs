//! Taking and releasing snapshots.

use std::sync::atomic::Ordering;

use epoch::Grace;
use pmem::{Backoff, Medium};

use super::summary;
use crate::canary;
use crate::{HiKv, Memory};
use engine::{Error, Moment};

/// The number of snapshots that one store can take: stamps have 32 bits, and the summary counts one beyond.
const EPOCH_MAX: u32 = u32::MAX - 1;

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

    /// Does steps 1 to 3. In a read-only store every item belongs to the snapshot.
    fn begin_snapshot(&self) -> Result<Moment, Error> {
        let snapshots = &self.snapshots;
        let _taking = snapshots.taking.lock();
        let (epoch, now_ms) = (snapshots.stamp(), self.clock.now_ms());
        if epoch >= EPOCH_MAX {
            return Err(Error::TooManySnapshots { count: u64::from(epoch) });
        }
        snapshots.live.write().add(epoch);
        if self.medium.is_writable() {
            self.heap.region().set_snapshot_epoch(&self.medium, epoch + 1);
            let live = snapshots.live.write();
            snapshots.summary.store(summary(epoch + 1, live.newest()), Ordering::Release);
        }
        Ok(Moment::new(epoch, now_ms))
    }

    /// Ends a snapshot, and frees the items that no other snapshot sees.
    pub(super) fn release_snapshot(&self, released: Moment) {
        let snapshots = &self.snapshots;
        let mut needless = {
            // Under the lock: a writer that found the snapshot live has entered the items that it sees.
            let mut live = snapshots.live.write();
            if !live.remove(released.epoch()) {
                return;
            }
            snapshots.summary.store(summary(snapshots.stamp(), live.newest()), Ordering::Release);
            snapshots.kept.end_snapshot(released.epoch(), live.older_than(released.epoch()))
        };
        while let Some(free) = snapshots.kept.remove_some(&mut needless) {
            free.into_iter().for_each(|position| self.disposal().retire(Some(position)));
        }
    }
}
