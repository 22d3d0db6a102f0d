//! The checkpoint: brings the base up to date with the sealed segments, and then frees these segments.
//!
//! # Steps
//! 1. The marks of dirty pages are taken. All entries of sealed segments are in these pages.
//! 2. Some of the pages are copied from memory, word by word, as they are, including later stores.
//! 3. The log is synced up to its end at the time of the copies, and again with a frame that records that (`scan`).
//!    So if the base is ahead of a frame, damage to that frame is not mistaken for the log's end. *Crash:* as
//!    before.
//! 4. The copies are written to the base. *Crash:* the base has any part of them. Replay begins at the oldest of
//!    these segments or before, and does not end before the content of the copies; so every word that the copies
//!    show too early gets its old value, and then the value from the copy. A word that was stored and not flushed
//!    may be there, as on memory that is itself persistent.
//! 5. Steps 2 to 4 for the other pages; then the base is synced. Space that was discarded before an *earlier* such
//!    step is freed (`discards`).
//! 6. The segments may be overwritten. The next header records the segment that is the oldest now. *Crash:* replay
//!    begins where the last header says, at one of these segments or an older one that is still intact.
//!
//! Pages that may be evicted become clean once the base is synced (`loading::page_state`). If they use too much
//! memory, a checkpoint runs without a sealed segment: steps 2 to 5 for these pages, and no segment is freed.
//!
//! Neither the log nor the base is read, except pages whose entries of the replayed log are not in memory yet. Step 3
//! may need another segment for later entries: `reserve` keeps one free.

use std::io;
use std::mem;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use parking_lot::Mutex;
use pmem::MediumError;

use crate::dirty::DirtyPages;
use crate::discards::Spaces;
use crate::guarded::Guarded;
use crate::loading::{Loader, Pager, Writing};
use crate::log::Log;
use crate::pace::Pace;
use crate::pages::Pages;
use crate::region::PAGE_BYTES;
use crate::{File, canary};

/// Length of one read or write call: a sync of the log does not wait behind more for long.
pub(crate) const RUN_BYTES_MAX: u64 = 1 << 20;

/// A shorter run goes through the operating system's cache, which then writes many together.
const LONG_RUN_BYTES: u64 = 64 << 10;

/// Bytes that are copied before the log is synced: next to so much writing, syncs cost little.
const COPIED_BYTES: u64 = 4 << 20;

/// Buffers that a checkpoint leaves to the next one.
#[derive(Debug, Default)]
struct Checkpoint {
    /// Marks, none set.
    unmarked: DirtyPages,
    copies: Pages,
    /// True if it only makes pages clean, so that they can be evicted.
    is_for_memory: bool,
}

/// Brings the base up to date.
#[derive(Debug)]
pub(crate) struct Checkpointer<F> {
    base: Arc<Guarded<F>>,
    spaces: Spaces<F>,
    /// One checkpoint at a time.
    work: Mutex<Checkpoint>,
}

impl<F: File> Checkpointer<F> {
    pub(crate) fn new(base: Arc<Guarded<F>>) -> Checkpointer<F> {
        Checkpointer { spaces: Spaces::new(&base), base, work: Mutex::default() }
    }

    pub(crate) fn spaces(&self) -> &Spaces<F> {
        &self.spaces
    }

    /// Applies the sealed segments; returns false if there were none. The caller does not hold `writer`. In the
    /// background, other threads append no faster than the pages are written.
    pub(crate) fn checkpoint(
        &self,
        log: &Log<F>,
        loader: &Loader<F>,
        is_background: bool,
    ) -> Result<bool, MediumError> {
        let mut own = self.work.lock();
        let count = log.segments().slots().lock().sealed.len();
        if count == 0 && !loader.pager().is_some_and(Pager::wants_checkpoint) {
            return Ok(false);
        }
        self.base.health().check()?;
        let unmarked = mem::take(&mut own.unmarked);
        // Without a sealed segment, only memory is to be freed: the marks stay.
        let mut dirty = if count > 0 { log.appender().take_dirty(unmarked) } else { unmarked };
        own.is_for_memory = count == 0;
        let stored = loader.pager().into_iter().flat_map(|pager| pager.stored_pages(loader.region()));
        stored.for_each(|page| dirty.mark(page * PAGE_BYTES, PAGE_BYTES));
        let begin = || Pace::begin(log.segments(), log.appender().appended(), dirty.len_bytes());
        // With a limit of memory, writers are held back before they pin themselves: a pinned one would delay step 2.
        let pace = (is_background && !loader.is_paged()).then(begin);
        let unsynced = self.write_pages(&dirty, &mut own, log, loader, pace.as_ref())?;
        dirty.clear();
        own.unmarked = dirty;
        if !self.base.file().breaks(canary::RECYCLED_BEFORE_BASE) {
            self.base.sync()?;
        }
        end_writes(loader, &unsynced);
        self.spaces.punch(|| log.segments().replayed_from());
        let is_next_due = count > 0 && log.segments().recycle(count);
        drop(pace);
        if !is_next_due || loader.is_paged() {
            self.base.file().forget_cached();
        }
        loader.end_checkpoint(count > 0);
        Ok(true)
    }

