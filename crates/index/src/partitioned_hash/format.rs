//! An empty index: one empty segment a partition.

use epoch::Limbo;
use heap::{Heap, HeapError, PlaceKind};
use pmem::{Dram, Medium};

use super::batch::Batches;
use super::due::NEVER;
use super::image::empty;
use super::layout::{Geometry, Header, State};
use super::segment::Segment;
use super::{Context, PartitionedHash, Root};
use crate::segmented::directory::Directory;

impl PartitionedHash {
    /// Writes and flushes the first segments of a new store. They become durable, and the store a store, when the
    /// allocator's format is finished.
    pub fn format<M: Medium, D: Dram>(
        medium: &M,
        heap: &Heap<D>,
        geometry: Geometry,
    ) -> Result<PartitionedHash, HeapError> {
        let limbo = Limbo::default();
        let root = empty_root(Context { medium, heap, limbo: &limbo }, geometry, heap.generation())?;
        Ok(PartitionedHash::new(geometry, root, Batches::default()))
    }
}

/// Streams an empty live segment for every partition, of the given generation. Not ordered.
pub(super) fn empty_root<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
    generation: u16,
) -> Result<Box<Root>, HeapError> {
    let reserved =
        (0..geometry.partition_count()).map(|_| cx.heap.reserve_segment(cx.medium)).collect::<Result<Vec<_>, _>>()?;
    let directories = reserved.into_iter().zip(0..).map(|(reservation, partition)| {
        let place = reservation.publish();
        debug_assert_eq!(place.kind, PlaceKind::Segment);
        let header = Header { state: State::Live, partition, depth: 0, prefix: 0, generation };
        empty(header).stream(cx.medium, place.offset);
        Directory::build(vec![Segment::new(place.offset, header, true, NEVER)])
            .expect("one segment of depth 0 is a directory")
    });
    Ok(Root::new(directories))
}
