//! The pages of a region, the thread that evicts them, and the threads that wait for memory.

use std::ops::Range;

use pmem::Span;

use super::evictor::Evictor;
use super::page_state::State;
use super::paging::Paging;
use super::reads::Reads;
use crate::JournalOptions;
use crate::region::{PAGE_BYTES, Region};

/// The pages of a region, and their eviction.
#[derive(Debug)]
pub(crate) struct Pager {
    pub(super) paging: Paging,
    pub(super) evictor: Evictor,
    pub(super) reads: Reads,
}

/// Pages that a checkpoint has begun to write.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    /// The runs of pages, in order.
    pub(crate) runs: Vec<Range<u64>>,
    /// True if the copies will have every store from before, so that the pages can be evicted.
    pub(crate) is_clean: bool,
}

impl Pager {
    /// Returns the pages, if the options limit their memory.
    pub(super) fn of(region: &Region, replayed_bytes: u64, options: &JournalOptions) -> Option<Pager> {
        let limit_bytes = region.memory.limit_bytes().min(options.reserve_bytes);
        let paging = Paging::new(limit_bytes, options.memory_bytes_max?, replayed_bytes, options.writable);
        Some(Pager { paging, evictor: Evictor::default(), reads: Reads::default() })
    }

    /// Sets the memory for pages and the replayed log.
    pub(crate) fn set_memory_bytes(&self, memory_bytes: u64) {
        self.paging.set_memory_bytes(memory_bytes);
        self.evictor.wake();
    }

    /// Marks pages of `range` as never used.
    pub(crate) fn add_fresh(&self, range: Range<u64>) {
        self.paging.add_fresh(range.start / PAGE_BYTES..range.end / PAGE_BYTES);
    }

    /// Notes whether the pages of `span` are part of an index.
    pub(crate) fn prefer(&self, span: Span, is_index: bool) {
        let end = span.end().unwrap_or(u64::MAX);
        self.paging.prefer(span.start.0.div_ceil(PAGE_BYTES)..end / PAGE_BYTES, is_index);
    }

    /// Returns true if at least half of the pages of `span` are in memory.
    pub(crate) fn is_resident(&self, span: Span) -> bool {
        let pages = span.start.0 / PAGE_BYTES..span.end().unwrap_or(u64::MAX).div_ceil(PAGE_BYTES);
        let count = pages.end - pages.start;
        self.paging.has(pages.end.saturating_sub(1))
            && 2 * pages.filter(|&page| self.paging.state(page) > State::Lost).count() as u64 >= count
    }

    /// Gives up the content of the whole pages in `span`: those without memory are zeros from now on, as if they had
    /// been loaded and stored to. This also ends the redo of these pages: after a crash it is replayed, and then the
    /// stores that follow. A broken variant gives up the other pages that `span` touches as well, if it `is_widened`.
    pub(crate) fn overwrite(&self, region: &Region, span: Span, is_widened: bool) {
        let end = span.end().unwrap_or(u64::MAX).min(region.len_bytes());
        let pages = match is_widened {
            true => span.start.0 / PAGE_BYTES..end.div_ceil(PAGE_BYTES),
            false => span.start.0.div_ceil(PAGE_BYTES)..end / PAGE_BYTES,
        };
        if region.is_writable() && pages.filter(|&page| self.paging.overwrite(page)).count() > 0 {
            self.paging.wake();
            if self.paging.surplus() > 0 || self.paging.wants_checkpoint() {
                self.evictor.wake();
            }
        }
    }

    /// Makes the threads check whether to continue.
    pub(super) fn wake(&self) {
        self.evictor.wake();
        self.reads.wake();
    }

    /// Returns true if the page at `start` has no memory, and is not known to consist of zeros.
    pub(super) fn is_in_base_alone(&self, start: u64) -> bool {
        let page = start / PAGE_BYTES;
        self.paging.has(page) && matches!(self.paging.state(page), State::Absent | State::Evicted)
    }

    /// Returns true if a checkpoint has to make pages clean.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        self.paging.wants_checkpoint()
    }

    /// Returns the pages that have stores which the base may lack, whether or not they were flushed.
    pub(crate) fn stored_pages(&self, region: &Region) -> impl Iterator<Item = u64> {
        self.paging.stored(region.len_bytes() / PAGE_BYTES)
    }

    /// Returns true if the base is to be synced after so much was written, so that the memory can be freed.
    pub(crate) fn wants_sync_after(&self, written_bytes: u64) -> bool {
        written_bytes >= self.paging.memory_bytes() / 8
    }

    /// Ends the write of pages that the base has durably.
    pub(crate) fn end_write(&self, writing: &Writing) {
        for page in writing.runs.iter().flat_map(|run| run.start / PAGE_BYTES..run.end / PAGE_BYTES) {
            self.paging.end_write(page, writing.is_clean);
        }
    }

    /// Notes that a checkpoint is over.
    pub(super) fn end_checkpoint(&self) {
        self.evictor.checkpoints.note();
        self.evictor.wake();
    }

    /// Ends the waits for checkpoints: no more will follow.
    pub(crate) fn end_checkpoints(&self) {
        self.evictor.checkpoints.end();
    }

    /// Waits, before an operation pins itself, until pages have memory within the limit, or two batches were evicted.
    pub(crate) fn await_memory(&self) {
        self.evictor.batches.wait(|| self.paging.excess() > 0, || self.evictor.wake());
    }

    /// Waits, before a write pins itself, until fewer pages have to be written to the base, or two checkpoints are
    /// over.
    pub(crate) fn await_clean(&self) {
        self.evictor.checkpoints.wait(|| self.paging.holds_writers(), || self.evictor.wake());
    }

    /// Evicts a batch of pages, if memory is near its limit. Returns the number of pages.
    pub(super) fn evict(&self, region: &Region) -> u64 {
        match self.paging.surplus() {
            0 => 0,
            surplus => self.evictor.evict(&self.paging, region, surplus),
        }
    }

    /// A broken variant: treats pages as clean that the base lacks.
    #[cold]
    pub(super) fn call_clean(&self, region: &Region) {
        let stored = self.stored_pages(region).filter(|&page| self.paging.begin_write(page));
        stored.for_each(|page| self.paging.end_write(page, true));
    }
}
