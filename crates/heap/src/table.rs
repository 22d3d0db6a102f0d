//! The table of units: the chunk that each unit belongs to. It has two levels in DRAM; leaves are allocated as the
//! high-water mark rises.
//!
//! Every leaf below the mark exists. Each unit of a slab has a reference to the slab's record. Extents and free runs
//! are entered at the first unit, and free runs also at the last, so that a neighbour can find where the run starts.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use pmem::{Dram, Offset};

use crate::dram_allocator::{DramAllocator, Zeroed};
use crate::layout::{
    CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, REGION_UNITS_MAX, SEGMENT_BYTES, UNIT_BYTES, unit_of, unit_start,
};
use crate::place::{Place, PlaceKind, extent_capacity_bytes};
use crate::record::{Link, SlabRef};
use crate::slab::State;
use crate::slot_kind::SlotKind;
use crate::{HeapError, InvalidPlace};

/// The units that a leaf covers: 256 MiB of region.
const LEAF_UNITS: usize = 4_096;
const LEAF_COUNT: usize = REGION_UNITS_MAX as usize / LEAF_UNITS;

/// The table's entry for one unit.
pub(crate) struct Entry {
    tag: AtomicU32,
    /// The chunk's length in units, at the ends of extents and free runs.
    units: AtomicU32,
    /// Neighbours of a free run in its list; see `runs.rs`.
    pub(crate) next: AtomicU32,
    pub(crate) previous: AtomicU32,
    slab: Link,
}

/// The kind of a unit. For an extent or a free chunk that is older than the heap, also the state of its sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag(u32);

impl Tag {
    /// Inside an extent or a free run, or above the mark.
    pub(crate) const NOTHING: Tag = Tag(0);
    /// The first unit of a free run.
    pub(crate) const FREE: Tag = Tag(1);
    /// The last unit of a free run of more than one.
    pub(crate) const FREE_END: Tag = Tag(2);
    /// The first unit of an extent.
    pub(crate) const EXTENT: Tag = Tag(3);
    /// A unit of a chunk of slots; the bits from [`SHAPE_SHIFT`] and [`WITHIN_SHIFT`] identify the kind and the unit.
    const SLAB: u32 = 4;
    const KIND: u32 = 7;
    /// The sweep has not decided yet.
    pub(crate) const UNSWEPT: Tag = Tag(1 << 3);
    /// The sweep has found an owner.
    pub(crate) const REACHED: Tag = Tag(1 << 4);
    /// Freed; waits for the sweep, or is about to become a free run.
    pub(crate) const RETIRED: Tag = Tag(1 << 5);

    /// Of a free run: some of its pages may have no space and must be allocated before use; see `holes.rs`.
    pub(crate) const HOLED: Tag = Tag(1 << 6);
    /// Of a free run: some of its pages may have space that can be returned to the file system.
    pub(crate) const SPACED: Tag = Tag(1 << 7);

    /// Returns the tag of unit number `within` of a chunk of slots.
    fn slab(slot_kind: SlotKind, within: u32) -> Tag {
        Tag(Tag::SLAB | (slot_kind.index() as u32) << SHAPE_SHIFT | within << WITHIN_SHIFT)
    }

    pub(crate) const fn with(self, flag: Tag) -> Tag {
        Tag(self.0 | flag.0)
    }

    pub(crate) const fn without(self, flag: Tag) -> Tag {
        Tag(self.0 & !flag.0)
    }

    pub(crate) const fn has(self, flag: Tag) -> bool {
        self.0 & flag.0 != 0
    }

    /// Returns the flags of a free run's tag that describe its space.
    pub(crate) const fn space(self) -> Tag {
        Tag(self.0 & (Tag::HOLED.0 | Tag::SPACED.0))
    }

    pub(crate) const fn is_extent(self) -> bool {
        self.0 & Tag::KIND == Tag::EXTENT.0
    }

    pub(crate) const fn is_free(self) -> bool {
        self.0 & Tag::KIND == Tag::FREE.0
    }

    /// Returns the kind of slots of the chunk that the unit belongs to, and the unit's number within the chunk.
    pub(crate) const fn slot_kind(self) -> Option<(SlotKind, u32)> {
        if self.0 & Tag::KIND != Tag::SLAB {
            return None;
        }
        Some((SlotKind::from_index((self.0 >> SHAPE_SHIFT) as u8), self.0 >> WITHIN_SHIFT))
    }
}

const SHAPE_SHIFT: u32 = 8;
const WITHIN_SHIFT: u32 = 16;

