//! Creates an empty index: one empty segment per partition.

use epoch::Limbo;
use heap::{Heap, HeapError};
use pmem::{Dram, Medium};

use super::batch::Batches;
use super::draft::empty;
use super::due::NEVER;
use super::layout::Geometry;
use super::segment::Segment;
use super::{Context, PartitionedHash, Root};
use crate::segmented::clear;

impl PartitionedHash {
    /// Writes and flushes the first segments of a new store. They become durable when the format of the allocator
    /// finishes, which is also what makes the region a store.
    pub fn format<M: Medium, D: Dram>(
        medium: &M,
        heap: &Heap<D>,
        geometry: Geometry,
    ) -> Result<PartitionedHash, HeapError> {
        let limbo = Limbo::default();
        let root = empty_root(Context { medium, heap, limbo: &limbo }, geometry, heap.region().generation())?;
        Ok(PartitionedHash::new(geometry, root, Batches::default()))
    }
}

/// Creates a root of empty segments; see [`segmented::clear::empty_root`](crate::segmented::clear::empty_root).
pub(super) fn empty_root<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
    generation: u16,
) -> Result<Box<Root>, HeapError> {
    clear::empty_root(cx, geometry, generation, |at, header| {
        empty(header).stream(cx.medium, at);
        Segment::new(at, header, true, NEVER)
    })
}
