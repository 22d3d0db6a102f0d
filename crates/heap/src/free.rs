//! Freeing: sets one bit of a slot, or turns a chunk into a free run.

use pmem::{Dram, Medium, Offset};

use crate::chunks::Chunks;
use crate::layout::UNIT_BYTES;
use crate::place::Place;
use crate::runs::Run;
use crate::slot_kind::SlotKind;
use crate::table::Tag;

impl<D: Dram> Chunks<D> {
    /// Frees a place, as [`Heap::free`](crate::Heap::free) says.
    #[inline]
    pub(crate) fn free<M: Medium>(&self, medium: &M, place: Place) {
        match place.kind.slot_kind() {
            Some(slot_kind) => self.free_slot(medium, slot_kind, place.offset),
            None => self.free_extent(medium, place.offset),
        }
    }

    /// Frees a reserved place, as [`Heap::cancel`](crate::Heap::cancel) says.
    pub(crate) fn cancel(&self, place: Place) {
        if let Some(slot_kind) = place.kind.slot_kind() {
            if let Ok((slab, slot)) = self.table().slot(slot_kind, place.offset)
                && slab.free_slot(slot) == Some(slab.geometry().roomy_count)
            {
                _ = self.lock().list_if_roomy(slab);
            }
        } else if let Ok(entry) = self.table().extent(place.offset) {
            let (unit, units) = ((place.offset.0 / UNIT_BYTES) as u32, entry.units());
            let mut space = self.lock();
            let mark = space.mark;
            let run = space.runs.absorb(self.table(), Run { unit, units, space: Tag::SPACED }, mark);
            space.runs.insert(self.table(), run);
            self.note(&space);
        }
    }

    #[inline]
    fn free_slot<M: Medium>(&self, medium: &M, slot_kind: SlotKind, offset: Offset) {
        let Ok((slab, slot)) = self.table().slot(slot_kind, offset) else { return };
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
        let Ok(entry) = self.table().extent(offset) else { return };
        let is_first_free = entry.retire_extent().is_some_and(|before| !before.has(Tag::UNSWEPT));
        if is_first_free {
            self.give_extent_back(medium, (offset.0 / UNIT_BYTES) as u32);
        }
    }

    /// Turns the extent at `unit` into a free run.
    pub(crate) fn give_extent_back<M: Medium>(&self, medium: &M, unit: u32) {
        let mut space = self.lock();
        let entry = self.table().at(unit);
        let units = entry.units();
        entry.set(Tag::NOTHING, 0);
        self.give_units_back(medium, &mut space, unit, units);
    }
}
