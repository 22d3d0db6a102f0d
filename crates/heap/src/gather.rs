//! Gathering: when a region is full, empty chunks of slots become free runs, which serve every size class.
//!
//! A chunk becomes a free run when its last slot is freed, unless a lane owns the chunk. So two kinds of empty chunks
//! remain: those that lanes own, of every class that a lane has ever used, and those whose last slot was reserved and
//! cancelled. A thread that found no space and holds no lane frees both here. Chunks of segments are freed like all
//! others: a segment is freed once no directory refers to it, durably, and a new chunk of segments begins with the
//! first line of each segment zeroed.
//!
//! Each chunk is freed by the steps in `chunks`, one chunk after the other. *Crash:* some are runs, and nothing
//! refers to the others.

use pmem::{Dram, Medium};

use crate::HeapError;
use crate::chunks::Chunks;
use crate::lane::Lanes;

impl Lanes {
    /// Calls `attempt` to reserve. If the region is full, calls [`Lanes::gather`] and tries once more. The caller
    /// holds no lane.
    #[inline(always)]
    pub(crate) fn gathering<M: Medium, D: Dram, T>(
        &self,
        chunks: &Chunks<D>,
        medium: &M,
        mut attempt: impl FnMut() -> Result<T, HeapError>,
    ) -> Result<T, HeapError> {
        match attempt() {
            Err(error) if error.is_full() => {
                self.gather(chunks, medium);
                attempt()
            }
            done => done,
        }
    }

    /// Turns every empty chunk of slots into a free run. The caller holds no lane.
    #[cold]
    #[inline(never)]
    pub(crate) fn gather<M: Medium, D: Dram>(&self, chunks: &Chunks<D>, medium: &M) {
        self.empty(chunks, medium);
        let table = chunks.table();
        table.each_chunk(chunks.supply().mark(), |unit, tag, _| {
            let is_start = tag.slot_kind().is_some_and(|(_, within)| within == 0);
            if let Some(slab) = table.at(unit).slab().filter(|slab| is_start && slab.is_wholly_free()) {
                chunks.review(medium, slab);
            }
        });
    }
}
