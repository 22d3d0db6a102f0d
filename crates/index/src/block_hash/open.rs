//! Creates a table, and opens it in four steps:
//!
//! 1. Finish the splits that a crash interrupted (`crate::segmented`).
//! 2. Carry out a committed batch again (`batch`).
//! 3. Find the live segments.
//! 4. Build the directories (`crate::segmented`).

use heap::{Heap, HeapError};
use pmem::{Dram, Medium};

use super::batch::recover;
use super::image::SegmentImage;
use super::segment::Segment;
use super::{BlockHash, Root, Sign};
use crate::segmented::layout::Geometry;
use crate::segmented::open::{finish_splits, live_segments, root_of};
use crate::segmented::{Context, clear};

impl BlockHash {
    /// Writes and flushes the first segments of a new store. They become durable when the format of the allocator
    /// finishes, which is also what makes the region a store. `sign` computes the signatures of keys; it must be
    /// the same whenever the store is opened again.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub fn format<M: Medium, D: Dram>(
        medium: &M,
        heap: &Heap<D>,
        geometry: Geometry,
        sign: Box<Sign>,
    ) -> Result<BlockHash, HeapError> {
        let limbo = epoch::Limbo::default();
        let root = empty_root(Context { medium, heap, limbo: &limbo }, geometry, heap.region().generation())?;
        Ok(BlockHash::new(geometry, sign, root, std::ptr::null_mut()))
    }

    /// Opens the table of a store.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if a header is damaged, or if the live segments do not cover every prefix exactly
    /// once.
    pub fn open<M: Medium, D: Dram>(
        cx: Context<'_, M, D>,
        geometry: Geometry,
        sign: Box<Sign>,
    ) -> Result<BlockHash, HeapError> {
        let splits = finish_splits(cx, geometry)?;
        let overlay = recover(cx)?;
        let table = |(offset, header)| {
            let segment = Segment::new(offset, header, !cx.medium.is_writable());
            segment.link_chain(cx.medium).map(|()| segment)
        };
        let live = live_segments(cx, geometry, &splits)?.into_iter();
        let tables = live.map(|segments| segments.into_iter().map(table).collect::<Result<Vec<_>, _>>());
        let root = root_of(tables.collect::<Result<_, _>>()?, geometry)?;
        Ok(BlockHash::new(geometry, sign, root, overlay))
    }
}

/// Creates a root of empty segments; see [`segmented::clear::empty_root`](crate::segmented::clear::empty_root).
pub(super) fn empty_root<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
    generation: u16,
) -> Result<Box<Root>, HeapError> {
    clear::empty_root(cx, geometry, generation, |at, header| {
        SegmentImage::new(header).stream(cx.medium, at);
        Segment::new(at, header, true)
    })
}