impl Entry {
    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        Tag(self.tag.load(Ordering::Acquire))
    }

    pub(crate) fn units(&self) -> u32 {
        self.units.load(Ordering::Relaxed)
    }

    /// Returns the record of the chunk of slots that the unit belongs to, or belonged to.
    #[inline]
    pub(crate) fn slab(&self) -> Option<SlabRef> {
        self.slab.get()
    }

    pub(crate) fn set(&self, tag: Tag, units: u32) {
        self.units.store(units, Ordering::Relaxed);
        self.tag.store(tag.0, Ordering::Release);
    }

    /// Sets a flag and returns the previous tag.
    pub(crate) fn raise(&self, flag: Tag) -> Tag {
        Tag(self.tag.fetch_or(flag.0, Ordering::AcqRel))
    }

    /// Sets RETIRED on an extent and returns the previous tag, or `None` if it was already retired or is no extent
    /// any more.
    pub(crate) fn retire_extent(&self) -> Option<Tag> {
        let retired = |tag: u32| {
            let is_live = Tag(tag).is_extent() && !Tag(tag).has(Tag::RETIRED);
            is_live.then_some(tag | Tag::RETIRED.0)
        };
        self.tag.fetch_update(Ordering::AcqRel, Ordering::Acquire, retired).ok().map(Tag)
    }

    /// Clears a flag and returns the previous tag.
    pub(crate) fn lower(&self, flag: Tag) -> Tag {
        Tag(self.tag.fetch_and(!flag.0, Ordering::AcqRel))
    }
}

struct Leaf([Entry; LEAF_UNITS]);
struct Top([AtomicPtr<Leaf>; LEAF_COUNT]);

// SAFETY: both consist of atomic integers and pointers, for which zero bytes are 0 and null.
unsafe impl Zeroed for Leaf {}
// SAFETY: as above.
unsafe impl Zeroed for Top {}

/// The table: finds the chunk, the slot or the extent of a place.
pub struct Table {
    top: NonNull<Top>,
}

