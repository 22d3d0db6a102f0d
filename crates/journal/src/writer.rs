//! The writer: from the buffer to the log file, in frames, one segment after the other.
//!
//! | after | a crash leaves |
//! |---|---|
//! | entries in memory, in the order of the stores | none of them |
//! | a frame written | none of it, a part that does not match the checksum, or all |
//! | the log synced: acknowledged | the frame |
//! | a full segment synced, and sealed | all of it |
//! | a header written to a free segment, and synced | the log ends in the old segment, or in the new, empty one |
//!
//! # Steps of a change of segment
//! 1. The full segment is sealed: the checkpoint may apply it, and has the log synced first. Sealing itself syncs
//!    nothing: the segment's last frames are as durable as later ones, and a lane syncs both (`scan` decides which
//!    of them count).
//! 2. The next segment, whose header is durable, becomes the present one (`ahead`).
//! 3. Frames are written to it. *Crash:* any part of the unsynced data, here and in the sealed segment. The log
//!    ends at the first missing frame, in either segment.
//!
//! If no writer waits for syncs, the background is asked for the sync that step 1 leaves out, so that a power loss
//! takes little more than a segment.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pmem::{Durability, MediumError};

use crate::ahead::Segments;
use crate::buffer::Appender;
use crate::durable::{Durable, FIRST_POSITION, Written};
use crate::frame::{FRAME_HEADER_BYTES, Seal, entries, mark_frame, seal_frame};
use crate::guarded::Guarded;
use crate::layout::FRAMES_START_BYTES;
use crate::requests::Requests;
use crate::slots::Sealed;
use crate::tail::{Extent, Tail};
use crate::{File, JournalOptions, canary};

/// Data for which no thread waits is written to the disk in pieces of this size.
const WRITE_BEHIND_BYTES: u64 = 512 << 10;

/// The position of the next frame.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) slot: u64,
    pub(crate) ordinal: u64,
    /// The tag of the segment's frames; 0 if they have no mark.
    pub(crate) tag: u64,
    /// The next frame's number.
    pub(crate) sequence: u64,
    /// The position in the segment.
    pub(crate) at_bytes: u64,
    /// The written part of the page at which the log ends.
    pub(crate) tail: Tail,
    /// The region's length after the last frame.
    pub(crate) region_bytes: u64,
    /// A frame's memory, reused for the next.
    pub(crate) spare: Vec<u8>,
}

/// The log's end, at which frames are written.
#[derive(Debug)]
pub(crate) struct LogWriter<F> {
    log: Arc<Guarded<F>>,
    base: Arc<Guarded<F>>,
    options: JournalOptions,
    requests: Arc<Requests>,
    segments: Segments<F>,
    /// Its holder writes frames.
    writer: Mutex<Writer>,
    /// The position up to which the operating system has the entries.
    written: AtomicU64,
    /// Bytes written to the log so far.
    written_bytes: AtomicU64,
}

impl<F: File> LogWriter<F> {
    pub(crate) fn new(
        [log, base]: [&Arc<Guarded<F>>; 2],
        requests: &Arc<Requests>,
        segments: Segments<F>,
        writer: Writer,
        options: JournalOptions,
    ) -> LogWriter<F> {
        LogWriter {
            log: Arc::clone(log),
            base: Arc::clone(base),
            options,
            requests: Arc::clone(requests),
            segments,
            writer: writer.into(),
            written: FIRST_POSITION.into(),
            written_bytes: 0.into(),
        }
    }

    /// Makes written frames durable. They are worth nothing without the base, which another program may have removed.
    pub(crate) fn sync(&self) -> Result<(), MediumError> {
        self.log.sync()?;
        self.base.guard(self.base.file().check_in_place())
    }

    pub(crate) fn segments(&self) -> &Segments<F> {
        &self.segments
    }

    /// Returns the position up to which the operating system has the entries.
    #[inline(always)]
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Returns the number of bytes written to the log so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Returns the way of writing for a thread that syncs immediately: past the cache if every wait is for a sync.
    pub(crate) fn to_be_synced(&self) -> Extent {
        let everybody_syncs = self.options.level == Durability::Power;
        if everybody_syncs && self.log.file().has_way_past_cache() { Extent::Through } else { Extent::Cached }
    }

