//! Memory for a part of a region: pages are read from the base when a thread needs them, and their memory is freed when
//! the region's memory exceeds its limit.
//!
//! # Steps of an eviction
//! 1. The hand of the clock unlinks pages that are as in the base, and that no thread has used since it passed last.
//! 2. A grace period passes: threads that may have found the pages linked have ended their operations.
//! 3. The memory of the pages that no thread has reached for since is freed. Nothing is written, so a crash leaves the
//!    files as they were.
//!
//! # Waits
//! A thread that reaches for a page is pinned, or the page is kept in memory for good. It waits only for reads of the
//! base and for step 3, and neither of them waits for a thread: so grace periods end. The thread that evicts gives up a
//! batch whose period does not end within `evictor::GRACE_MAX`, because a thread may be pinned for as long as a
//! callback runs.
//!
//! Memory above the limit is waited for before an operation pins itself (`Journal::admit`); so only operations under
//! way exceed the limit. The wait ends after two batches, whatever they have freed: pages that are kept, or a thread
//! that stays pinned, make the store exceed its limit, but never stop it. The replayed log counts as memory until the
//! first checkpoint has applied it, so pages get less until then.
//!
//! # Requests
//! A thread that will use several pages requests them before it uses the first (`reads`). Threads that use no page load
//! them, as in `blocks`; a page that is still waiting for such a thread when it is used is loaded by its user.
//!
//! # Lock order
//! The checkpoint's -> hand -> rounds. A thread that waits for a round holds no lock of the journal. A thread that
//! waits for a page may hold the checkpoint's or the buffer's, which the thread that loads or frees it does not take.

use std::ops::Range;
use std::thread;

use pmem::{MediumError, Offset, Span};

use super::Loader;
use super::evictor::await_grace;
use super::once::Once;
use super::page_state::{Reached, State};
use super::pager::{Pager, Writing};
use super::paging::{PageFigures, Usage};
use crate::redo::Redo;
use crate::region::PAGE_BYTES;
use crate::{File, canary};

impl<F: File> Loader<F> {
    /// Returns true if pages may be evicted: then a thread must be pinned while it uses the region.
    #[inline(always)]
    pub(crate) fn is_paged(&self) -> bool {
        self.pager.is_some()
    }

    /// Returns the pages, if they may be evicted.
    pub(crate) fn pager(&self) -> Option<&Pager> {
        self.pager.as_ref()
    }

    /// Returns the figures of pages.
    pub(crate) fn page_figures(&self) -> Option<PageFigures> {
        self.pager.as_ref().map(|pager| pager.paging.figures())
    }

    /// Makes the pages of `range` usable by the calling thread.
    pub(super) fn reach_pages(&self, pager: &Pager, range: Range<u64>, usage: Usage) -> Result<(), MediumError> {
        let (mut page, end) = (range.start / PAGE_BYTES, range.end.div_ceil(PAGE_BYTES));
        let (mut result, mut has_changed) = (Ok(()), false);
        while page < end && !range.is_empty() {
            match pager.paging.reach(page, usage) {
                Reached::Ready(before) => {
                    has_changed |= usage.has_changed() && before < State::Writing;
                    page += 1;
                }
                Reached::Claimed(from) => {
                    has_changed = true;
                    self.load_pages(pager, pager.paging.claim_more(page, end, from), (from, usage));
                }
                Reached::Busy => pager.paging.wait(page),
                Reached::Lost => {
                    result = result.and(self.losses());
                    page += 1;
                }
            }
        }
        let has_work = || pager.paging.surplus() > 0 || pager.paging.wants_checkpoint() || usage == Usage::Keep;
        if has_changed && has_work() {
            pager.evictor.wake();
        }
        result
    }

    /// Loads pages that the caller has claimed, and that had the state `from`.
    fn load_pages(&self, pager: &Pager, pages: Range<u64>, (from, usage): (State, Usage)) {
        // SAFETY: the pages are in the region, and the claim gives only this caller access to them.
        let memory = unsafe { &mut *self.memory_of(pages.start * PAGE_BYTES..pages.end * PAGE_BYTES) };
        let read = match from {
            State::Fresh => Ok(()),
            _ => self.base.file().read_pages(memory, pages.start * PAGE_BYTES),
        };
        match read {
            Ok(()) => {
                pager.paging.note_read(if from == State::Fresh { 0 } else { pages.end - pages.start });
                for (page, bytes) in pages.zip(memory.chunks_exact_mut(PAGE_BYTES as usize)) {
                    pager.paging.settle(page, self.redone(page, bytes, from), usage);
                }
            }
            Err(error) if pages.end - pages.start == 1 => {
                self.note_lost(pages.start * PAGE_BYTES, &error);
                memory.fill(0);
                pager.paging.settle(pages.start, State::Lost, usage);
            }
            // Try the pages one by one: some may be readable.
            Err(_) => return pages.for_each(|page| self.load_pages(pager, page..page + 1, (from, usage))),
        }
        pager.paging.wake();
    }

    /// Applies the log's entries for a page that was read from the base; returns the state that it has then.
    fn redone(&self, page: u64, bytes: &mut [u8], from: State) -> State {
        if from != State::Absent || self.base.file().breaks(canary::LOADED_WITHOUT_REDO) {
            return State::Present;
        }
        let redo = self.redo.read();
        redo.apply(page * PAGE_BYTES, bytes);
        if redo.touches(page * PAGE_BYTES) && self.region.is_writable() { State::Stored } else { State::Present }
    }

