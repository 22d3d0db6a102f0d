//! Space: the allocator, the sweep that finds free space after an open, and garbage that readers may still read, with
//! the bound of it (`engine::garbage`).

mod background;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use epoch::Limbo;
use heap::{FEATURE_EXPIRY, Heap, Reservation};
use index::partitioned_hash::{Cleared, Context, Garbage};
use index::segmented::{self, Misplacement};
use parking_lot::{Mutex, MutexGuard};
use pmem::{Dram, Medium, Offset};

use crate::read::Reader;
use engine::garbage::GARBAGE_BYTES_MAX;
use engine::{EngineStats, Error, Expiry, WriteThrottle, wait_for_readers};

pub(crate) use background::Background;

/// The space of a region.
pub(crate) struct Space<D: Dram> {
    heap: Heap<D>,
    limbo: Limbo<Garbage>,
    cleared: Limbo<Cleared>,
    throttle: WriteThrottle,
    /// Every entry is counted, and free space is known unless the store is damaged or read-only.
    swept: AtomicBool,
    background: Mutex<Background>,
}

impl<D: Dram> Space<D> {
    pub(crate) fn new(heap: Heap<D>) -> Space<D> {
        let swept = heap.is_swept();
        Space {
            heap,
            limbo: Limbo::bounded(GARBAGE_BYTES_MAX),
            cleared: Limbo::default(),
            throttle: WriteThrottle::default(),
            swept: swept.into(),
            background: Mutex::new(Background::default()),
        }
    }

    #[inline(always)]
    pub(crate) fn heap(&self) -> &Heap<D> {
        &self.heap
    }

    /// Returns the context of a change of the index.
    #[inline(always)]
    pub(crate) fn cx<'a, M: Medium>(&'a self, medium: &'a M) -> Context<'a, M, D> {
        Context { medium, heap: &self.heap, limbo: &self.limbo }
    }

    #[inline(always)]
    pub(crate) fn reserve<M: Medium>(&self, medium: &M, len_bytes: u64) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(medium, len_bytes, epoch::thread_index())?)
    }

    /// Reserves space for an item of this expiry.
    #[inline(always)]
    pub(crate) fn reserve_for<M: Medium>(
        &self,
        medium: &M,
        expiry: Expiry,
        item_bytes: u64,
    ) -> Result<Reservation<'_, D>, Error> {
        if !expiry.is_never() {
            self.announce(medium);
        }
        Ok(self.heap.reserve(medium, item_bytes, epoch::thread_index())?)
    }

    /// Sets the feature flag before an item that expires is written.
    #[inline(always)]
    pub(crate) fn announce<M: Medium>(&self, medium: &M) {
        self.heap.region().set_features(medium, FEATURE_EXPIRY);
    }

    /// Returns true if items may have expired that were not reaped yet.
    #[inline(always)]
    pub(crate) fn may_expire(&self) -> bool {
        self.heap.region().has_features(FEATURE_EXPIRY)
    }

    /// Returns true if so much garbage waits that writers are slowed.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.limbo.is_over()
    }

    /// Slows a write. Called without a lock.
    pub(crate) fn slow_down<M: Medium>(&self, medium: &M) {
        self.throttle.throttle(&self.limbo, || _ = self.collect(medium));
    }

    /// Frees garbage that no reader can reach any more; returns true if there was any.
    pub(crate) fn collect<M: Medium>(&self, medium: &M) -> bool {
        let cleared = self.cleared.collect(|cleared| cleared.free(self.cx(medium)));
        self.cx(medium).collect() || cleared
    }

    /// Returns true while readers may keep garbage.
    pub(crate) fn has_garbage(&self) -> bool {
        self.has_retired() || !self.cleared.is_empty()
    }

    /// Returns true while readers may keep retired items or segments.
    pub(crate) fn has_retired(&self) -> bool {
        !self.limbo.is_empty()
    }

    /// Frees garbage once no reader has it. Waits for that for a limited time, unless the caller is such a reader.
    pub(crate) fn await_readers<M: Medium>(&self, medium: &M) {
        wait_for_readers(|| {
            self.collect(medium);
            self.has_retired() && !epoch::is_pinned()
        });
    }

    /// Retires the segments of an index that was cleared, and frees them once no reader has them. A caller that is
    /// pinned itself (it reads a value) leaves the freeing to the background. So does a caller that would wait for a
    /// slow reader.
    pub(crate) fn retire_cleared<M: Medium>(&self, medium: &M, cleared: Cleared) {
        self.cleared.retire(cleared, 0, |cleared| cleared.free(self.cx(medium)));
        wait_for_readers(|| {
            self.collect(medium);
            !self.cleared.is_empty() && !epoch::is_pinned()
        });
    }

    pub(crate) fn is_swept(&self) -> bool {
        self.swept.load(Ordering::Acquire)
    }

    /// Sweeps one segment.
    pub(crate) fn sweep_step<M: Medium>(&self, reader: &Reader<M>, background: &mut Background) -> Result<(), Error> {
        let cx = self.cx(reader.medium());
        let sweep = |from, misplaced: &mut dyn FnMut(Misplacement)| reader.index().sweep(cx, from, misplaced);
        Ok(background.sweep.step(cx, &self.swept, sweep)?)
    }

    /// Finishes the sweep; segments that other threads have swept are not swept again.
    pub(crate) fn finish_sweep<M: Medium>(&self, reader: &Reader<M>) -> Result<(), Error> {
        let step = |background: &mut Background| self.sweep_step(reader, background);
        segmented::finish_sweep(&self.swept, || self.background.lock(), step)
    }

    /// Returns an entry that names no valid place, if the sweep has met one.
    pub(crate) fn misplaced(&self) -> Option<Offset> {
        self.background.lock().sweep.misplaced()
    }

    /// Stops sweep, growth and reaper while the guard is held. The caller is not pinned.
    pub(crate) fn pause_background(&self) -> MutexGuard<'_, Background> {
        self.background.lock()
    }

    /// Returns the background's work, unless another thread has it for all of this time.
    pub(crate) fn background_within(&self, time: Duration) -> Option<MutexGuard<'_, Background>> {
        if time.is_zero() { self.background.try_lock() } else { self.background.try_lock_for(time) }
    }

    /// Returns the space's share of the statistics.
    pub(crate) fn stats(&self) -> EngineStats {
        EngineStats {
            swept: self.is_swept(),
            garbage_count: self.limbo.len() + self.cleared.len(),
            garbage_bytes: self.limbo.bytes(),
            held_up_count: self.throttle.count(),
            ..EngineStats::of_space(self.heap.stats())
        }
    }
}
