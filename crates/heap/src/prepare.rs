//! Background work: prepares space ahead of the mark, so that writers neither grow the region nor fault fresh pages.
//! `supply` says how much.

use core::sync::atomic::{AtomicU64, Ordering};

use pmem::{Dram, Medium, Offset};

use crate::HeapError;
use crate::chunks::Chunks;
use crate::layout::UNIT_BYTES;
use crate::region::GROWTH_BYTES;

/// Pages prepared in one step: a huge page.
const POPULATE_BYTES: u64 = 2 << 20;

/// One growth has at most this fraction of the spare space. So the growth ends before writers have used the remaining
/// space, if writers are at most twice as fast.
const SPARE_SHARE: u64 = 2;

/// Returns the length by which the background grows a region with this much spare and lacking space. The kernel may
/// block a small growth as long as a large one, waiting for another busy processor; writers use the spare space while
/// it blocks.
fn growth_bytes(spare_bytes: u64, lacking_bytes: u64) -> u64 {
    let whole_steps = spare_bytes / SPARE_SHARE / GROWTH_BYTES;
    whole_steps.clamp(1, lacking_bytes.div_ceil(GROWTH_BYTES)) * GROWTH_BYTES
}

/// The progress of the background.
#[derive(Default)]
pub(crate) struct Preparation {
    /// Pages up to here have been prepared.
    populated_bytes: AtomicU64,
    /// The region's length when it last failed to grow; 0 before that. Each attempt delays writers that need a growth
    /// themselves.
    refused_at_bytes: AtomicU64,
}

impl Preparation {
    /// Takes a step, as [`Heap::prepare`](crate::Heap::prepare) says.
    pub(crate) fn step<M: Medium, D: Dram>(&self, chunks: &Chunks<D>, medium: &M, ahead_bytes: u64) -> bool {
        let is_more = self.try_step(chunks, medium, ahead_bytes).unwrap_or(false);
        chunks.supply().note_step(is_more);
        is_more
    }

    fn try_step<M: Medium, D: Dram>(
        &self,
        chunks: &Chunks<D>,
        medium: &M,
        ahead_bytes: u64,
    ) -> Result<bool, HeapError> {
        if self.populate(chunks, medium, ahead_bytes)? || fill_runs(chunks, medium, ahead_bytes)? {
            return Ok(true);
        }
        let spare_bytes = chunks.spare_bytes();
        let len_bytes = chunks.region().len_bytes();
        let is_short = spare_bytes < ahead_bytes && self.refused_at_bytes.load(Ordering::Relaxed) != len_bytes;
        if is_short {
            let step_bytes = growth_bytes(spare_bytes, ahead_bytes - spare_bytes);
            let grown = chunks.region().grow_ahead(medium, step_bytes);
            grown.inspect_err(|_| self.refused_at_bytes.store(len_bytes, Ordering::Relaxed))?;
            chunks.note(&chunks.lock());
        }
        Ok(is_short)
    }

    /// Prepares pages above the mark; returns true if there were any. Free runs reduce the number of pages needed.
    fn populate<M: Medium, D: Dram>(
        &self,
        chunks: &Chunks<D>,
        medium: &M,
        ahead_bytes: u64,
    ) -> Result<bool, HeapError> {
        let mark_bytes = chunks.supply().mark_bytes();
        let start = self.populated_bytes.load(Ordering::Relaxed).max(mark_bytes);
        let needed_bytes = ahead_bytes.saturating_sub(chunks.supply().run_bytes());
        let past = (mark_bytes + needed_bytes).min(chunks.region().len_bytes());
        let end = past.min(start + POPULATE_BYTES);
        if start >= end {
            return Ok(false);
        }
        let (found, past_unit) = (chunks.lock().above(), end.div_ceil(UNIT_BYTES) as u32);
        if found.holed_from < past_unit && !chunks.back_above_mark(medium, found, past_unit)? {
            return Ok(true);
        }
        medium.populate(Offset(start).span(end - start));
        self.populated_bytes.fetch_max(end, Ordering::Relaxed);
        Ok(true)
    }
}

/// Fills the holes of a free run if writers use runs and soon run out of those without holes; returns true if there
/// was one.
fn fill_runs<M: Medium, D: Dram>(chunks: &Chunks<D>, medium: &M, ahead_bytes: u64) -> Result<bool, HeapError> {
    let (supply, units_max) = (chunks.supply(), (POPULATE_BYTES / UNIT_BYTES) as u32);
    let are_short = supply.fills_runs() && supply.whole_run_bytes() < ahead_bytes;
    Ok(are_short && chunks.fill_run(medium, units_max)?)
}
