//! Fills memory from the base: the thread that first needs a block reads it, and a background thread reads the
//! other blocks.
//!
//! # Steps of a block
//! 1. It is claimed (`blocks`).
//! 2. Its bytes are read from the base.
//! 3. The log's entries for it that the base may lack are applied (`redo`).
//! 4. It is present. Nothing was written to a file, so a crash leaves the files as opening found them.
//!
//! # Unreadable blocks
//! A block that cannot be read is lost. First the journal is poisoned, so that nothing can be appended that was
//! derived from the zeros; then the block is settled. A caller that reads bytes of it gets an error. Its words read
//! as zeros, and `Residency::check_lost_ranges` returns an error.
//!
//! # Regions larger than memory
//! With [`JournalOptions::memory_bytes_max`] there are no blocks. Pages are read when they are needed, and their memory
//! is freed again (`paged`, `paging`, `page_state`, `evictor`).

mod evictor;
mod hand;
mod once;
mod page_state;
mod paged;
mod pager;
mod paging;
mod reads;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};
use pmem::{MediumError, Offset, Span};

use crate::blocks::{Blocks, State};
use crate::guarded::Guarded;
use crate::pages::Pages;
use crate::redo::Redo;
use crate::region::{PAGE_BYTES, Region};
use crate::{File, JournalOptions, canary};

pub(crate) use once::Once;
pub(crate) use pager::{Pager, Writing};
pub use paging::PageFigures;
use paging::Usage;
pub(crate) use reads::READER_COUNT;

/// Length of the thread's read calls: enough that calls cost little, and short enough that a thread which needs one
/// of these blocks does not wait long.
const RUN_BYTES: u64 = 1 << 20;

/// The part of the base that is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// Number of bytes to be read.
    pub total_bytes: u64,
    /// Number of bytes read so far.
    pub done_bytes: u64,
    /// Time since the log was read, until everything was read, or until now.
    pub time: Duration,
}

/// A base that is being loaded into the region's memory.
#[derive(Debug)]
pub(crate) struct Loader<F> {
    base: Arc<Guarded<F>>,
    region: Region,
    /// True if there is a background thread.
    background: bool,
    blocks: Blocks,
    /// Only of a region that may be larger than its memory; then there are no blocks.
    pager: Option<Pager>,
    /// Empty once everything is loaded.
    redo: RwLock<Redo>,
    wanted: Mutex<Wanted>,
    is_wanted: Condvar,
    lost: OnceLock<MediumError>,
    start: Instant,
    time: OnceLock<Duration>,
}

/// The blocks that the thread has to read.
#[derive(Debug, Default)]
struct Wanted {
    /// Blocks that a thread will need soon.
    expected: VecDeque<Range<u64>>,
    /// All other blocks from this one on, once they are requested.
    rest: Option<u64>,
}

impl Wanted {
    fn next(&mut self, blocks: &Blocks, count_max: u64) -> Option<Range<u64>> {
        while let Some(expected) = self.expected.pop_front() {
            if let Some(run) = blocks.claim_run(expected.clone(), count_max) {
                self.expected.push_front(run.end..expected.end);
                return Some(run);
            }
        }
        let run = blocks.claim_run(self.rest?..blocks.count(), count_max);
        self.rest = Some(run.as_ref().map_or(blocks.count(), |run| run.end));
        run
    }
}

impl<F: File> Loader<F> {
    /// Creates the state for the first `len_bytes` of a base, which lacks the entries of `redo`.
    pub(crate) fn new(
        base: Arc<Guarded<F>>,
        region: Region,
        (len_bytes, redo): (u64, Redo),
        options: &JournalOptions,
    ) -> Loader<F> {
        let pager = Pager::of(&region, redo.len_bytes(), options);
        // A region of pages is never loaded as a whole.
        let (block_count_bytes, time) =
            if pager.is_some() { (0, Duration::ZERO.into()) } else { (len_bytes, OnceLock::new()) };
        Loader {
            base,
            background: options.background,
            blocks: Blocks::absent(block_count_bytes, options.block_bytes),
            pager,
            region,
            redo: RwLock::new(redo),
            wanted: Mutex::default(),
            is_wanted: Condvar::new(),
            lost: OnceLock::new(),
            start: Instant::now(),
            time,
        }
    }

    /// Returns the region.
    #[inline(always)]
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Returns true if there is anything to be loaded.
    pub(crate) fn has_blocks(&self) -> bool {
        self.blocks.count() > 0
    }

