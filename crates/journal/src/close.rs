//! The work before the first write to an opened log, and after the last.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use pmem::MediumError;

use crate::File;
use crate::canary;
use crate::error::{JournalError, Which};
use crate::frame::{FRAME_HEADER_BYTES, Seal, mark_frame};
use crate::journal::Journal;
use crate::journaled::SEGMENT_COUNT;
use crate::layout::FRAMES_START_BYTES;
use crate::recover::rewrite;
use crate::region::PAGE_BYTES;
use crate::slots::Sealed;

/// Length of one read and write call.
const REWRITTEN_BYTES_MAX: u64 = 1 << 20;

impl<F: File> Journal<F> {
    /// Steps 3 to 5 of opening.
    pub(crate) fn go_on_behind_the_end(&self, unproved: &[Sealed]) -> Result<(), JournalError> {
        self.settle_tail(unproved).map_err(JournalError::medium(Which::Log, "settle the end of"))?;
        self.settle_base().map_err(JournalError::medium(Which::Base, "settle the replayed pages of"))?;
        self.keep_first_space().map_err(JournalError::medium(Which::Log, "take space for"))?;
        self.keep_spare().map_err(JournalError::medium(Which::Log, "lengthen"))?;
        self.mark_tail().map_err(JournalError::medium(Which::Log, "mark the end of"))?;
        self.free_segment().map_err(JournalError::medium(Which::Base, "apply the log to"))?;
        self.begin_after_all().map_err(JournalError::medium(Which::Log, "go on in"))
    }

    /// Begins a segment whose header records the number of its first frame: all frames before that are durable.
    fn begin_after_all(&self) -> Result<(), MediumError> {
        let mut writer = self.append.writer.lock();
        self.prepare(Some(writer.sequence))?;
        self.begin_segment(&mut writer)
    }

    fn settle_tail(&self, unproved: &[Sealed]) -> Result<(), MediumError> {
        if !self.log.breaks(canary::TAIL_NOT_REWRITTEN) {
            rewrite(&self.log, unproved, &self.options).map_err(|error| self.poison(&error))?;
        }
        self.append.mark.store(self.append.writer.lock().sequence, Ordering::Release);
        Ok(())
    }

    fn settle_base(&self) -> Result<(), MediumError> {
        if self.base.breaks(canary::REPLAYED_PAGES_TRUSTED) {
            return Ok(());
        }
        self.rewrite_replayed_pages().map_err(|error| self.poison(&error))?;
        self.sync_base()
    }

    /// Rewrites the pages that are in the system's cache. For the other pages, the disk's content is the only one.
    fn rewrite_replayed_pages(&self) -> io::Result<()> {
        let runs: Vec<_> = self.append.buffer.lock().dirty.runs(REWRITTEN_BYTES_MAX).collect();
        let mut pages = vec![0; REWRITTEN_BYTES_MAX as usize];
        for Range { mut start, end } in runs {
            while start < end {
                let cached_bytes = self.base.read_cached_at(&mut pages[..(end - start) as usize], start)?;
                self.base.write_at(&pages[..cached_bytes], start)?;
                start += (cached_bytes as u64).max(PAGE_BYTES);
            }
        }
        Ok(())
    }

    /// Runs a checkpoint, because no thread does it yet. Nothing was appended, so it syncs no log.
    fn free_segment(&self) -> Result<(), MediumError> {
        let has_spare = self.segments.has_spare.load(Ordering::Relaxed);
        if has_spare { Ok(()) } else { self.checkpoint().map(drop) }
    }

    /// Writes a frame with only a mark behind the newest segment's frames, which are durable; not into a segment of
    /// version 1. If a segment is free, its header will record the same, before the base is ahead of the log's last
    /// frame.
    fn mark_tail(&self) -> Result<(), MediumError> {
        let has_spare = self.segments.has_spare.load(Ordering::Relaxed);
        if has_spare { Ok(()) } else { self.write_mark().map_err(|error| self.poison(&error)) }
    }

    fn write_mark(&self) -> io::Result<()> {
        let (mut writer, mut slots) = (self.append.writer.lock(), self.segments.slots.lock());
        let newest = slots.sealed.back_mut().expect("an opened log has a segment");
        let mark = writer.sequence;
        let frame = mark_frame(writer.region_bytes, Seal { sequence: mark, tag: writer.tag, mark });
        let end_bytes = newest.end_bytes + frame.len() as u64;
        if writer.tag == 0 || end_bytes > self.capacity_bytes() {
            return Ok(());
        }
        // Zeros behind the mark, so that no cut-off frame follows it.
        let capacity_bytes = (self.capacity_bytes() - end_bytes).min(FRAME_HEADER_BYTES as u64);
        let ended = [frame, vec![0; capacity_bytes as usize]].concat();
        self.log.write_at(&ended, newest.slot * self.options.segment_bytes + newest.end_bytes)?;
        self.log.sync()?;
        newest.end_bytes = end_bytes;
        writer.sequence += 1;
        Ok(())
    }

    /// Makes everything durable, brings the base up to date, and leaves a log that needs no replay.
    pub(crate) fn shut(&self) -> Result<(), MediumError> {
        let is_empty =
            self.append.writer.lock().at_bytes == FRAMES_START_BYTES && self.segments.slots.lock().sealed.is_empty();
        let end = self.appended_by_now();
        if is_empty && self.is_synced(end) {
            return Ok(());
        }
        // Before the segment is sealed: then the checkpoint has nothing to append to it.
        self.wait_proved(end)?;
        self.seal(&self.append.writer.lock());
        self.checkpoint()?;
        self.segments.slots.lock().use_first();
        self.begin_after_all()?;
        self.punch_discarded();
        self.shorten_log();
        Ok(())
    }

    /// Shortens the file: the newest header excludes everything behind its segment, which has no frames. *Crash:*
    /// the file is as long as before, or shorter, and has more holes or fewer. A log that cannot be cut stays as it
    /// is.
    fn shorten_log(&self) {
        let (writer, mut slots) = (self.append.writer.lock(), self.segments.slots.lock());
        let count = SEGMENT_COUNT.max(writer.slot + 1);
        if count < slots.count && self.log.truncate(count * self.options.segment_bytes).is_ok() {
            slots.cut(count);
            self.note_spare(&slots);
        }
        if self.capacity_bytes() > self.options.first_space_bytes() {
            let segment_bytes = self.options.segment_bytes;
            let ends = (0..slots.count).map(|slot| (slot * segment_bytes, (slot + 1) * segment_bytes));
            let mut unused = ends.map(|(start, end)| start + self.options.first_space_bytes()..end);
            // The next opening writes a new header before anything else, and uses the space that it finds.
            let _ = unused.try_for_each(|range| self.log.punch(range));
        }
    }
}

#[cfg(test)]
mod tests;