    /// Writes the entries appended before this call, unless another thread has; returns the written part.
    pub(crate) fn write_out(
        &self,
        appender: &Appender,
        durable: &Durable,
        extent: Extent,
    ) -> Result<Written, MediumError> {
        let mut writer = self.writer.lock();
        self.log.health().check()?;
        let ((mut frame, region_bytes), end) = appender.take(mem::take(&mut writer.spare));
        if frame.len() > FRAME_HEADER_BYTES {
            self.write_frame(&mut writer, &mut frame, durable, extent)?;
            writer.region_bytes = region_bytes;
        }
        writer.spare = frame;
        self.written.store(end, Ordering::Release);
        Ok(Written { end, next: writer.sequence, region_bytes: writer.region_bytes })
    }

    fn write_frame(
        &self,
        writer: &mut Writer,
        frame: &mut [u8],
        durable: &Durable,
        extent: Extent,
    ) -> Result<(), MediumError> {
        if self.log.file().breaks(canary::BASE_BEFORE_LOG) {
            self.log.guard(broken::write_entries_early(self.base.file(), frame))?;
        }
        if !self.segments.widen_to(writer.at_bytes + frame.len() as u64)? {
            self.seal(writer, durable);
            self.begin_segment(writer, durable)?;
        }
        let mark = durable.mark();
        seal_frame(frame, Seal { sequence: writer.sequence, tag: writer.tag, mark });
        let at = writer.slot * self.options.segment_bytes + writer.at_bytes;
        let (bytes, before_bytes) = writer.tail.append(frame, extent);
        self.log.guard(match extent {
            Extent::Cached => self.log.file().write_at(bytes, at - before_bytes as u64),
            Extent::Through => self.log.file().write_through(bytes, at - before_bytes as u64),
        })?;
        self.written_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        writer.tail.settle();
        self.write_behind(writer, extent, frame.len() as u64);
        writer.at_bytes += frame.len() as u64;
        writer.sequence += 1;
        self.segments.go_ahead(writer.at_bytes, durable)
    }

    /// Begins to write back full pieces, so that the thread that seals the segment finds most of it written.
    fn write_behind(&self, writer: &Writer, extent: Extent, frame_bytes: u64) {
        let (before, now) = (writer.at_bytes, writer.at_bytes + frame_bytes);
        let pieces = before / WRITE_BEHIND_BYTES..now / WRITE_BEHIND_BYTES;
        if extent == Extent::Cached && !pieces.is_empty() {
            let start = writer.slot * self.options.segment_bytes;
            self.log
                .file()
                .begin_write_back(start + pieces.start * WRITE_BEHIND_BYTES..start + pieces.end * WRITE_BEHIND_BYTES);
        }
    }

    /// Step 1.
    fn seal(&self, writer: &Writer, durable: &Durable) {
        let end = self.written();
        if self.log.file().breaks(canary::SEALED_CALLED_DURABLE) {
            durable.note(Written { end, next: writer.sequence, region_bytes: writer.region_bytes });
        }
        let (slot, ordinal, end_bytes) = (writer.slot, writer.ordinal, writer.at_bytes);
        {
            let mut slots = self.segments.slots().lock();
            let (_, first) = slots.begun;
            slots.sealed.push_back(Sealed { slot, ordinal, first, end_bytes, end });
        }
        self.segments.slots().notify();
    }