    /// Returns the progress of loading.
    pub(crate) fn loaded(&self) -> Loaded {
        Loaded {
            total_bytes: self.blocks.len_bytes(),
            done_bytes: self.blocks.settled_bytes(),
            time: self.time.get().copied().unwrap_or_else(|| self.start.elapsed()),
        }
    }

    /// Returns the error of the first block that could not be read.
    #[inline(always)]
    pub(crate) fn losses(&self) -> Result<(), MediumError> {
        self.lost.get().map_or(Ok(()), |&lost| Err(lost))
    }

    /// Wakes the thread, which then checks whether to continue.
    pub(crate) fn wake(&self) {
        drop(self.wanted.lock());
        self.is_wanted.notify_all();
        self.pager.iter().for_each(Pager::wake);
    }

    /// Slow path of [`pmem::Bytes::check`]. Without a pin, the pages stay in memory for good.
    #[cold]
    #[inline(never)]
    pub(crate) fn reach(&self, span: Span) -> Result<(), MediumError> {
        let usage = match !self.is_paged() || epoch::is_pinned() {
            true if Once::is_open() => Usage::Once,
            true => Usage::Read,
            false => Usage::Keep,
        };
        self.reach_for(span, usage)
    }

    /// Slow path of [`pmem::Bytes::target`], for a thread that is pinned if pages may be evicted.
    #[cold]
    #[inline(never)]
    pub(crate) fn reach_to_store(&self, span: Span) -> Result<(), MediumError> {
        self.reach_for(span, Usage::Store)
    }

    /// Loads the pages of `span`, and keeps them in memory for good.
    pub(crate) fn keep(&self, span: Span) -> Result<(), MediumError> {
        self.reach_for(span, Usage::Keep)
    }

    fn reach_for(&self, span: Span, usage: Usage) -> Result<(), MediumError> {
        let region_bytes = self.region.len_bytes();
        let Span { start, len_bytes } = span;
        let outside = MediumError::OutOfBounds { offset: start.0, len_bytes, region_bytes };
        let end = span.end().filter(|&end| end <= region_bytes).ok_or(outside)?;
        if let Some(pager) = &self.pager {
            return self.reach_pages(pager, start.0..end, usage);
        }
        // Reaches all blocks, also behind a lost one: words are loaded and stored in any of them.
        self.blocks.touched_by(start.0..end).map(|block| self.bring(block)).fold(Ok(()), Result::and)
    }

    /// Waits until the block is settled; loads it if no other thread does.
    fn bring(&self, block: u64) -> Result<(), MediumError> {
        let blocks = &self.blocks;
        if blocks.state(block) == State::Present {
            return Ok(());
        }
        if blocks.claim(block) {
            self.load(block..block + 1);
        }
        match blocks.wait(block) {
            State::Lost => self.losses(),
            _ => Ok(()),
        }
    }

    /// Steps 2 to 4 for blocks that the caller has claimed.
    fn load(&self, run: Range<u64>) {
        match self.fill(run.clone()) {
            Ok(()) => self.settle(run, State::Present),
            Err(error) if run.end - run.start == 1 => self.lose(run, &error),
            // Try the blocks one by one: some may be readable.
            Err(_) => run.for_each(|block| self.load(block..block + 1)),
        }
    }

    fn fill(&self, run: Range<u64>) -> io::Result<()> {
        let Range { start, end } = self.blocks.bytes_of(run.clone());
        // SAFETY: the blocks are in the region, and only this caller uses them.
        let memory = unsafe { &mut *self.memory_of(start..end) };
        self.base.file().read_at(memory, start)?;
        if self.base.file().breaks(canary::LOADED_WITHOUT_REDO) {
            return Ok(());
        }
        let redo = self.redo.read();
        for block in run {
            let range = self.blocks.bytes_of(block..block + 1);
            redo.apply(range.start, &mut memory[(range.start - start) as usize..(range.end - start) as usize]);
        }
        Ok(())
    }

    /// Returns the region's memory at `range`, which is in the region.
    fn memory_of(&self, range: Range<u64>) -> *mut [u8] {
        let start = self.region.memory.base().as_ptr().wrapping_add(range.start as usize);
        ptr::slice_from_raw_parts_mut(start, (range.end - range.start) as usize)
    }

    fn settle(&self, run: Range<u64>, state: State) {
        if self.blocks.settle(run, state) {
            self.finish();
        }
    }

    /// Marks a block as lost: the error first, then the poison, then the state that makes both visible.
    fn lose(&self, block: Range<u64>, error: &io::Error) {
        let range = self.blocks.bytes_of(block.clone());
        self.note_lost(range.start, error);
        // SAFETY: as in `fill`.
        unsafe { &mut *self.memory_of(range) }.fill(0);
        self.settle(block, State::Lost);
    }

