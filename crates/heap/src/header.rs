//! Chunk headers: one sealed word, so that the kind or length of a chunk changes in one step.

use core::sync::atomic::Ordering;

use pmem::{Medium, Offset, Span, seal, unseal};

use crate::HeapError;
use crate::class::Class;
use crate::layout::{UNIT_BYTES, unit_start};
use crate::slot_kind::SlotKind;

const CLASS_SHIFT: u32 = 24;
const KIND_SHIFT: u32 = 32;
const UNITS: u64 = (1 << CLASS_SHIFT) - 1;

const KIND_FREE: u64 = 1;
const KIND_SLAB: u64 = 2;
const KIND_SEGMENTS: u64 = 3;
const KIND_EXTENT: u64 = 4;

/// The contents of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChunkKind {
    Free,
    /// Slots: of a size class, or segments.
    Slots(SlotKind),
    Extent,
}

/// A chunk's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkHeader {
    pub(crate) kind: ChunkKind,
    pub(crate) units: u32,
}

impl ChunkHeader {
    pub(crate) const fn free(units: u32) -> ChunkHeader {
        ChunkHeader { kind: ChunkKind::Free, units }
    }

    pub(crate) const fn extent(units: u32) -> ChunkHeader {
        ChunkHeader { kind: ChunkKind::Extent, units }
    }

    pub(crate) fn slots(slot_kind: SlotKind) -> ChunkHeader {
        ChunkHeader { kind: ChunkKind::Slots(slot_kind), units: slot_kind.geometry().units }
    }

    /// Returns true if the chunk is carved from the end of a free run.
    pub(crate) fn is_from_the_end(self) -> bool {
        self.kind == ChunkKind::Extent && self.units == 1
    }

    /// Returns the word to store.
    pub(crate) fn encode(self) -> u64 {
        let (kind, class) = match self.kind {
            ChunkKind::Free => (KIND_FREE, 0),
            ChunkKind::Extent => (KIND_EXTENT, 0),
            ChunkKind::Slots(slot_kind) => {
                slot_kind.class().map_or((KIND_SEGMENTS, 0), |class| (KIND_SLAB, u64::from(class.index())))
            }
        };
        seal(kind << KIND_SHIFT | class << CLASS_SHIFT | u64::from(self.units))
    }

    /// Decodes a stored word, or returns a description of the damage.
    pub(crate) fn decode(word: u64) -> Result<ChunkHeader, &'static str> {
        let payload = unseal(word).ok_or("the chunk's header does not fit its check")?;
        let (units, class) = ((payload & UNITS) as u32, (payload >> CLASS_SHIFT) as u8);
        let kind = match payload >> KIND_SHIFT {
            KIND_FREE => ChunkKind::Free,
            KIND_EXTENT => ChunkKind::Extent,
            KIND_SEGMENTS => ChunkKind::Slots(SlotKind::SEGMENTS),
            KIND_SLAB => ChunkKind::Slots(SlotKind::of_class(
                Class::from_index(class).ok_or("the chunk's size class is unknown")?,
            )),
            _ => return Err("the chunk's kind is unknown"),
        };
        let header = ChunkHeader { kind, units };
        match kind {
            _ if units == 0 => Err("the chunk's length is zero"),
            ChunkKind::Slots(slot_kind) if units != slot_kind.geometry().units => {
                Err("the chunk's length does not match its kind")
            }
            _ => Ok(header),
        }
    }

    /// Returns the bytes of the chunk at `unit`.
    pub(crate) fn span(self, unit: u32) -> Span {
        unit_start(unit).span(u64::from(self.units) * UNIT_BYTES)
    }

    /// Returns true if the chunk is a part of an index.
    pub(crate) fn is_index(self) -> bool {
        self.kind == ChunkKind::Slots(SlotKind::SEGMENTS)
    }

    /// Stores and flushes the header of the chunk at `unit`. The caller orders it.
    pub(crate) fn store<M: Medium>(self, medium: &M, unit: u32) {
        let at = unit_start(unit);
        medium.store(at, self.encode(), Ordering::Relaxed);
        medium.flush(at.span(8));
    }

    /// Reads the header of the chunk at `unit`, which must end at or before `past_unit`.
    pub(crate) fn load<M: Medium>(medium: &M, unit: u32, past_unit: u32) -> Result<ChunkHeader, HeapError> {
        let at = unit_start(unit);
        let damaged = |what| HeapError::Damaged { offset: at.0, what };
        let header = ChunkHeader::decode(medium.peek(at)).map_err(damaged)?;
        if header.units > past_unit - unit {
            return Err(damaged("the chunk reaches beyond the high-water mark"));
        }
        Ok(header)
    }
}

/// Zeroes the first line of every segment of a new chunk, so that stale bytes are never read as a segment.
pub(crate) fn zero_segment_heads<M: Medium>(medium: &M, unit: u32) {
    let geometry = SlotKind::SEGMENTS.geometry();
    for slot in 0..geometry.slot_count {
        zero(medium, unit_start(unit).plus(geometry.slot_start(slot)), pmem::LINE_BYTES);
    }
}

/// Zeroes and flushes whole words.
pub(crate) fn zero<M: Medium>(medium: &M, at: Offset, len_bytes: u64) {
    for word in (0..len_bytes).step_by(8) {
        medium.store(at.plus(word), 0, Ordering::Relaxed);
    }
    medium.flush(at.span(len_bytes));
}

const _: () = assert!(UNITS == crate::layout::REGION_UNITS_MAX - 1 && UNIT_BYTES.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> impl Iterator<Item = ChunkHeader> {
        let slots = (0..SlotKind::COUNT).map(|index| ChunkHeader::slots(SlotKind::from_index(index as u8)));
        [1, 5, UNITS as u32]
            .into_iter()
            .flat_map(|units| [ChunkHeader::free(units), ChunkHeader::extent(units)])
            .chain(slots)
    }

    #[test]
    fn headers_round_trip_and_detect_bit_flips() {
        for header in headers() {
            let word = header.encode();
            assert_eq!(ChunkHeader::decode(word), Ok(header));
            for bit in 0..64 {
                assert!(ChunkHeader::decode(word ^ 1 << bit).is_err(), "{header:?}, bit {bit}");
            }
        }
    }

    #[test]
    fn sealed_nonsense_is_refused() {
        for payload in [0, 1, 9 << KIND_SHIFT | 1, KIND_SLAB << KIND_SHIFT | 255 << CLASS_SHIFT | 4] {
            assert!(ChunkHeader::decode(seal(payload)).is_err(), "payload {payload:#x}");
        }
        assert!(ChunkHeader::decode(seal(KIND_SEGMENTS << KIND_SHIFT | 4)).is_err());
        assert!(ChunkHeader::decode(seal(1 << 40 | KIND_FREE << KIND_SHIFT | 1)).is_err());
        assert!(ChunkHeader::decode(0).is_err());
    }
}
