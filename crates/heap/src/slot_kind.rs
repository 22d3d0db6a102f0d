//! The kind of a chunk of slots: the chunk's length, the position and the number of the slots.
//!
//! Slabs of a size class and chunks of segments differ only in these numbers, so the allocator treats both alike.

use crate::class::{Class, GRAIN_BYTES};
use crate::layout::{CHUNK_HEADER_BYTES, SEGMENT_BYTES, SEGMENTS_CHUNK_SLOTS, SEGMENTS_CHUNK_UNITS, UNIT_BYTES};

/// A slab is 256 KiB for slots up to [`SMALL_SLOT_BYTES_MAX`], so that a small store stays small.
pub(crate) const SMALL_SLAB_UNITS: u32 = 4;
/// Larger slots are in slabs of 2 MiB, so that at least seven slots fit.
const LARGE_SLAB_UNITS: u32 = 32;
const SMALL_SLOT_BYTES_MAX: u64 = 32_768;

/// Enough fraction bits for an exact division: a chunk has fewer than 2^17 grains, a slot at most 2^14.
const RECIPROCAL_BITS: u32 = 34;

/// The kind of a chunk's slots: a size class, or segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotKind(u8);

/// The dimensions of a kind of slots.
#[derive(Clone, Copy)]
pub(crate) struct Geometry {
    /// The chunk's length.
    pub(crate) units: u32,
    /// The distance from the chunk's start to its first slot.
    pub(crate) first_slot_bytes: u64,
    pub(crate) slot_bytes: u64,
    pub(crate) slot_count: u32,
    /// The number of free slots from which a chunk is worth returning to: an eighth of all slots.
    pub(crate) roomy_count: i32,
    reciprocal: u64,
}

impl SlotKind {
    pub(crate) const SEGMENTS: SlotKind = SlotKind(Class::COUNT as u8);
    pub(crate) const COUNT: usize = Class::COUNT + 1;

    pub(crate) const fn of_class(class: Class) -> SlotKind {
        SlotKind(class.index())
    }

    /// Returns the kind of slots with this index.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) const fn from_index(index: u8) -> SlotKind {
        assert!((index as usize) < SlotKind::COUNT);
        SlotKind(index)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the size class, or `None` for segments.
    pub(crate) const fn class(self) -> Option<Class> {
        Class::from_index(self.0)
    }

    /// Returns true if its chunks are the long ones.
    pub(crate) fn is_large(self) -> bool {
        self.geometry().units == LARGE_SLAB_UNITS
    }

    #[inline]
    pub(crate) fn geometry(self) -> &'static Geometry {
        &GEOMETRIES[self.index()]
    }
}

impl Geometry {
    const fn new(units: u32, first_slot_bytes: u64, slot_bytes: u64) -> Geometry {
        let slot_count = ((units as u64 * UNIT_BYTES - first_slot_bytes) / slot_bytes) as u32;
        let roomy_count = if slot_count < 8 { 1 } else { slot_count as i32 / 8 };
        let reciprocal = (1u64 << RECIPROCAL_BITS).div_ceil(slot_bytes / GRAIN_BYTES);
        Geometry { units, first_slot_bytes, slot_bytes, slot_count, roomy_count, reciprocal }
    }

    const fn of(slot_kind: SlotKind) -> Geometry {
        match slot_kind.class() {
            None => Geometry::new(SEGMENTS_CHUNK_UNITS, SEGMENT_BYTES, SEGMENT_BYTES),
            Some(class) if class.bytes() <= SMALL_SLOT_BYTES_MAX => {
                Geometry::new(SMALL_SLAB_UNITS, CHUNK_HEADER_BYTES, class.bytes())
            }
            Some(class) => Geometry::new(LARGE_SLAB_UNITS, CHUNK_HEADER_BYTES, class.bytes()),
        }
    }

    /// Returns the distance from the chunk's start to a slot.
    #[inline]
    pub(crate) const fn slot_start(&self, slot: u32) -> u64 {
        self.first_slot_bytes + slot as u64 * self.slot_bytes
    }

    /// Returns the slot that starts `bytes` after the chunk's start, or `None` if none starts there.
    ///
    /// `bytes` must be within the chunk: the division is a multiplication that is exact for every byte of it.
    #[inline]
    pub(crate) fn slot_at(&self, bytes: u64) -> Option<u32> {
        let grains = bytes.checked_sub(self.first_slot_bytes)? / GRAIN_BYTES;
        let slot = ((grains * self.reciprocal) >> RECIPROCAL_BITS) as u32;
        (slot < self.slot_count && self.slot_start(slot) == bytes).then_some(slot)
    }

    /// Returns the number of words in a bitmap with a bit for each slot.
    #[inline]
    pub(crate) const fn word_count(&self) -> u32 {
        self.slot_count.div_ceil(64)
    }

    /// Returns the bits of bitmap word `word` that correspond to slots.
    pub(crate) const fn word_mask(&self, word: u32) -> u64 {
        let rest = self.slot_count - word * 64;
        if rest >= 64 { u64::MAX } else { (1 << rest) - 1 }
    }
}

static GEOMETRIES: [Geometry; SlotKind::COUNT] = {
    let mut geometries = [Geometry::of(SlotKind(0)); SlotKind::COUNT];
    let mut index = 0;
    while index < SlotKind::COUNT {
        geometries[index] = Geometry::of(SlotKind(index as u8));
        index += 1;
    }
    geometries
};

const _: () = assert!(Geometry::of(SlotKind::SEGMENTS).slot_count == SEGMENTS_CHUNK_SLOTS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and slow")]
    fn slots_lie_within_their_chunk() {
        for index in 0..SlotKind::COUNT {
            let geometry = SlotKind(index as u8).geometry();
            let chunk_bytes = u64::from(geometry.units) * UNIT_BYTES;
            let mut next = 0;
            for bytes in (0..chunk_bytes).step_by(8) {
                let expected = (next < geometry.slot_count && geometry.slot_start(next) == bytes).then_some(next);
                assert_eq!(geometry.slot_at(bytes), expected, "slot_kind {index}, byte {bytes}");
                next += u32::from(expected.is_some());
            }
            assert_eq!(next, geometry.slot_count);
            assert!(geometry.slot_start(next) <= chunk_bytes && geometry.slot_count >= 7);
        }
    }

    #[test]
    fn word_masks_count_every_slot_once() {
        for index in 0..SlotKind::COUNT {
            let geometry = SlotKind(index as u8).geometry();
            let bits: u32 = (0..geometry.word_count()).map(|word| geometry.word_mask(word).count_ones()).sum();
            assert_eq!(bits, geometry.slot_count);
        }
    }
}
