//! Opens the index of a store, in three steps:
//!
//! 1. Finish the splits that a crash interrupted (`crate::segmented`).
//! 2. Finish or undo the batches that a crash interrupted (`batch`).
//! 3. Find the live segments and build the directories (`crate::segmented`).

use heap::{FEATURE_EXPIRY, HeapError};
use pmem::{Dram, Medium};

use super::batch::{Batches, recover};
use super::due::{NEVER, UNKNOWN};
use super::layout::Geometry;
use super::segment::Segment;
use super::{Context, PartitionedHash};
use crate::segmented::open::{finish_splits, live_segments, root_of};

impl PartitionedHash {
    /// Opens the index of a store.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if a header is damaged, or if the live segments do not cover every prefix exactly
    /// once.
    pub fn open<M: Medium, D: Dram>(cx: Context<'_, M, D>, geometry: Geometry) -> Result<PartitionedHash, HeapError> {
        let splits = finish_splits(cx, geometry)?;
        let batches = Batches::default();
        recover(cx, &batches)?;
        let due = if cx.heap.region().has_features(FEATURE_EXPIRY) { UNKNOWN } else { NEVER };
        let table = |(offset, header)| Segment::new(offset, header, !cx.medium.is_writable(), due);
        let live = live_segments(cx, geometry, &splits)?;
        let tables = live.into_iter().map(|segments| segments.into_iter().map(table).collect());
        let root = root_of(tables.collect(), geometry)?;
        Ok(PartitionedHash::new(geometry, root, batches))
    }
}
