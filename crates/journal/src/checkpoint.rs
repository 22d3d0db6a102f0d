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
//! Neither the log nor the base is read. Step 3 may need another segment for later entries: `room` keeps one free.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{MediumError, Offset};

use crate::File;
use crate::canary;
use crate::dirty::DirtyPages;
use crate::journal::Journal;
use crate::pages::Pages;

/// Length of one write call: a sync of the log does not wait behind more for long.
const RUN_BYTES_MAX: u64 = 1 << 20;

/// A shorter run goes through the operating system's cache, which then writes many together.
const LONG_RUN_BYTES: u64 = 64 << 10;

/// Bytes that are copied before the log is synced: next to so much writing, syncs cost little.
const COPIED_BYTES: u64 = 4 << 20;

/// Buffers that a checkpoint leaves to the next one.
#[derive(Debug, Default)]
pub(crate) struct Checkpoint {
    /// Marks, none set.
    unmarked: DirtyPages,
    copies: Pages,
}

impl<F: File> Journal<F> {
    /// Applies the sealed segments; returns false if there were none. The caller does not hold `writer`.
    pub(crate) fn checkpoint(&self) -> Result<bool, MediumError> {
        let mut own = self.checkpoints.work.lock();
        let count = self.segments.slots.lock().sealed.len();
        if count == 0 {
            return Ok(false);
        }
        self.healthy()?;
        let unmarked = mem::take(&mut own.unmarked);
        let mut dirty = mem::replace(&mut self.append.buffer.lock().dirty, unmarked);
        self.write_pages(&dirty, &mut own.copies)?;
        dirty.clear();
        own.unmarked = dirty;
        if !self.base.breaks(canary::RECYCLED_BEFORE_BASE) {
            self.sync_base()?;
        }
        self.punch_discarded();
        self.recycle(count);
        Ok(true)
    }

    /// Step 6.
    fn recycle(&self, count: usize) {
        let is_next_due = {
            let mut slots = self.segments.slots.lock();
            slots.recycle(count);
            self.note_spare(&slots);
            slots.sealed.len() >= self.options.checkpoint_segments()
        };
        self.segments.slots_changed.notify_all();
        if !is_next_due {
            self.base.forget_cached();
        }
    }

    /// Steps 2 to 4 for all pages.
    fn write_pages(&self, dirty: &DirtyPages, copies: &mut Pages) -> Result<(), MediumError> {
        let (mut runs, mut len_bytes) = (Vec::new(), 0);
        for run in dirty.runs(RUN_BYTES_MAX) {
            len_bytes += run.end - run.start;
            runs.push(run);
            if len_bytes >= COPIED_BYTES {
                self.write_runs(&runs, copies)?;
                (runs, len_bytes) = (Vec::new(), 0);
            }
        }
        self.write_runs(&runs, copies)
    }

    fn write_runs(&self, runs: &[Range<u64>], copies: &mut Pages) -> Result<(), MediumError> {
        copies.clear();
        runs.iter().try_for_each(|run| self.copy_live(run, copies))?;
        if !self.base.breaks(canary::LIVE_PAGE_IN_BASE) {
            self.wait_proved(self.appended_by_now())?;
        }
        self.write_copies(runs, copies).map_err(|error| self.poison(&error))
    }

    /// Returns the position up to which the log has entries of everything that this thread has seen published: a
    /// writer that was about to append has done so.
    pub(crate) fn appended_by_now(&self) -> u64 {
        let _buffer = self.append.buffer.lock();
        self.append.appended.load(Ordering::Relaxed)
    }

    /// Step 2 for adjacent pages.
    fn copy_live(&self, run: &Range<u64>, copies: &mut Pages) -> Result<(), MediumError> {
        if run.end > self.region.readable_bytes() {
            self.reach_slowly(Offset(run.start).span(run.end - run.start))?;
        }
        for (i, word) in copies.lengthen((run.end - run.start) as usize).chunks_exact_mut(8).enumerate() {
            // SAFETY: the pages are in the region, which consists of complete pages; its words are read atomically.
            let live =
                unsafe { &*self.region.memory.base().as_ptr().add(run.start as usize + i * 8).cast::<AtomicU64>() };
            word.copy_from_slice(&live.load(Ordering::Relaxed).to_ne_bytes());
        }
        Ok(())
    }

    /// Step 4.
    fn write_copies(&self, runs: &[Range<u64>], copies: &Pages) -> io::Result<()> {
        let mut rest = copies.bytes();
        for run in runs {
            let (pages, behind) = rest.split_at((run.end - run.start) as usize);
            rest = behind;
            if run.end - run.start < LONG_RUN_BYTES {
                self.base.write_at(pages, run.start)?;
            } else {
                self.base.write_through(pages, run.start)?;
            }
        }
        if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
            self.base.write_back(first.start..last.end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