    /// Makes the threads that read, if there are any, load the pages of `span`.
    pub(crate) fn request(&self, span: Span) {
        let Some(pager) = self.pager.as_ref().filter(|_| self.background) else { return };
        let end = span.end().unwrap_or(u64::MAX).min(self.region.len_bytes());
        let usage = if Once::is_open() { Usage::Once } else { Usage::Read };
        (span.start.0 / PAGE_BYTES..end.div_ceil(PAGE_BYTES))
            .filter(|&page| matches!(pager.paging.state(page), State::Absent | State::Evicted))
            .for_each(|page| pager.reads.request(page, usage));
    }

    /// Runs a thread that reads requested pages. It uses none of them, so it needs no pin.
    pub(crate) fn run_reader(&self) {
        let Some(pager) = &self.pager else { return };
        while let Some((page, usage)) = pager.reads.next(|| self.base.health().is_closing()) {
            if let Some(from) = pager.paging.claim_absent(page) {
                self.load_pages(pager, page..page + 1, (from, usage));
                if pager.paging.surplus() > 0 {
                    pager.evictor.wake();
                }
            }
        }
    }

    /// Slow path of `peek` for pages. The word is valid if the page's state is the same after the read: until then no
    /// checkpoint has dropped entries that the page lacks.
    pub(super) fn peek_page(&self, pager: &Pager, at: Offset) -> Option<u64> {
        let mut word = [0; 8];
        let state = || pager.paging.state(at.0 / PAGE_BYTES);
        let before = state();
        match before {
            State::Fresh => {}
            State::Evicted => self.base.file().read_at(&mut word, at.0).ok()?,
            State::Absent => {
                self.base.file().read_at(&mut word, at.0).ok()?;
                self.redo.read().apply(at.0, &mut word);
            }
            _ => return None,
        }
        (state() == before).then_some(u64::from_ne_bytes(word))
    }

    /// Begins to write the pages of `runs`, as far as the base may lack stores to them. Loads pages with entries in the
    /// replayed log. Then waits until every store that was under way is in memory, but not for long.
    pub(crate) fn begin_write(&self, runs: &[Range<u64>], run_bytes_max: u64) -> Result<Writing, MediumError> {
        let Some(pager) = &self.pager else { return Ok(Writing { runs: runs.to_vec(), is_clean: false }) };
        let mut writing = Writing::default();
        for page in runs.iter().flat_map(|run| run.start / PAGE_BYTES..run.end / PAGE_BYTES) {
            if !self.begin_page(pager, page)? {
                continue;
            }
            let start = page * PAGE_BYTES;
            match writing.runs.last_mut().filter(|last| last.end == start && last.end - last.start < run_bytes_max) {
                Some(last) => last.end += PAGE_BYTES,
                None => writing.runs.push(start..start + PAGE_BYTES),
            }
        }
        writing.is_clean = await_grace();
        Ok(writing)
    }

    /// Begins to write a page; false if the base has it.
    fn begin_page(&self, pager: &Pager, page: u64) -> Result<bool, MediumError> {
        loop {
            match pager.paging.state(page) {
                State::Stored if pager.paging.begin_write(page) => return Ok(true),
                State::Stored => {}
                State::Writing | State::Kept => return Ok(true),
                State::Absent if self.redo.read().touches(page * PAGE_BYTES) => {
                    self.reach_pages(pager, page * PAGE_BYTES..(page + 1) * PAGE_BYTES, Usage::Read)?;
                }
                State::Loading => pager.paging.wait(page),
                State::Lost => self.losses()?,
                _ => return Ok(false),
            }
        }
    }

    /// Notes that a checkpoint is over. If it was `complete`, the base has every page with entries in the replayed log,
    /// and nothing has to be applied to absent pages any more.
    pub(crate) fn end_checkpoint(&self, is_complete: bool) {
        if let Some(pager) = &self.pager {
            if is_complete {
                *self.redo.write() = Redo::default();
                pager.paging.end_replay();
            }
            pager.end_checkpoint();
        }
    }

    /// Evicts a batch of pages, if memory is near its limit. The caller is not pinned. Returns the number of pages.
    pub(crate) fn evict(&self) -> u64 {
        let Some(pager) = &self.pager else { return 0 };
        if self.base.file().breaks(canary::EVICTED_WHILE_STORED) {
            pager.call_clean(&self.region);
        }
        pager.evict(&self.region)
    }

    /// Evicts pages as long as memory is near its limit, until the pages of about `len_bytes` are evicted.
    pub(crate) fn evict_up_to(&self, len_bytes: u64) {
        let mut left = len_bytes / PAGE_BYTES;
        while left > 0 {
            match self.evict() {
                0 => return,
                evicted_count => left = left.saturating_sub(evicted_count),
            }
        }
    }

    /// Runs the thread that evicts, and that calls `ask` when a checkpoint has to make pages clean.
    pub(crate) fn run_evictor(&self, ask: impl Fn()) {
        let Some(pager) = &self.pager else { return };
        pager.evictor.be_thread();
        while !self.base.health().is_closing() {
            if pager.wants_checkpoint() {
                ask();
            } else {
                // Without a checkpoint, because memory was added or pages are kept.
                pager.evictor.checkpoints.recheck();
            }
            let evicted_count = self.evict();
            pager.evictor.batches.note();
            if evicted_count == 0 {
                thread::park();
            }
        }
        pager.evictor.batches.end();
    }
}

#[cfg(test)]
mod tests;
