//! Taking and releasing snapshots.

use std::sync::atomic::Ordering;

use epoch::Grace;
use heap::Heap;
use pmem::{Backoff, Dram, Medium};

use super::{Disposal, Snapshots, summary};
use crate::canary;
use engine::{Error, Moment};

/// The number of snapshots that one store can take: stamps have 32 bits, and the summary counts one beyond.
const EPOCH_MAX: u32 = u32::MAX - 1;

impl Snapshots {
    /// Takes a snapshot, at `now_ms` of the store's clock.
    pub(crate) fn take<M: Medium, D: Dram>(
        &self,
        medium: &M,
        heap: &Heap<D>,
        now_ms: impl FnOnce() -> u64,
    ) -> Result<Moment, Error> {
        if epoch::is_pinned() {
            return Err(Error::InsideCallback);
        }
        let taken = self.begin(medium, heap, now_ms)?;
        let (grace, mut backoff) = (Grace::start(), Backoff::long());
        while !medium.breaks(canary::SNAPSHOT_BEFORE_WRITERS) && !grace.is_over() {
            backoff.relax();
        }
        Ok(taken)
    }

    /// Does steps 1 to 3. In a read-only store every item belongs to the snapshot.
    fn begin<M: Medium, D: Dram>(
        &self,
        medium: &M,
        heap: &Heap<D>,
        now_ms: impl FnOnce() -> u64,
    ) -> Result<Moment, Error> {
        let _taking = self.taking.lock();
        let (epoch, now_ms) = (self.stamp(), now_ms());
        if epoch >= EPOCH_MAX {
            return Err(Error::TooManySnapshots { count: u64::from(epoch) });
        }
        self.live.write().add(epoch);
        if medium.is_writable() {
            heap.region().set_snapshot_epoch(medium, epoch + 1);
            let live = self.live.write();
            self.summary.store(summary(epoch + 1, live.newest()), Ordering::Release);
        }
        Ok(Moment::new(epoch, now_ms))
    }

    /// Ends a snapshot, and frees the items that no other snapshot sees.
    pub(crate) fn release<M: Medium, D: Dram>(&self, disposal: Disposal<'_, M, D>, released: Moment) {
        let mut needless = {
            // Under the lock: a writer that found the snapshot live has entered the items that it sees.
            let mut live = self.live.write();
            if !live.remove(released.epoch()) {
                return;
            }
            self.summary.store(summary(self.stamp(), live.newest()), Ordering::Release);
            self.kept.end_snapshot(released.epoch(), live.older_than(released.epoch()))
        };
        while let Some(free) = self.kept.remove_some(&mut needless) {
            free.into_iter().for_each(|position| disposal.retire(Some(position)));
        }
    }
}
