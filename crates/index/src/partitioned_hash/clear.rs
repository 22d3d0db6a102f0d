//! Removing every entry, as one step for readers and for a crash (`docs/decisions/0008-clear-by-generation.md`).
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 freeze: all partitions, all segments | everything |
//! | 2 an empty segment a partition, of the next generation; ordered | everything, and free space once it is buried |
//! | 3 the store's generation, one word; committed | nothing: segments of another generation are the same |
//! | 4 old segments DEAD, which readers do not look at; ordered | nothing |
//! | 5 the root is switched, the locks released | |
//! | 6 when no reader is left, old segments and their items are freed | |
//!
//! What a crash between 3 and 4 leaves of another generation is buried when the store is opened. So no segment is alive of
//! any generation but the store's, however long readers keep the old ones, and the numbers may come round.

use std::sync::atomic::Ordering;

use heap::HeapError;
use pmem::{Dram, Level, Medium};

use super::format::empty_root;
use super::segment::Segment;
use super::split::segment_place;
use super::{Context, Garbage, PartitionedHash, Root, Table};
use crate::canary;
use crate::segmented::directory::Retired;
use crate::segmented::open::bury;

impl PartitionedHash {
    /// Removes every entry, as one step for readers and for a crash.
    ///
    /// # Errors
    /// If there is no room for the empty segments; then nothing has changed.
    pub fn clear<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>) -> Result<Cleared, HeapError> {
        let _pin = epoch::pin();
        let _partitions: Vec<_> = self.partitions.iter().map(|partition| partition.lock()).collect();
        let old = self.root();
        let frozen: Vec<_> = old.segments().map(Segment::lock_all).collect();
        let generation = cx.heap.generation().wrapping_add(1);
        let root = empty_root(cx, self.geometry, generation)?;
        if !cx.medium.breaks(canary::CLEAR_BEFORE_SEGMENTS) {
            cx.medium.order();
        }
        cx.heap.set_generation(cx.medium, generation);
        cx.medium.wait(cx.medium.commit(Level::Strongest))?;
        if !cx.medium.breaks(canary::CLEARED_UNBURIED) {
            old.segments().flat_map(|segment| segment.chain(cx.medium)).for_each(|offset| bury(cx.medium, offset));
            cx.medium.order();
        }
        old.segments().for_each(Segment::kill);
        let old = self.root.swap(Box::into_raw(root), Ordering::AcqRel);
        drop(frozen);
        // SAFETY: it came from a box, and only `clear` replaces the root, under all partition locks.
        Ok(Cleared(unsafe { Retired::new(old) }))
    }
}

/// What `clear` unlinked: to be freed with [`Cleared::free`] once no reader is left.
#[derive(Debug)]
#[must_use]
pub struct Cleared(Retired<Root>);

impl Cleared {
    /// Step 6. The caller waited until no thread that was pinned during `clear` is still pinned.
    pub fn free<M: Medium, D: Dram>(self, cx: Context<'_, M, D>) {
        for segment in self.0.segments() {
            let places: Vec<_> = segment
                .entries(cx.medium)
                .filter(|entry| entry.position.is_live())
                .filter_map(|entry| entry.position.place())
                .collect();
            let chain: Vec<_> = segment.chain(cx.medium).collect();
            for place in places.into_iter().chain(chain.into_iter().map(segment_place)) {
                cx.heap.free(cx.medium, place);
            }
        }
        cx.retire(Garbage::Table(Table::new(self.0)));
    }
}
