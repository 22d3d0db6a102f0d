//! Opening: the headers of all chunks are read.

use pmem::{Dram, Medium};

use crate::ahead::HeadersAhead;
use crate::chunks::Chunks;
use crate::header::{ChunkHeader, ChunkKind};
use crate::holes::Backer;
use crate::layout::{CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, unit_start};
use crate::slab::State;
use crate::slot_kind::SlotKind;
use crate::table::Tag;
use crate::{HeapError, canary};

impl<D: Dram> Chunks<D> {
    /// Enters every chunk below the mark into the table, unswept, and ensures that everything except free runs has
    /// space.
    pub(crate) fn walk<M: Medium>(&self, medium: &M) -> Result<(), HeapError> {
        let mark = self.supply().mark();
        self.table().cover(self.allocator(), FIRST_CHUNK_UNIT, mark)?;
        let (mut unit, mut backer) = (FIRST_CHUNK_UNIT, Backer::new(medium));
        let mut headers = HeadersAhead::of(unit, mark);
        while unit < mark {
            headers.expect(medium, unit);
            let header = ChunkHeader::load(medium, unit, mark)?;
            self.enter(unit, header)?;
            match header.kind {
                ChunkKind::Free => backer.skip(unit, header.units)?,
                ChunkKind::Slots(SlotKind::SEGMENTS) => {
                    medium.prefer(header.span(unit), true);
                    medium.prefetch(header.span(unit));
                }
                _ => {}
            }
            if may_lack_durability(medium) {
                medium.flush(unit_start(unit).span(CHUNK_HEADER_BYTES));
            }
            unit += header.units;
        }
        Ok(backer.finish(unit)?)
    }

    fn enter(&self, unit: u32, header: ChunkHeader) -> Result<(), HeapError> {
        match header.kind {
            ChunkKind::Free => self.table().at(unit).set(Tag::FREE.with(Tag::UNSWEPT), header.units),
            ChunkKind::Extent => self.table().at(unit).set(Tag::EXTENT.with(Tag::UNSWEPT), header.units),
            ChunkKind::Slots(slot_kind) => {
                let slab = self.lock().record(self.allocator(), slot_kind)?;
                slab.begin(unit, State::Unswept);
                self.table().enter_slab(slab);
            }
        }
        Ok(())
    }
}

/// Returns true if a process that died may have left stores that are visible but not durable.
pub(crate) fn may_lack_durability<M: Medium>(medium: &M) -> bool {
    medium.is_writable() && !medium.opens_durable() && !medium.breaks(canary::HEAD_LEFT_AS_FOUND)
}
