//! Places: the units of allocation that the heap hands out.

use pmem::Offset;

use crate::HeapError;
use crate::class::Class;
use crate::layout::{CHUNK_HEADER_BYTES, REGION_BYTES_MAX, UNIT_BYTES};
use crate::slot_kind::SlotKind;

/// A piece of the region that can hold an item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Its first byte, a multiple of 16.
    pub offset: Offset,
    /// The kind of piece.
    pub kind: PlaceKind,
}

/// The kind of a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlaceKind {
    /// A slot of a size class.
    Slot(Class),
    /// A segment of the hash index: [`SEGMENT_BYTES`](crate::layout::SEGMENT_BYTES).
    Segment,
    /// A separate chunk.
    Extent,
}

impl PlaceKind {
    /// Returns the kind of slots of the chunk that holds such a place, or `None` for an extent.
    pub(crate) const fn slot_kind(self) -> Option<SlotKind> {
        match self {
            PlaceKind::Slot(class) => Some(SlotKind::of_class(class)),
            PlaceKind::Segment => Some(SlotKind::SEGMENTS),
            PlaceKind::Extent => None,
        }
    }
}

/// The bytes of an item that fit into an extent of `units`.
pub(crate) const fn extent_capacity_bytes(units: u32) -> u64 {
    units as u64 * UNIT_BYTES - CHUNK_HEADER_BYTES
}

/// Returns the units of an extent for an item of `len_bytes`.
pub(crate) fn extent_units(len_bytes: u64) -> Result<u32, HeapError> {
    let limit_bytes = REGION_BYTES_MAX - UNIT_BYTES - CHUNK_HEADER_BYTES;
    if len_bytes > limit_bytes {
        return Err(HeapError::TooLong { len_bytes, limit_bytes });
    }
    Ok((len_bytes + CHUNK_HEADER_BYTES).div_ceil(UNIT_BYTES) as u32)
}
