//! Evacuation: the caller moves the few live slots of sparse chunks into other chunks, so that the sparse ones become
//! free.
//!
//! The heap knows which slots are in use but not what refers to them, so the caller finds the references: each item
//! in the index whose chunk is [evacuating](crate::Table::is_evacuating) is copied to a slot from
//! [`Evacuation::reserve_to_move`], and the old slot is freed as if the item had been replaced. A chunk whose last
//! slot is freed becomes a free run, as any unowned chunk does. Nothing here is durable: after a crash no chunk is
//! being evacuated.
//!
//! Slots of an evacuating chunk are handed out only if the region is full and no other slots are free. The chunk is
//! then no longer evacuated.

use pmem::{Dram, Medium};

use crate::chunks::Chunks;
use crate::class::Class;
use crate::lane::Lanes;
use crate::layout::UNIT_BYTES;
use crate::place::{Place, PlaceKind};
use crate::record::SlabRef;
use crate::reservation::Reservation;
use crate::slab::State;
use crate::slot_kind::SlotKind;

/// The use of a chunk of slots without an owner. Other threads may change it at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkUse {
    unit: u32,
    /// The size class of its slots.
    pub class: Class,
    /// Its length in the region.
    pub len_bytes: u64,
    /// The number of its slots.
    pub slot_count: u32,
    /// The number of slots in use.
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

/// The chunks that are emptied and those that are filled instead.
pub struct Evacuation<'h, D: Dram> {
    pub(crate) chunks: &'h Chunks<D>,
    pub(crate) lanes: &'h Lanes,
}

impl<'h, D: Dram> Evacuation<'h, D> {
    /// Calls `each` with every unowned chunk of slots of a size class. Meaningful once the sweep has ended.
    pub fn each_unowned_chunk(&self, each: &mut dyn FnMut(ChunkUse)) {
        self.chunks.table().each_chunk(self.chunks.supply().mark(), |unit, tag, _| {
            let class = tag.slot_kind().filter(|&(_, within)| within == 0).and_then(|(slot_kind, _)| slot_kind.class());
            if let (Some(class), Some(slab)) = (class, self.chunks.table().at(unit).slab())
                && is_unowned(slab)
            {
                each(ChunkUse::of(slab, class));
            }
        });
    }

    /// Begins to evacuate a chunk. Returns false if the chunk has an owner by now or no longer exists.
    pub fn evacuate(&self, chunk: ChunkUse) -> bool {
        let mut space = self.chunks.lock();
        let Some(slab) = self.unowned(chunk) else { return false };
        space.unlist(slab);
        slab.set_state(State::Evacuating);
        true
    }

    /// Stops evacuating a chunk, if it still exists. A chunk that was not emptied is not
    /// [newly free](crate::Supply::newly_free_bytes): otherwise the next plan would follow from this one, for ever.
    pub fn stop_evacuating<M: Medium>(&self, medium: &M, chunk: ChunkUse) {
        let mut space = self.chunks.lock();
        let slab = self.chunks.table().at(chunk.unit).slab();
        if let Some(slab) = slab.filter(|slab| slab.state() == State::Evacuating) {
            slab.set_state(State::Idle);
            if slab.is_wholly_free() {
                self.chunks.file(medium, &mut space, slab);
            } else {
                _ = space.list_if_roomy(slab);
            }
        }
    }

    /// Makes this chunk the target of moves. Returns false if the chunk has an owner by now or no longer exists.
    pub fn fill<M: Medium>(&self, medium: &M, chunk: ChunkUse) -> bool {
        let slot_kind = SlotKind::of_class(chunk.class);
        let mut cursor = self.lanes.mover(slot_kind).lock();
        if let Some(filled) = cursor.resign() {
            self.chunks.disown(medium, filled);
        }
        let mut space = self.chunks.lock();
        let Some(slab) = self.unowned(chunk) else { return false };
        space.unlist(slab);
        slab.set_state(State::Owned);
        self.lanes.adopt(&mut cursor, slot_kind, slab);
        true
    }

    /// Reserves a slot of the target chunk of this class; `None` if there is no target chunk or no free slot left.
    pub fn reserve_to_move(&self, class: Class) -> Option<Reservation<'h, D>> {
        let slot_kind = SlotKind::of_class(class);
        let offset = self.lanes.mover(slot_kind).lock().pop_or_scrape(slot_kind)?;
        Some(Reservation::new(self.chunks, Place { offset, kind: PlaceKind::Slot(class) }))
    }

    /// Gives up all target chunks.
    pub fn stop_filling<M: Medium>(&self, medium: &M) {
        for slot_kind in (0..SlotKind::COUNT).map(|index| SlotKind::from_index(index as u8)) {
            if let Some(slab) = self.lanes.mover(slot_kind).lock().resign() {
                self.chunks.disown(medium, slab);
            }
        }
    }

    /// Returns the chunk's record if it has no owner. The caller holds the space lock.
    fn unowned(&self, chunk: ChunkUse) -> Option<SlabRef> {
        let slab = self.chunks.table().at(chunk.unit).slab()?;
        let is_it = slab.start_unit() == chunk.unit && slab.slot_kind() == SlotKind::of_class(chunk.class);
        (is_it && is_unowned(slab)).then_some(slab)
    }
}

fn is_unowned(slab: SlabRef) -> bool {
    matches!(slab.state(), State::Idle | State::Listed)
}
