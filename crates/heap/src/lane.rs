//! Lanes: slots are reserved from lanes. Each lane owns one chunk of every kind of slots in use there, and hands out
//! the slots of these chunks.
//!
//! A lane claims the free slots of a bitmap word in one step. A reservation then costs an uncontended lock, one bit
//! and one multiplication. A thread names a preferred lane and moves on to the next if that lane is busy, so a thread
//! that is descheduled while holding a lane hardly ever stalls another thread.
//!
//! On a medium that evicts pages, a chunk with an eighth free slots is taken only if it is in memory or half free:
//! otherwise each page that is read would serve few items. Pages of which all slots are claimed are not read at all
//! (`Residency::overwrite`).
//!
//! A lane with an exhausted chunk gives the chunk up and takes a roomy one (an eighth of the slots are free), then a
//! new one. So a region does not grow while chunks without an owner have an eighth of their slots free. If the region
//! cannot grow, every free slot is found: first in unowned chunks, then in other lanes, then in empty chunks of other
//! kinds (`gather`), last in chunks of somewhat larger slots.

use core::alloc::Layout;
use core::array;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

use pmem::{Dram, Medium, Offset};

use crate::HeapError;
use crate::chunks::Chunks;
use crate::dram_allocator::{DramAllocator, Zeroed};
use crate::layout::unit_start;
use crate::lock::{Guard, Spin};
use crate::record::SlabRef;
use crate::slot_kind::SlotKind;

/// The number of lanes in a heap. More gain nothing on the machines we know, and each holds a chunk of every size in
/// use.
pub const LANE_COUNT: usize = 8;

/// Prefetched bytes of the next slot while the present one is filled: otherwise a writer would wait for its lines.
const PREFETCHED_BYTES_MAX: u64 = 1024;

/// The unit in which a medium evicts.
const PAGE_BYTES: u64 = 4096;

/// A lane's state for one kind of slots: the chunk that the lane owns, and the slots claimed from it.
pub(crate) struct Cursor {
    slab: Option<SlabRef>,
    /// Slots claimed and not handed out, out of 64 slots that start at `claimed_start`.
    claimed: u64,
    claimed_start: Offset,
    next_word: u32,
}

impl Cursor {
    /// Removes and returns a claimed slot.
    #[inline]
    fn pop(&mut self, slot_kind: SlotKind) -> Option<Offset> {
        let slot = self.peek(slot_kind)?;
        self.claimed &= self.claimed - 1;
        Some(slot)
    }

    /// Returns the slot that the next [`Cursor::pop`] will return.
    #[inline]
    fn peek(&self, slot_kind: SlotKind) -> Option<Offset> {
        let slot = self.claimed.trailing_zeros();
        (self.claimed != 0).then(|| self.claimed_start.plus(u64::from(slot) * slot_kind.geometry().slot_bytes))
    }

    /// Returns a slot of the lane's chunk. Restarts from the front if the chunk has become roomy again.
    fn pop_or_claim<M: Medium>(&mut self, medium: &M, slot_kind: SlotKind) -> Option<Offset> {
        let slab = self.slab?;
        if self.claimed == 0 {
            if !self.claim_from(slab, self.next_word) && slab.is_roomy() {
                self.claim_from(slab, 0);
            }
            if medium.evicts() && slab.geometry().slot_bytes < PAGE_BYTES {
                self.overwrite_claimed(medium, slab);
            }
        }
        self.pop(slot_kind)
    }

    /// Gives up the content of the claimed slots, and of the free ones behind them in their last page. Slots of a page
    /// or more need not be claimed for that: all of their bytes are stored.
    fn overwrite_claimed<M: Medium>(&self, medium: &M, slab: SlabRef) {
        let (mut left, slot_bytes) = (self.claimed, slab.geometry().slot_bytes);
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            let past = first + count;
            left = left.checked_shr(past).map_or(0, |rest| rest << past);
            let behind = if past == u64::BITS { slab.free_at_start(self.next_word) } else { 0 };
            let start = self.claimed_start.plus(u64::from(first) * slot_bytes);
            let end = start.0 + u64::from(count) * slot_bytes;
            let end = (end + u64::from(behind) * slot_bytes).min(end.next_multiple_of(PAGE_BYTES));
            // SAFETY: the slots are free, or claimed by this lane and not handed out, so no reader has them; only the
            // owner of the chunk hands them out, and the caller has it locked.
            unsafe { medium.overwrite(start.span(end - start.0)) };
        }
    }

    /// Returns a slot of the lane's chunk, however few are free.
    pub(crate) fn pop_or_scrape(&mut self, slot_kind: SlotKind) -> Option<Offset> {
        let slab = self.slab?;
        if self.claimed == 0 {
            self.claim_from(slab, 0);
        }
        self.pop(slot_kind)
    }

    fn claim_from(&mut self, slab: SlabRef, first_word: u32) -> bool {
        for word in first_word..slab.geometry().word_count() {
            self.claimed = slab.claim_word(word);
            if self.claimed != 0 {
                self.claimed_start = unit_start(slab.start_unit()).plus(slab.geometry().slot_start(word * 64));
                self.next_word = word + 1;
                return true;
            }
        }
        self.next_word = slab.geometry().word_count();
        false
    }

    /// Frees the slots that are claimed and not handed out, and returns the chunk, which the lane no longer owns.
    pub(crate) fn resign(&mut self) -> Option<SlabRef> {
        let slab = self.slab.take()?;
        while self.claimed != 0 {
            // Claimed slots belong to the word before `next_word`.
            slab.free_slot((self.next_word - 1) * 64 + self.claimed.trailing_zeros());
            self.claimed &= self.claimed - 1;
        }
        Some(slab)
    }

    /// Returns the bytes of slots that are claimed and not in use.
    pub(crate) fn claimed_bytes(&self, slot_kind: SlotKind) -> u64 {
        u64::from(self.claimed.count_ones()) * slot_kind.geometry().slot_bytes
    }
}

