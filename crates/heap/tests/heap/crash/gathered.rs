//! Gathers a region explicitly rather than when it is full, so that little is written before.

use heap::Place;
use heap::layout::SEGMENT_BYTES;

use super::Script;

impl Script {
    /// Chunks that lanes own of classes without items, a chunk of segments, and cancelled extents all become runs
    /// that serve other classes.
    pub(super) fn run_gathered(&self) {
        let slots = [100, 5_000, 5_000, 30_000, 60_000].map(|len_bytes| self.reserve(len_bytes));
        let segments: Vec<Place> = (0..70).map(|_| self.segment()).collect();
        segments.iter().for_each(|segment| self.soil(*segment, SEGMENT_BYTES));
        [0, 1, 3, 4].into_iter().for_each(|i| self.free(slots[i]));
        segments[40..].iter().for_each(|segment| self.free(*segment));
        drop(self.heap.reserve_extent(&self.sim, 200_000).unwrap());
        self.heap.gather(&self.sim);
        let extents = [900_000, 300_000].map(|len_bytes| self.reserve_extent(len_bytes));
        extents.iter().for_each(|extent| self.soil(*extent, 300_000));
        drop(self.heap.reserve_extent(&self.sim, 130_000).unwrap());
        let small = [100, 200, 300].map(|len_bytes| self.reserve_extent(len_bytes));
        self.give_space_back();
        self.free(small[1]);
        self.reserve_extent(400);
        self.reserve_extent(500);
        extents.into_iter().for_each(|extent| self.free(extent));
        self.heap.gather(&self.sim);
        (0..80).for_each(|_| _ = self.segment());
        self.reserve_extent(500_000);
        self.reserve(5_000);
    }
}
