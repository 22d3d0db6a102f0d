//! Space that is returned to the file system, and a run whose holes the background fills ahead of writers.

use std::{iter, thread};

use heap::layout::UNIT_BYTES;

use super::Script;

impl Script {
    /// Fills the holes of a run in two pieces, carves the first, and joins the rests of both.
    pub(super) fn run_filled(&self) {
        let extent = self.reserve_extent(2_600_000);
        self.soil(extent, 2_600_000);
        self.reserve_extent(100);
        self.free(extent);
        self.give_space_back();
        self.reserve(100);
        let prepare = || self.heap.prepare(&self.sim, 36 * UNIT_BYTES);
        let steps = iter::from_fn(|| thread::scope(|scope| scope.spawn(prepare).join().unwrap()).then_some(()));
        assert_eq!(steps.count(), 2);
        self.segment();
        let region_bytes = self.heap.stats().region_bytes;
        self.reserve_extent(2_000_000);
        assert_eq!(self.heap.stats().region_bytes, region_bytes);
    }

    /// Returns the space of all free runs to the file system, after the sweep that a new region has had.
    pub(super) fn give_space_back(&self) {
        let mut from = 0;
        while let Some((next, _)) = self.heap.discard_free_run(&self.sim, from) {
            from = next;
        }
        while self.heap.chunks().discard_above_mark(&self.sim).is_some() {}
    }
}