    /// Steps 2 to 4 for all pages. Syncs the base whenever it has many of them, if their memory may then be freed.
    /// Returns the pages since the last sync.
    fn write_pages(
        &self,
        dirty: &DirtyPages,
        own: &mut Checkpoint,
        log: &Log<F>,
        loader: &Loader<F>,
        pace: Option<&Pace<'_>>,
    ) -> Result<Vec<Writing>, MediumError> {
        let (mut runs, mut len_bytes, mut written_bytes) = (Vec::new(), 0, 0);
        let (mut unsynced, mut unsynced_bytes) = (Vec::new(), 0);
        for run in dirty.runs(RUN_BYTES_MAX) {
            len_bytes += run.end - run.start;
            runs.push(run);
            if len_bytes >= COPIED_BYTES {
                unsynced.push(self.write_runs(&runs, own, log, loader)?);
                written_bytes += len_bytes;
                unsynced_bytes += len_bytes;
                pace.inspect(|pace| pace.note(written_bytes));
                (runs, len_bytes) = (Vec::new(), 0);
                if loader.pager().is_some_and(|pager| pager.wants_sync_after(unsynced_bytes)) {
                    self.base.sync()?;
                    end_writes(loader, &unsynced);
                    unsynced.clear();
                    // No thread does it while the journal is opened or closed.
                    loader.evict_up_to(unsynced_bytes);
                    unsynced_bytes = 0;
                }
            }
        }
        unsynced.push(self.write_runs(&runs, own, log, loader)?);
        Ok(unsynced)
    }

    fn write_runs(
        &self,
        runs: &[Range<u64>],
        Checkpoint { copies, is_for_memory, .. }: &mut Checkpoint,
        log: &Log<F>,
        loader: &Loader<F>,
    ) -> Result<Writing, MediumError> {
        copies.clear();
        let writing = loader.begin_write(runs, RUN_BYTES_MAX)?;
        if *is_for_memory && !writing.is_clean {
            // Nothing would be gained: a thread is pinned for long.
            return Ok(writing);
        }
        writing.runs.iter().try_for_each(|run| loader.copy_live(run, copies))?;
        if !self.base.file().breaks(canary::LIVE_PAGE_IN_BASE) {
            log.wait_proved(log.appender().appended_by_now())?;
        }
        self.base.guard(self.write_copies(&writing.runs, copies))?;
        if self.base.file().breaks(canary::CLEAN_BEFORE_SYNC) {
            end_writes(loader, slice::from_ref(&writing));
        }
        Ok(writing)
    }

    /// Step 4.
    fn write_copies(&self, runs: &[Range<u64>], copies: &Pages) -> io::Result<()> {
        let mut rest = copies.bytes();
        for run in runs {
            let (pages, behind) = rest.split_at((run.end - run.start) as usize);
            rest = behind;
            if run.end - run.start < LONG_RUN_BYTES {
                self.base.file().write_at(pages, run.start)?;
            } else {
                self.base.file().write_through(pages, run.start)?;
            }
        }
        if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
            self.base.file().write_back(first.start..last.end);
        }
        Ok(())
    }

    /// Step 4 of opening, for the pages of these runs, which have entries in the log.
    pub(crate) fn settle_base(&self, runs: Vec<Range<u64>>) -> Result<(), MediumError> {
        if self.base.file().breaks(canary::REPLAYED_PAGES_TRUSTED) {
            return Ok(());
        }
        self.base.guard(self.rewrite_pages(runs))?;
        self.base.sync()
    }

    /// Rewrites the pages that are in the system's cache. For the other pages, the disk's content is the only one.
    fn rewrite_pages(&self, runs: Vec<Range<u64>>) -> io::Result<()> {
        let mut pages = vec![0; RUN_BYTES_MAX as usize];
        for Range { mut start, end } in runs {
            while start < end {
                let cached_bytes = self.base.file().read_cached_at(&mut pages[..(end - start) as usize], start)?;
                self.base.file().write_at(&pages[..cached_bytes], start)?;
                start += (cached_bytes as u64).max(PAGE_BYTES);
            }
        }
        Ok(())
    }

    /// Makes the base longer, durably.
    pub(crate) fn lengthen_base(&self, range: Range<u64>) -> Result<(), MediumError> {
        let region_bytes = range.end;
        self.base.allocate(range, region_bytes)?;
        self.base.sync()
    }
}

/// Ends the writes of pages that the base has durably.
fn end_writes<F: File>(loader: &Loader<F>, writings: &[Writing]) {
    let pairs = loader.pager().into_iter().flat_map(|pager| writings.iter().map(move |writing| (pager, writing)));
    pairs.for_each(|(pager, writing)| pager.end_write(writing));
}
