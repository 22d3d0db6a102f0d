//! Gathering: where a region is full, chunks of slots that hold nothing become free runs, which serve every size class.
//!
//! A chunk becomes a free run when the last slot is freed, unless a lane owns the chunk. Two kinds of chunks are left that hold nothing: those that lanes own,
//! of every class that a lane has ever used; and those whose last slot was reserved and cancelled. Both are given back here, by a
//! thread that found no space and holds no lane. Segments' chunks are given back as all others: a segment is freed when no directory
//! has it, durably, and a new chunk of segments begins with the first line of each zeroed.
//!
//! The steps are those of any chunk that is given back, one chunk after the other (`chunks`). *Crash:* some are runs, and nothing reaches the others.

use pmem::{Dram, Medium};

use crate::HeapError;
use crate::heap::Heap;

impl<D: Dram> Heap<D> {
    /// Reserves by `attempt`; where the region is full, once more after [`Heap::gather`]. The caller holds no lane.
    #[inline(always)]
    pub(crate) fn gathering<M: Medium, T>(
        &self,
        medium: &M,
        mut attempt: impl FnMut() -> Result<T, HeapError>,
    ) -> Result<T, HeapError> {
        match attempt() {
            Err(error) if error.is_full() => {
                self.gather(medium);
                attempt()
            }
            done => done,
        }
    }

    /// Makes a free run of every chunk of slots that holds nothing. The caller holds no lane.
    #[cold]
    #[inline(never)]
    pub fn gather<M: Medium>(&self, medium: &M) {
        self.empty_lanes(medium);
        self.each_chunk(self.figures.mark(), |unit, tag, _| {
            let is_start = tag.slot_kind().is_some_and(|(_, within)| within == 0);
            if let Some(slab) = self.table.at(unit).slab().filter(|slab| is_start && slab.is_wholly_free()) {
                self.review(medium, slab);
            }
        });
    }
}