    /// Notes that the base could not be read at `start`, and poisons the journal.
    fn note_lost(&self, start: u64, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let _ = self.lost.set(MediumError::Unreadable { offset: start, errno });
        self.base.health().poison(error);
    }

    /// Ends loading: no block is left.
    pub(crate) fn finish(&self) {
        *self.redo.write() = Redo::default();
        let _ = self.time.set(self.start.elapsed());
        if self.lost.get().is_none() && !self.is_paged() {
            self.region.finish_loading();
        }
        self.wake();
    }

    /// Slow path of [`pmem::Residency::peek`]. The word is valid if the block is still absent after the read.
    #[cold]
    #[inline(never)]
    pub(crate) fn peek(&self, at: Offset) -> Option<u64> {
        if let Some(pager) = self.pager.as_ref().filter(|_| at.0 < self.region.len_bytes()) {
            return self.peek_page(pager, at);
        }
        let blocks = &self.blocks;
        let touched = blocks.touched_by(at.0..at.0.checked_add(8)?);
        let is_absent = || touched.clone().all(|block| matches!(blocks.state(block), State::Absent | State::Loading));
        if touched.is_empty() || !is_absent() {
            return None;
        }
        let mut word = [0; 8];
        self.base.file().read_at(&mut word, at.0).ok()?;
        self.redo.read().apply(at.0, &mut word);
        is_absent().then_some(u64::from_ne_bytes(word))
    }

    /// Makes the disk read the page of `at` ahead of time.
    pub(crate) fn expect_page(&self, at: Offset) {
        let page = at.0 - at.0 % PAGE_BYTES;
        let touched = self.blocks.touched_by(page..page + 1);
        if self.pager.as_ref().is_some_and(|pager| pager.is_in_base_alone(page)) {
            self.base.file().will_read(page..page + PAGE_BYTES);
        }
        if touched.clone().any(|block| self.blocks.state(block) == State::Absent) {
            self.base.file().will_read(page..page + PAGE_BYTES);
        }
    }

    /// Makes the thread, if there is one, load `span` before everything else.
    pub(crate) fn expect(&self, span: Span) {
        let touched = self.blocks.touched_by(span.start.0..span.end().unwrap_or(u64::MAX));
        if self.background && !touched.is_empty() {
            self.base.file().will_read(self.blocks.bytes_of(touched.clone()));
            self.wanted.lock().expected.push_back(touched);
            self.is_wanted.notify_one();
        }
    }

    /// Makes the thread, if there is one, load all absent blocks. Pages that may be evicted are loaded only when they
    /// are needed, and those that opening has peeked at leave the operating system's cache.
    pub(crate) fn load_rest(&self) {
        if self.is_paged() {
            return self.base.file().forget_cached();
        }
        self.wanted.lock().rest.get_or_insert(0);
        self.is_wanted.notify_all();
    }

    /// Copies pages of the region, word by word, as they are. Pages that may be evicted have been begun to be written.
    pub(crate) fn copy_live(&self, run: &Range<u64>, copies: &mut Pages) -> Result<(), MediumError> {
        if run.end > self.region.readable_bytes() && !self.is_paged() {
            self.reach(Offset(run.start).span(run.end - run.start))?;
        }
        for (i, word) in copies.lengthen((run.end - run.start) as usize).chunks_exact_mut(8).enumerate() {
            // SAFETY: the pages are in the region, which consists of complete pages; its words are read atomically.
            let live =
                unsafe { &*self.region.memory.base().as_ptr().add(run.start as usize + i * 8).cast::<AtomicU64>() };
            word.copy_from_slice(&live.load(Ordering::Relaxed).to_ne_bytes());
        }
        Ok(())
    }

    /// Runs the thread: reads wanted blocks until none is left, or the journal closes.
    pub(crate) fn read_ahead(&self) {
        let count_max = (RUN_BYTES / self.blocks.block_bytes()).max(1);
        while let Some(run) = self.next_wanted(count_max) {
            self.load(run);
        }
        self.base.file().forget_cached();
    }

    /// Waits for blocks that have to be read; `None` if it is time to stop.
    fn next_wanted(&self, count_max: u64) -> Option<Range<u64>> {
        let mut wanted = self.wanted.lock();
        while self.time.get().is_none() && !self.base.health().is_closing() {
            match wanted.next(&self.blocks, count_max) {
                None => self.is_wanted.wait(&mut wanted),
                run => return run,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
