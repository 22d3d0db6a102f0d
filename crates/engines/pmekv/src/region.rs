//! The region: its medium, its allocator, and the records that were replaced and may still have readers.

use arrayvec::ArrayVec;
use engine::garbage::GARBAGE_BYTES_MAX;
use engine::{EngineStats, Error, WriteThrottle, may_write, wait_for_readers};
use epoch::{FREED_COUNT_MAX, Limbo};
use heap::{Heap, Reservation};
use index::Position;
use pmem::{Dram, Medium};

use crate::record::{Records, place_of};

/// The region of a store.
pub(crate) struct Region<M: Medium, D: Dram> {
    medium: M,
    heap: Heap<D>,
    /// Replaced records that readers may still use.
    limbo: Limbo<Position>,
    throttle: WriteThrottle,
}

impl<M: Medium, D: Dram> Region<M, D> {
    pub(crate) fn new(medium: M, heap: Heap<D>) -> Region<M, D> {
        Region { medium, heap, limbo: Limbo::bounded(GARBAGE_BYTES_MAX), throttle: WriteThrottle::default() }
    }

    pub(crate) fn medium(&self) -> &M {
        &self.medium
    }

    pub(crate) fn heap(&self) -> &Heap<D> {
        &self.heap
    }

    pub(crate) fn records(&self) -> Records<'_, M> {
        Records(&self.medium)
    }

    /// Returns the error that prevents writes, if there is one.
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        may_write(&self.medium)
    }

    /// Continues after a failed checkpoint unless the medium has failed. The write itself may still find space, as a
    /// delete does.
    pub(crate) fn continue_without_checkpoint(&self, made: Result<(), Error>) -> Result<(), Error> {
        made.or_else(|_| Ok(self.medium.health()?))
    }

    #[inline(always)]
    pub(crate) fn reserve(&self, item_bytes: u64) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(&self.medium, item_bytes, epoch::thread_index())?)
    }

    /// Frees a record once it has no readers. No key has it any more.
    pub(crate) fn retire(&self, old: Position) -> Result<(), Error> {
        let bytes = self.heap.table().place_bytes(place_of(old)?);
        let mut free = ArrayVec::<_, FREED_COUNT_MAX>::new();
        let waiting_bytes = self.limbo.retire(old, bytes, |record| free.push(record));
        if waiting_bytes > 0 {
            self.heap.supply().expect_newly_free(waiting_bytes);
        }
        if !free.is_empty() {
            self.free_all(&free);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn free_all(&self, records: &[Position]) {
        records.iter().filter_map(|record| record.place()).for_each(|place| self.heap.table().expect_free(place));
        records.iter().for_each(|&record| self.free(record));
    }

    pub(crate) fn free(&self, record: Position) {
        let Some(place) = record.place() else { return };
        self.heap.free(&self.medium, place);
    }

    /// Frees the retired records that no reader can use any more. Returns true if others are left.
    pub(crate) fn collect(&self) -> bool {
        self.limbo.collect(|free| self.free(free));
        !self.limbo.is_empty()
    }

    /// Frees retired records, and waits a little for the readers of others.
    pub(crate) fn collect_and_wait(&self) {
        wait_for_readers(|| self.collect() && !epoch::is_pinned());
    }

    /// Throttles a write, before it takes a lock, while too many old records wait for readers.
    #[inline(always)]
    pub(crate) fn bound_garbage(&self) {
        if self.limbo.is_over() {
            self.slow_down();
        }
    }

    #[cold]
    #[inline(never)]
    fn slow_down(&self) {
        self.throttle.throttle(&self.limbo, || _ = self.collect());
    }

    /// Returns the stats of the region; the others are 0.
    pub(crate) fn stats(&self) -> EngineStats {
        EngineStats {
            swept: self.heap.is_swept(),
            garbage_count: self.limbo.len(),
            garbage_bytes: self.limbo.bytes(),
            held_up_count: self.throttle.count(),
            counts: self.medium.counts(),
            ..EngineStats::of_space(self.heap.stats())
        }
    }
}
