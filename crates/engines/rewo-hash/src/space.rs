//! The store's space: the allocator, and the garbage that readers keep from it.

use engine::garbage::GARBAGE_BYTES_MAX;
use engine::{EngineStats, Error, WriteThrottle, wait_for_readers};
use epoch::Limbo;
use heap::{Heap, Reservation};
use index::Position;
use index::block_hash::{Cleared, Slot};
use index::segmented::{Context, Garbage};
use pmem::{Dram, Medium};

/// The allocator, and the unlinked objects that wait for readers.
pub(crate) struct Space<D: Dram> {
    heap: Heap<D>,
    limbo: Limbo<Garbage>,
    cleared: Limbo<Cleared>,
    throttle: WriteThrottle,
}

impl<D: Dram> Space<D> {
    pub(crate) fn new(heap: Heap<D>) -> Space<D> {
        let limbo = Limbo::bounded(GARBAGE_BYTES_MAX);
        Space { heap, limbo, cleared: Limbo::default(), throttle: WriteThrottle::default() }
    }

    #[inline(always)]
    pub(crate) fn heap(&self) -> &Heap<D> {
        &self.heap
    }

    #[inline(always)]
    pub(crate) fn cx<'a, M>(&'a self, medium: &'a M) -> Context<'a, M, D> {
        Context { medium, heap: &self.heap, limbo: &self.limbo }
    }

    /// Reserves space for an item.
    #[inline(always)]
    pub(crate) fn reserve<M: Medium>(&self, medium: &M, item_bytes: u64) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(medium, item_bytes, epoch::thread_index())?)
    }

    /// Throttles a write that leaves garbage, before it takes a lock. The caller holds no lock.
    #[inline(always)]
    pub(crate) fn bound_garbage<M: Medium>(&self, medium: &M) {
        if self.limbo.is_over() {
            self.slow_down(medium);
        }
    }

    #[cold]
    #[inline(never)]
    fn slow_down<M: Medium>(&self, medium: &M) {
        self.throttle.throttle(&self.limbo, || _ = self.collect(medium));
    }

    /// Retires the item of a replaced slot.
    #[inline(always)]
    pub(crate) fn retire<M: Medium>(&self, medium: &M, old: Option<&Slot>) {
        let place = old.and_then(Slot::position).and_then(Position::place);
        place.into_iter().for_each(|place| self.cx(medium).retire(Garbage::of(place)));
    }

    /// Retires everything that a `clear` unlinked, and frees it unless readers keep it. If the caller is pinned itself
    /// (it is reading a value), or if a reader takes long, the background frees the items.
    pub(crate) fn retire_cleared<M: Medium>(&self, medium: &M, cleared: Cleared) {
        self.cleared.retire(cleared, 0, |cleared| cleared.free(self.cx(medium)));
        self.wait_while(medium, || !self.cleared.is_empty());
    }

    /// Gives readers some time to unpin, and frees garbage, unless the caller is pinned itself.
    pub(crate) fn wait_for_garbage<M: Medium>(&self, medium: &M) {
        self.wait_while(medium, || !self.limbo.is_empty());
    }

    fn wait_while<M: Medium>(&self, medium: &M, is_kept: impl Fn() -> bool) {
        wait_for_readers(|| {
            self.collect(medium);
            is_kept() && !epoch::is_pinned()
        });
    }

    /// Returns true while readers may keep garbage.
    pub(crate) fn has_garbage(&self) -> bool {
        !self.limbo.is_empty() || !self.cleared.is_empty()
    }

    /// Frees garbage that no reader can reach any more. Returns true if there was any.
    pub(crate) fn collect<M: Medium>(&self, medium: &M) -> bool {
        let cleared = self.cleared.collect(|cleared| cleared.free(self.cx(medium)));
        self.cx(medium).collect() || cleared
    }

    pub(crate) fn stats(&self) -> EngineStats {
        EngineStats {
            garbage_count: self.limbo.len() + self.cleared.len(),
            garbage_bytes: self.limbo.bytes(),
            held_up_count: self.throttle.count(),
            ..EngineStats::of_space(self.heap.stats())
        }
    }
}