type Lane = [Spin<Cursor>; SlotKind::COUNT];

struct AllLanes {
    /// The lanes of threads, followed by the mover's.
    lanes: [Lane; LANE_COUNT + 1],
    /// True for each kind of which any lane ever owned a chunk. Walks of all cursors skip the other kinds, which are
    /// most.
    used: [AtomicBool; SlotKind::COUNT],
}

// SAFETY: zero bytes are an unlocked lock, no chunk (`SlabRef` is a transparent `NonNull`), integers of 0, and `false`.
unsafe impl Zeroed for AllLanes {}

/// The lanes of a heap.
pub(crate) struct Lanes {
    all: NonNull<AllLanes>,
}

// SAFETY: the lanes own the memory that they point at: locks around values that may be sent.
unsafe impl Send for Lanes {}
// SAFETY: as above.
unsafe impl Sync for Lanes {}

impl Lanes {
    pub(crate) fn new<D: Dram>(allocator: &DramAllocator<D>) -> Result<Lanes, HeapError> {
        Ok(Lanes { all: allocator.allocate_zeroed()? })
    }

    /// Frees the memory.
    ///
    /// # Safety
    /// The lanes are no longer used.
    pub(crate) unsafe fn deallocate<D: Dram>(&self, allocator: &DramAllocator<D>) {
        // SAFETY: allocated by `new` with this layout, and the caller gives up its use.
        unsafe { allocator.deallocate(self.all.cast(), Layout::new::<AllLanes>()) };
    }

    /// Returns every lane's cursor for a kind of slots, the preferred lane first.
    #[inline]
    fn from(&self, lane: usize, slot_kind: SlotKind) -> [&Spin<Cursor>; LANE_COUNT] {
        array::from_fn(|i| &self.all().lanes[(lane % LANE_COUNT + i) % LANE_COUNT][slot_kind.index()])
    }

    /// Returns the cursor that fills target chunks with moved items; see `evacuation.rs`.
    pub(crate) fn mover(&self, slot_kind: SlotKind) -> &Spin<Cursor> {
        &self.all().lanes[LANE_COUNT][slot_kind.index()]
    }