// SAFETY: the table owns the memory that it points at, and that consists of atomics.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    pub(crate) fn new<D: Dram>(allocator: &DramAllocator<D>) -> Result<Table, HeapError> {
        Ok(Table { top: allocator.allocate_zeroed()? })
    }

    /// Allocates the missing leaves of `first..past`. The caller holds the space lock.
    pub(crate) fn cover<D: Dram>(&self, allocator: &DramAllocator<D>, first: u32, past: u32) -> Result<(), HeapError> {
        for leaf in first as usize / LEAF_UNITS..(past as usize).div_ceil(LEAF_UNITS) {
            let slot = &self.top().0[leaf];
            if slot.load(Ordering::Relaxed).is_null() {
                slot.store(allocator.allocate_zeroed::<Leaf>()?.as_ptr(), Ordering::Release);
            }
        }
        Ok(())
    }

    /// Returns the entry of a unit, if its leaf exists.
    #[inline]
    pub(crate) fn get(&self, unit: u32) -> Option<&Entry> {
        let leaf = self.top().0.get(unit as usize / LEAF_UNITS)?.load(Ordering::Acquire);
        // SAFETY: a leaf lives as long as the table does.
        unsafe { leaf.as_ref() }.map(|leaf| &leaf.0[unit as usize % LEAF_UNITS])
    }

    /// Returns the entry of a unit below the mark.
    ///
    /// # Panics
    /// If its leaf was never allocated: a bug.
    pub(crate) fn at(&self, unit: u32) -> &Entry {
        self.get(unit).expect("every leaf below the mark exists")
    }

    /// Enters `slab` as the owner of its chunk's units.
    pub(crate) fn enter_slab(&self, slab: SlabRef) {
        for within in 0..slab.geometry().units {
            let entry = self.at(slab.start_unit() + within);
            entry.slab.set(Some(slab));
            entry.set(Tag::slab(slab.slot_kind(), within), 0);
        }
    }

    /// Removes the chunk of `slab`.
    pub(crate) fn leave_slab(&self, slab: SlabRef) {
        for within in 0..slab.geometry().units {
            let entry = self.at(slab.start_unit() + within);
            entry.set(Tag::NOTHING, 0);
            entry.slab.set(None);
        }
    }

    /// Returns the tag of `unit` and the number of units left in its chunk, for a walk from the first chunk. A unit
    /// whose chunk is changing, or that was never entered, counts as a chunk of one unit with the tag NOTHING.
    pub(crate) fn chunk(&self, unit: u32) -> (Tag, u32) {
        let Some(entry) = self.get(unit) else { return (Tag::NOTHING, 1) };
        let tag = entry.tag();
        let units =
            tag.slot_kind().map_or_else(|| entry.units(), |(slot_kind, within)| slot_kind.geometry().units - within);
        (tag, units.max(1))
    }

    /// Calls `each` with the first unit, the tag and the length of each chunk below `past`. Units of chunks that are
    /// changing are passed one at a time, with the tag NOTHING.
    pub(crate) fn each_chunk(&self, past: u32, mut each: impl FnMut(u32, Tag, u32)) {
        let mut unit = FIRST_CHUNK_UNIT;
        while unit < past {
            let (tag, units) = self.chunk(unit);
            each(unit, tag, units);
            unit += units;
        }
    }

    /// Returns the record and the number of the slot that starts at `offset`.
    #[inline]
    pub(crate) fn slot(&self, slot_kind: SlotKind, offset: Offset) -> Result<(SlabRef, u32), InvalidPlace> {
        let misplaced = |what| InvalidPlace { offset: offset.0, what };
        let (unit, entry) = self.entry(offset)?;
        let Some((found, within)) = entry.tag().slot_kind() else {
            return Err(misplaced("is not in a chunk of slots"));
        };
        if found != slot_kind {
            return Err(misplaced("is in a chunk of another kind of slots"));
        }
        let slot = slot_kind.geometry().slot_at(offset.0 - unit_start(unit - within).0);
        entry.slab().zip(slot).ok_or(misplaced("is not the start of a slot"))
    }

    /// Returns the entry of the extent whose item starts at `offset`.
    #[inline]
    pub(crate) fn extent(&self, offset: Offset) -> Result<&Entry, InvalidPlace> {
        let misplaced = |what| InvalidPlace { offset: offset.0, what };
        let (_, entry) = self.entry(offset)?;
        if !entry.tag().is_extent() {
            return Err(misplaced("is not in the first unit of an extent"));
        }
        if offset.0 % UNIT_BYTES != CHUNK_HEADER_BYTES {
            return Err(misplaced("is not the start of an extent's item"));
        }
        Ok(entry)
    }

    #[inline]
    fn entry(&self, offset: Offset) -> Result<(u32, &Entry), InvalidPlace> {
        unit_of(offset)
            .and_then(|unit| Some((unit, self.get(unit)?)))
            .ok_or(InvalidPlace { offset: offset.0, what: "lies beyond the high-water mark" })
    }

    /// Prefetches the line that a [free](crate::Heap::free) of a slot writes. A free is a locked instruction, and no
    /// later read proceeds until its line has arrived; so a caller that frees several slots prefetches all their lines
    /// first.
    #[inline]
    pub fn expect_free(&self, place: Place) {
        let slot = place.kind.slot_kind().and_then(|slot_kind| self.slot(slot_kind, place.offset).ok());
        slot.into_iter().for_each(|(slab, slot)| slab.prefetch_claim(slot));
    }

    /// Checks that a place is valid: below the mark, in a chunk of its kind, exactly at the start of a slot or an
    /// extent. Returns its capacity in bytes.
    ///
    /// # Errors
    /// [`InvalidPlace`] if it is not valid: the reference to the place is damaged.
    #[inline]
    pub fn check_place(&self, place: Place) -> Result<u64, InvalidPlace> {
        match place.kind {
            PlaceKind::Extent => self.extent(place.offset).map(|entry| extent_capacity_bytes(entry.units())),
            PlaceKind::Segment => self.slot(SlotKind::SEGMENTS, place.offset).map(|_| SEGMENT_BYTES),
            PlaceKind::Slot(class) => self.slot(SlotKind::of_class(class), place.offset).map(|_| class.bytes()),
        }
    }

    /// Returns the bytes that the place occupies; 0 if there is no such place.
    #[inline]
    pub fn place_bytes(&self, place: Place) -> u64 {
        match place.kind {
            PlaceKind::Slot(class) => class.bytes(),
            _ => self.check_place(place).unwrap_or(0),
        }
    }

    /// Returns true if the allocator may hand out the place. A reference to such a place is damaged.
    #[inline]
    pub fn is_free(&self, place: Place) -> bool {
        let Some(slot_kind) = place.kind.slot_kind() else { return false };
        self.slot(slot_kind, place.offset).is_ok_and(|(slab, slot)| slab.is_known_free(slot))
    }

    /// Returns true if the item at this place should be moved away.
    #[inline]
    pub fn is_evacuating(&self, place: Place) -> bool {
        let slot_kind = place.kind.slot_kind().filter(|&slot_kind| slot_kind != SlotKind::SEGMENTS);
        let slab = slot_kind.and_then(|slot_kind| self.slot(slot_kind, place.offset).ok());
        slab.is_some_and(|(slab, _)| slab.state() == State::Evacuating)
    }

    /// Frees the leaves and the table.
    ///
    /// # Safety
    /// The table is no longer used.
    pub(crate) unsafe fn deallocate<D: Dram>(&self, allocator: &DramAllocator<D>) {
        for leaf in &self.top().0 {
            if let Some(leaf) = NonNull::new(leaf.load(Ordering::Relaxed)) {
                // SAFETY: the leaf was allocated with this layout and is no longer used.
                unsafe { allocator.deallocate(leaf.cast(), Layout::new::<Leaf>()) };
            }
        }
        // SAFETY: as for the leaves.
        unsafe { allocator.deallocate(self.top.cast(), Layout::new::<Top>()) };
    }

    #[inline]
    fn top(&self) -> &Top {
        // SAFETY: allocated by `new`, and freed only when the table is no longer used.
        unsafe { self.top.as_ref() }
    }
}
