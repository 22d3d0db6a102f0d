//! Records of keys and values, which lie beside the leaves: HiKV's items, in slots of HiKV's heap.
//!
//! A record is written and flushed before a leaf refers to it; the fence that orders both is the leaf's. A record that
//! no leaf refers to any more is retired, and its slot is free once no thread that was pinned then is pinned still.

use engine::Hasher;
use epoch::{Limbo, Pinned};
use heap::{EngineNumber, Heap, Parameters, Place, Reservation};
use index::Position;
use items::{Expiry, Item, NewItem};
use pmem::{Dram, Medium, Offset};

use crate::key::KeyBytes;
use crate::tree::{TreeError, TreeResult};

const HASH_SEED: u64 = 7;
const UUID: [u8; 16] = *b"a rival of hikv ";

/// A region with a heap: the records, and the places of leaves.
pub struct Records<M: Medium, D: Dram> {
    pub(crate) medium: M,
    pub(crate) heap: Heap<D>,
    pub(crate) hasher: Hasher,
    limbo: Limbo<Place>,
}

impl<M: Medium, D: Dram> Records<M, D> {
    pub(crate) fn format(medium: M, dram: D, number: EngineNumber, region_bytes: u64) -> TreeResult<Records<M, D>> {
        let parameters = Parameters { uuid: UUID, hash_seed: HASH_SEED, partition_count: 1, region_bytes };
        let heap = Heap::format(&medium, number, &parameters, dram)?;
        Ok(Records::of(medium, heap))
    }

    pub(crate) fn open(medium: M, dram: D, number: EngineNumber) -> TreeResult<Records<M, D>> {
        let heap = Heap::open(&medium, number, dram)?;
        Ok(Records::of(medium, heap))
    }

    fn of(medium: M, heap: Heap<D>) -> Records<M, D> {
        Records { medium, heap, hasher: Hasher::new(HASH_SEED), limbo: Limbo::default() }
    }

    /// Returns the medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Returns the bytes of persistent memory in use, by records and leaves.
    pub fn persistent_bytes(&self) -> u64 {
        self.heap.stats().live_bytes
    }

    /// Returns the number of chunks that the heap has made. Making one takes fences of its own.
    pub fn chunk_count(&self) -> u64 {
        self.heap.stats().chunk_count
    }

    /// Frees retired records and leaves that no thread can reach any more; returns the bytes of those that still wait.
    pub fn collect(&self) -> u64 {
        self.limbo.collect(|place| self.heap.free(&self.medium, place));
        self.limbo.bytes()
    }

    /// Writes a record and flushes it.
    #[inline]
    pub(crate) fn write(&self, key: &KeyBytes, value: &[u8]) -> TreeResult<Reservation<'_, D>> {
        let item = NewItem { key, value, expiry: Expiry::NEVER };
        let reservation = self.reserve(item.item_bytes())?;
        // SAFETY: the place was reserved for an item of this length.
        unsafe { item.write(&self.medium, reservation.place().offset, 0) };
        Ok(reservation)
    }

    /// Reserves space for `len_bytes`.
    #[inline]
    pub(crate) fn reserve(&self, len_bytes: u64) -> TreeResult<Reservation<'_, D>> {
        Ok(self.heap.reserve(&self.medium, len_bytes, epoch::thread_index())?)
    }

    /// Calls `found` with the value of the record at `position`, which was read while pinned.
    #[inline(always)]
    pub(crate) fn value(&self, position: Position, _pinned: Pinned<'_>, found: impl FnOnce(&[u8])) -> TreeResult<()> {
        let capacity_bytes = position.slot_bytes().unwrap_or(u64::MAX);
        // SAFETY: records never change, and the caller has been pinned since before it read the position.
        let item = unsafe { Item::read(&self.medium, position.offset(), capacity_bytes) }?;
        found(item.value);
        Ok(())
    }

    /// Prefetches the record at `position`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, position: Position) {
        items::prefetch(&self.medium, position.offset(), position.slot_bytes());
    }

    /// Retires the record at `position`, which nothing refers to any more.
    #[inline]
    pub(crate) fn retire(&self, position: Position) {
        if let Some(place) = position.place() {
            self.retire_place(place, position.slot_bytes().unwrap_or(0));
        }
    }

    pub(crate) fn retire_place(&self, place: Place, bytes: u64) {
        self.limbo.retire(place, bytes, |place| self.heap.free(&self.medium, place));
    }

    /// Marks what recovery has reached. The same place twice is damage.
    pub(crate) fn mark(&self, place: Place) -> TreeResult<()> {
        let damaged = |what| TreeError::Damaged { offset: place.offset.0, what };
        match self.heap.sweep().mark_reached(place) {
            Ok(true) => Ok(()),
            Ok(false) => Err(damaged("a place has two owners")),
            Err(_) => Err(damaged("a leaf refers to a place that is none")),
        }
    }

    /// Marks the record at `position`.
    pub(crate) fn mark_record(&self, position: Position, referrer: Offset) -> TreeResult<()> {
        let place = position.place().filter(|_| !position.is_empty());
        self.mark(place.ok_or(TreeError::Damaged { offset: referrer.0, what: "an entry has no record" })?)
    }
}
