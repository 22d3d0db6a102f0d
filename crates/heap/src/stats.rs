//! Statistics of a region's use.

use pmem::{Dram, Offset};

use crate::chunks::Chunks;
use crate::lane::Lanes;
use crate::layout::UNIT_BYTES;
use crate::place::extent_capacity_bytes;
use crate::record::SlabRef;
use crate::table::Tag;

/// Statistics of a region's use. While other threads allocate, the numbers are approximate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapStats {
    /// The region's length.
    pub region_bytes: u64,
    /// The bytes below the high-water mark.
    pub mark_bytes: u64,
    /// The bytes of slots in use, including segments, and of extents, excluding the clean image. Before the sweep has
    /// ended, the bytes that it has reached.
    pub live_bytes: u64,
    /// The bytes that can be handed out without growth: free slots, free runs, and everything above the mark. Unswept
    /// chunks count as full.
    pub free_bytes: u64,
    /// The DRAM that the heap has allocated.
    pub dram_bytes: u64,
    /// The number of chunks that hold slots or an extent.
    pub chunk_count: u64,
}

impl HeapStats {
    /// Counts all chunks, without the clean image.
    pub(crate) fn of<D: Dram>(chunks: &Chunks<D>, lanes: &Lanes, image: Option<Offset>) -> HeapStats {
        let mut stats = HeapStats {
            region_bytes: chunks.region().len_bytes(),
            mark_bytes: chunks.supply().mark_bytes(),
            free_bytes: chunks.spare_bytes(),
            dram_bytes: chunks.allocator().allocated_bytes(),
            ..HeapStats::default()
        };
        let past = (stats.mark_bytes / UNIT_BYTES) as u32;
        let image_unit = image.map(|offset| (offset.0 / UNIT_BYTES) as u32);
        chunks.table().each_chunk(past, |unit, tag, units| match chunks.table().at(unit).slab() {
            Some(slab) if tag.slot_kind().is_some() => stats.count_slab(slab),
            _ if tag.is_extent() && Some(unit) != image_unit => stats.count_extent(tag, units),
            _ => {}
        });
        let claimed_bytes = lanes.claimed_bytes();
        stats.live_bytes = stats.live_bytes.saturating_sub(claimed_bytes);
        stats.free_bytes += claimed_bytes;
        stats
    }

    fn count_slab(&mut self, slab: SlabRef) {
        let geometry = slab.geometry();
        let is_unswept = slab.is_unswept();
        let counted = if is_unswept { slab.free_bit_count() } else { slab.free_count() };
        let free_count = counted.clamp(0, geometry.slot_count as i32) as u64;
        self.chunk_count += 1;
        self.live_bytes += (u64::from(geometry.slot_count) - free_count) * geometry.slot_bytes;
        self.free_bytes += if is_unswept { 0 } else { free_count * geometry.slot_bytes };
    }

    fn count_extent(&mut self, tag: Tag, units: u32) {
        self.chunk_count += 1;
        if !tag.has(Tag::UNSWEPT) || tag.has(Tag::REACHED) {
            self.live_bytes += extent_capacity_bytes(units);
        }
    }
}