    /// Locks the preferred lane's cursor, unless it is busy.
    #[inline(always)]
    fn try_lock(&self, lane: usize, slot_kind: SlotKind) -> Option<Guard<'_, Cursor>> {
        self.all().lanes[lane % LANE_COUNT][slot_kind.index()].try_lock()
    }

    /// Locks the preferred lane's cursor, or the next one that is not busy.
    #[inline]
    fn lock(&self, lane: usize, slot_kind: SlotKind) -> Guard<'_, Cursor> {
        self.try_lock(lane, slot_kind).unwrap_or_else(|| self.lock_another(lane, slot_kind))
    }

    #[cold]
    fn lock_another(&self, lane: usize, slot_kind: SlotKind) -> Guard<'_, Cursor> {
        let cursors = self.from(lane, slot_kind);
        cursors.iter().find_map(|cursor| cursor.try_lock()).unwrap_or_else(|| cursors[0].lock())
    }

    /// Makes a cursor the owner of a chunk of its kind.
    pub(crate) fn adopt(&self, cursor: &mut Cursor, slot_kind: SlotKind, slab: SlabRef) {
        self.all().used[slot_kind.index()].store(true, Ordering::Release);
        *cursor = Cursor { slab: Some(slab), claimed: 0, claimed_start: Offset::NULL, next_word: 0 };
    }

    /// Iterates over every cursor that may own a chunk, with its kind of slots.
    pub(crate) fn cursors(&self) -> impl Iterator<Item = (SlotKind, &Spin<Cursor>)> {
        let AllLanes { lanes, used } = self.all();
        let used = (0..SlotKind::COUNT).filter(|&index| used[index].load(Ordering::Acquire));
        used.flat_map(move |index| lanes.iter().map(move |lane| (SlotKind::from_index(index as u8), &lane[index])))
    }

    /// Reserves a slot if the preferred lane has one claimed and is not busy.
    #[inline(always)]
    pub(crate) fn slot_at_hand<M: Medium>(&self, medium: &M, slot_kind: SlotKind, lane: usize) -> Option<Offset> {
        let mut cursor = self.try_lock(lane, slot_kind)?;
        let offset = cursor.pop(slot_kind)?;
        if let Some(next) = cursor.peek(slot_kind) {
            medium.prefetch_for_stream(next.span(slot_kind.geometry().slot_bytes.min(PREFETCHED_BYTES_MAX)));
        }
        Some(offset)
    }

    /// Reserves a slot.
    pub(crate) fn take_slot<M: Medium, D: Dram>(
        &self,
        chunks: &Chunks<D>,
        medium: &M,
        slot_kind: SlotKind,
        lane: usize,
    ) -> Result<Offset, HeapError> {
        if let Some(offset) = self.slot_at_hand(medium, slot_kind, lane) {
            return Ok(offset);
        }
        self.gathering(chunks, medium, || {
            let mut cursor = self.lock(lane, slot_kind);
            let refilled = self.refill(chunks, medium, slot_kind, &mut cursor);
            drop(cursor);
            refilled.or_else(|error| self.take_from_any_lane(slot_kind, lane, error))
        })
    }

    /// Reserves a slot of the existing chunks, in a region that cannot grow.
    #[cold]
    pub(crate) fn take_free_slot<M: Medium, D: Dram>(
        &self,
        chunks: &Chunks<D>,
        medium: &M,
        slot_kind: SlotKind,
        lane: usize,
    ) -> Option<Offset> {
        let mut cursor = self.lock(lane, slot_kind);
        loop {
            if let Some(offset) = cursor.pop_or_scrape(slot_kind) {
                return Some(offset);
            }
            if let Some(slab) = cursor.slab.take() {
                chunks.disown(medium, slab);
            }
            let roomy = chunks.lock().take_roomy(slot_kind);
            let Some(slab) = roomy.or_else(|| chunks.idle_slab(slot_kind)) else { break };
            self.adopt(&mut cursor, slot_kind, slab);
        }
        drop(cursor);
        self.scrape_lanes(slot_kind, lane)
    }

    /// Reserves slots that a lane has claimed, and returns how many.
    pub(crate) fn take_claimed(&self, slot_kind: SlotKind, lane: usize, offsets: &mut [Offset]) -> usize {
        let mut cursor = self.lock(lane, slot_kind);
        let taken = offsets.iter_mut().map_while(|offset| cursor.pop(slot_kind).map(|slot| *offset = slot));
        taken.count()
    }

    /// Returns the next slot of a lane that has none claimed, from another chunk if necessary.
    #[cold]
    #[inline(never)]
    fn refill<M: Medium, D: Dram>(
        &self,
        chunks: &Chunks<D>,
        medium: &M,
        slot_kind: SlotKind,
        cursor: &mut Cursor,
    ) -> Result<Offset, HeapError> {
        loop {
            if let Some(offset) = cursor.pop_or_claim(medium, slot_kind) {
                return Ok(offset);
            }
            if let Some(slab) = cursor.slab.take() {
                chunks.disown(medium, slab);
            }
            let slab = chunks.owned_slab(medium, slot_kind)?;
            self.adopt(cursor, slot_kind, slab);
        }
    }

    /// Makes every lane give up its chunk and its claimed slots, so that the chunks' records include every free slot.
    pub(crate) fn empty<M: Medium, D: Dram>(&self, chunks: &Chunks<D>, medium: &M) {
        for (_, cursor) in self.cursors() {
            if let Some(slab) = cursor.lock().resign() {
                chunks.disown(medium, slab);
            }
        }
    }

    /// Returns a slot of any lane, in a region that cannot grow; otherwise `error`, the reason why it cannot.
    fn take_from_any_lane(&self, slot_kind: SlotKind, lane: usize, error: HeapError) -> Result<Offset, HeapError> {
        if !error.is_full() {
            return Err(error);
        }
        self.scrape_lanes(slot_kind, lane).ok_or(error)
    }

    fn scrape_lanes(&self, slot_kind: SlotKind, lane: usize) -> Option<Offset> {
        let mut lanes = self.from(lane, slot_kind).into_iter().chain([self.mover(slot_kind)]);
        lanes.find_map(|cursor| cursor.lock().pop_or_scrape(slot_kind))
    }

    /// Returns the bytes of slots that lanes have claimed and not handed out.
    pub(crate) fn claimed_bytes(&self) -> u64 {
        self.cursors().map(|(slot_kind, cursor)| cursor.lock().claimed_bytes(slot_kind)).sum()
    }

    #[inline]
    fn all(&self) -> &AllLanes {
        // SAFETY: allocated by `new`, and freed only when the lanes are no longer used.
        unsafe { self.all.as_ref() }
    }
}
