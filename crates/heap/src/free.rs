//! Freeing: sets one bit of a slot, or turns a chunk into a free run.

use pmem::{Dram, Medium, Offset};

use crate::heap::Heap;
use crate::layout::{CHUNK_HEADER_BYTES, SEGMENT_BYTES, UNIT_BYTES, unit_of, unit_start};
use crate::place::{Place, PlaceKind};
use crate::record::SlabRef;
use crate::runs::Run;
use crate::slot_kind::SlotKind;
use crate::table::{Entry, Tag};
use crate::{HeapError, InvalidPlace};

impl<D: Dram> Heap<D> {
    /// Frees a place that no reader can reach any more and whose removal from the index is durable.
    ///
    /// While the place's chunk is unswept, the free is only recorded; the place is freed when the sweep ends. A place
    /// that is already free, or that is not valid, is left alone.
    #[inline]
    pub fn free<M: Medium>(&self, medium: &M, place: Place) {
        match place.kind.slot_kind() {
            Some(slot_kind) => self.free_slot(medium, slot_kind, place.offset),
            None => self.free_extent(medium, place.offset),
        }
    }

    /// Prefetches the line that [`Heap::free`] of a slot writes. A free is a locked instruction, and no later read
    /// proceeds until its line has arrived; so a caller that frees several slots prefetches all their lines first.
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
    pub fn is_free(&self, place: Place) -> bool {
        let Some(slot_kind) = place.kind.slot_kind() else { return false };
        self.slot(slot_kind, place.offset).is_ok_and(|(slab, slot)| slab.is_known_free(slot))
    }

    /// Frees a place that was reserved and that nothing refers to. Nothing is stored. An extent is part of a free run
    /// in DRAM and remains an extent on the medium until the run is carved, joined or swept. A chunk of slots becomes
    /// a free run when the region is full (`gather`).
    pub fn cancel(&self, place: Place) {
        if let Some(slot_kind) = place.kind.slot_kind() {
            if let Ok((slab, slot)) = self.slot(slot_kind, place.offset)
                && slab.free_slot(slot) == Some(slab.geometry().roomy_count)
            {
                _ = self.space.lock().list_if_roomy(slab);
            }
        } else if let Ok(entry) = self.extent(place.offset) {
            let (unit, units) = ((place.offset.0 / UNIT_BYTES) as u32, entry.units());
            let mut space = self.space.lock();
            let mark = space.mark;
            let run = space.runs.absorb(&self.table, Run { unit, units, space: Tag::SPACED }, mark);
            space.runs.insert(&self.table, run);
            self.note(&space);
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
            .and_then(|unit| Some((unit, self.table.get(unit)?)))
            .ok_or(InvalidPlace { offset: offset.0, what: "lies beyond the high-water mark" })
    }

    #[inline]
    fn free_slot<M: Medium>(&self, medium: &M, slot_kind: SlotKind, offset: Offset) {
        let Ok((slab, slot)) = self.slot(slot_kind, offset) else { return };
        if slab.is_unswept() && !slab.retire_unless_swept(slot) {
            return;
        }
        let Some(free_count) = slab.free_slot(slot) else { return };
        let geometry = slot_kind.geometry();
        if free_count == geometry.roomy_count || free_count == geometry.slot_count as i32 {
            self.review(medium, slab);
        }
    }

    fn free_extent<M: Medium>(&self, medium: &M, offset: Offset) {
        let Ok(entry) = self.extent(offset) else { return };
        let is_first_free = entry.retire_extent().is_some_and(|before| !before.has(Tag::UNSWEPT));
        if is_first_free {
            self.give_extent_back(medium, (offset.0 / UNIT_BYTES) as u32);
        }
    }

    /// Turns the extent at `unit` into a free run.
    pub(crate) fn give_extent_back<M: Medium>(&self, medium: &M, unit: u32) {
        let mut space = self.space.lock();
        let entry = self.table.at(unit);
        let units = entry.units();
        entry.set(Tag::NOTHING, 0);
        self.give_units_back(medium, &mut space, unit, units);
    }
}

/// The bytes of an item that fit into an extent of `units`.
pub(crate) const fn extent_capacity_bytes(units: u32) -> u64 {
    units as u64 * UNIT_BYTES - CHUNK_HEADER_BYTES
}

/// Returns the units of an extent for an item of `len_bytes`.
pub(crate) fn extent_units(len_bytes: u64) -> Result<u32, HeapError> {
    let limit_bytes = crate::layout::REGION_BYTES_MAX - UNIT_BYTES - CHUNK_HEADER_BYTES;
    if len_bytes > limit_bytes {
        return Err(HeapError::TooLong { len_bytes, limit_bytes });
    }
    Ok((len_bytes + CHUNK_HEADER_BYTES).div_ceil(UNIT_BYTES) as u32)
}