    /// Step 2.
    fn begin_segment(&self, writer: &mut Writer, durable: &Durable) -> Result<(), MediumError> {
        let ready = match self.segments.take_ready(writer.sequence) {
            None => self.segments.prepare(None, durable).map(|()| self.segments.take_ready(writer.sequence))?,
            ready => ready,
        };
        // One is ready: see `Journal::reserve`.
        let ready = self.log.guard(ready.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSPC)))?;
        (writer.slot, writer.ordinal, writer.tag) = (ready.slot, ready.ordinal, ready.tag);
        writer.at_bytes = FRAMES_START_BYTES;
        writer.tail.restart();
        if self.options.level == Durability::Process {
            self.requests.soon();
        }
        Ok(())
    }

    /// Ends a segment that is not full, if another one is free; returns true if it did.
    pub(crate) fn seal_early(&self, durable: &Durable) -> Result<bool, MediumError> {
        let mut writer = self.writer.lock();
        let has_spare = self.segments.slots().has_spare();
        if has_spare {
            self.seal(&writer, durable);
            self.begin_segment(&mut writer, durable)?;
        }
        Ok(has_spare)
    }

    /// Step 3 of opening.
    pub(crate) fn settle_tail(&self, unproved: &[Sealed], durable: &Durable) -> Result<(), MediumError> {
        if !self.log.file().breaks(canary::TAIL_NOT_REWRITTEN) {
            self.log.guard(self.rewrite(unproved))?;
        }
        durable.set_mark(self.writer.lock().sequence);
        Ok(())
    }

    fn rewrite(&self, segments: &[Sealed]) -> io::Result<()> {
        let log = self.log.file();
        for segment in segments {
            let start_bytes = segment.slot * self.options.segment_bytes;
            let mut bytes = vec![0; segment.end_bytes as usize];
            log.read_at(&mut bytes, start_bytes)?;
            log.write_at(&bytes, start_bytes)?;
        }
        log.sync()
    }

    /// Writes a frame with only a mark behind the newest segment's frames, which are durable; not into a segment of
    /// version 1. If a segment is free, its header will record the same, before the base is ahead of the log's last
    /// frame.
    pub(crate) fn mark_tail(&self) -> Result<(), MediumError> {
        if self.segments.slots().has_spare() { Ok(()) } else { self.log.guard(self.write_mark()) }
    }

    fn write_mark(&self) -> io::Result<()> {
        let (mut writer, mut slots) = (self.writer.lock(), self.segments.slots().lock());
        let newest = slots.sealed.back_mut().expect("an opened log has a segment");
        let (mark, capacity_bytes) = (writer.sequence, self.segments.capacity_bytes());
        let frame = mark_frame(writer.region_bytes, Seal { sequence: mark, tag: writer.tag, mark });
        let end_bytes = newest.end_bytes + frame.len() as u64;
        if writer.tag == 0 || end_bytes > capacity_bytes {
            return Ok(());
        }
        // Zeros behind the mark, so that no cut-off frame follows it.
        let zeros_bytes = (capacity_bytes - end_bytes).min(FRAME_HEADER_BYTES as u64);
        let ended = [frame, vec![0; zeros_bytes as usize]].concat();
        let at = newest.slot * self.options.segment_bytes + newest.end_bytes;
        self.log.file().write_at(&ended, at)?;
        self.log.file().sync()?;
        newest.end_bytes = end_bytes;
        writer.sequence += 1;
        Ok(())
    }

    /// Begins a segment whose header records the number of its first frame: all frames before that are durable.
    pub(crate) fn begin_after_all(&self, durable: &Durable) -> Result<(), MediumError> {
        let mut writer = self.writer.lock();
        self.segments.prepare(Some(writer.sequence), durable)?;
        self.begin_segment(&mut writer, durable)
    }

    /// Returns true if the segment has no frames, and no other has any that the base lacks.
    pub(crate) fn is_empty(&self) -> bool {
        self.writer.lock().at_bytes == FRAMES_START_BYTES && self.segments.slots().lock().sealed.is_empty()
    }

    /// Seals the last segment of a log that is closed.
    pub(crate) fn seal_last(&self, durable: &Durable) {
        self.seal(&self.writer.lock(), durable);
    }

    /// Shortens the log, whose newest segment has no frames.
    pub(crate) fn shorten(&self) {
        let writer = self.writer.lock();
        self.segments.shorten(writer.slot);
    }

    /// Returns the fill level of the segment, and the bytes of its end that are kept in memory.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (u64, usize) {
        let writer = self.writer.lock();
        (writer.at_bytes, writer.tail.kept_bytes())
    }
}

/// Broken variants of the writer.
mod broken {
    use super::{FRAME_HEADER_BYTES, File, entries, io};

    /// Writes a frame's entries to the base before the frame is in the log.
    #[cold]
    pub(super) fn write_entries_early<F: File>(base: &F, frame: &[u8]) -> io::Result<()> {
        entries(&frame[FRAME_HEADER_BYTES..])
            .flatten()
            .filter(|(_, bytes)| !bytes.is_empty())
            .try_for_each(|(at, bytes)| base.write_at(bytes, at))
    }
}
