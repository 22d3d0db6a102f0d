//! Evacuation: chunks of slots with few live ones, from which the caller moves these away, and chunks that take them in.
//!
//! The heap knows which slots are in use and not what refers to them, so the caller finds the references: each item that the index
//! names and that lies in a chunk with [`Heap::is_evacuating`] is copied to a slot of [`Heap::reserve_to_move`], and freed like any
//! other item that was replaced. A chunk whose last slot is freed becomes a free run, as any unowned chunk does. Nothing here is
//! durable: after a crash no chunk is being evacuated.
//!
//! Slots of an evacuating chunk are handed out only where the region is full and has no others: then it is not evacuated
//! any more.

use pmem::{Dram, Medium};

use crate::class::Class;
use crate::heap::Heap;
use crate::layout::UNIT_BYTES;
use crate::place::{Place, PlaceKind, Reservation};
use crate::record::SlabRef;
use crate::slab::State;
use crate::slot_kind::SlotKind;

/// How a chunk of slots is used that nobody owns. Others may change that at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkUse {
    unit: u32,
    /// The size class of its slots.
    pub class: Class,
    /// Its length in the region.
    pub len_bytes: u64,
    /// Its slots.
    pub slot_count: u32,
    /// Those that are in use.
    pub used_count: u32,
}

impl ChunkUse {
    fn of(slab: SlabRef, class: Class) -> ChunkUse {
        let geometry = slab.geometry();
        let free_count = slab.free_count().clamp(0, geometry.slot_count as i32) as u32;
        ChunkUse {
            unit: slab.start_unit(),
            class,
            len_bytes: u64::from(geometry.units) * UNIT_BYTES,
            slot_count: geometry.slot_count,
            used_count: geometry.slot_count - free_count,
        }
    }
}

impl<D: Dram> Heap<D> {
    /// Shows every chunk of slots of a size class that nobody owns. Meaningful once the sweep has ended.
    pub fn each_unowned_chunk(&self, each: &mut dyn FnMut(ChunkUse)) {
        self.each_chunk(self.figures.mark(), |unit, tag, _| {
            let class = tag.slot_kind().filter(|&(_, within)| within == 0).and_then(|(slot_kind, _)| slot_kind.class());
            if let (Some(class), Some(slab)) = (class, self.table.at(unit).slab())
                && is_unowned(slab)
            {
                each(ChunkUse::of(slab, class));
            }
        });
    }

    /// Begins to evacuate a chunk; false if it has an owner by now, or is gone.
    pub fn evacuate(&self, chunk: ChunkUse) -> bool {
        let mut space = self.space.lock();
        let Some(slab) = self.unowned(chunk) else { return false };
        space.unlist(slab);
        slab.set_state(State::Evacuating);
        true
    }

    /// Gives up evacuating a chunk, if it is still there.
    pub fn stop_evacuating<M: Medium>(&self, medium: &M, chunk: ChunkUse) {
        let mut space = self.space.lock();
        let slab = self.table.at(chunk.unit).slab();
        if let Some(slab) = slab.filter(|slab| slab.state() == State::Evacuating) {
            slab.set_state(State::Idle);
            self.file(medium, &mut space, slab);
        }
    }

    /// True if what lies there is to be moved away.
    pub fn is_evacuating(&self, place: Place) -> bool {
        let slot_kind = place.kind.slot_kind().filter(|&slot_kind| slot_kind != SlotKind::SEGMENTS);
        let slab = slot_kind.and_then(|slot_kind| self.slot(slot_kind, place.offset).ok());
        slab.is_some_and(|(slab, _)| slab.state() == State::Evacuating)
    }

    /// Has what is moved fill this chunk; false if it has an owner by now, or is gone.
    pub fn fill<M: Medium>(&self, medium: &M, chunk: ChunkUse) -> bool {
        let slot_kind = SlotKind::of_class(chunk.class);
        let mut cursor = self.lanes.mover(slot_kind).lock();
        if let Some(filled) = cursor.resign() {
            self.disown(medium, filled);
        }
        let mut space = self.space.lock();
        let Some(slab) = self.unowned(chunk) else { return false };
        space.unlist(slab);
        slab.set_state(State::Owned);
        self.lanes.adopt(&mut cursor, slot_kind, slab);
        true
    }

    /// A slot of the chunk of this class that is being filled; `None` if there is none, or no slot left.
    pub fn reserve_to_move(&self, class: Class) -> Option<Reservation<'_, D>> {
        let slot_kind = SlotKind::of_class(class);
        let offset = self.lanes.mover(slot_kind).lock().pop_or_scrape(slot_kind)?;
        Some(Reservation::new(self, Place { offset, kind: PlaceKind::Slot(class) }))
    }

    /// Gives up all chunks that were being filled.
    pub fn stop_filling<M: Medium>(&self, medium: &M) {
        for slot_kind in (0..SlotKind::COUNT).map(|index| SlotKind::from_index(index as u8)) {
            if let Some(slab) = self.lanes.mover(slot_kind).lock().resign() {
                self.disown(medium, slab);
            }
        }
    }

    /// The record of the chunk, if nobody owns it. Under the space lock.
    fn unowned(&self, chunk: ChunkUse) -> Option<SlabRef> {
        let slab = self.table.at(chunk.unit).slab()?;
        let is_it = slab.start_unit() == chunk.unit && slab.slot_kind() == SlotKind::of_class(chunk.class);
        (is_it && is_unowned(slab)).then_some(slab)
    }
}

fn is_unowned(slab: SlabRef) -> bool {
    matches!(slab.state(), State::Idle | State::Listed)
}
