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
use std::sync::atomic::Ordering;

use pmem::{Durability, MediumError};

use crate::frame::{FRAME_HEADER_BYTES, Seal, seal_frame};
use crate::journal::Journal;
use crate::layout::FRAMES_START_BYTES;
use crate::slots::{Sealed, Slots};
use crate::tail::{Extent, Tail};
use crate::{File, broken, canary};

/// Data for which no thread waits is written to the disk in pieces of this size.
const WRITE_BEHIND_BYTES: u64 = 512 << 10;

/// The part of the log that was written at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// The position up to which entries were written.
    pub(crate) end: u64,
    /// The number before which all frames were written.
    pub(crate) next: u64,
    /// The region's length with those frames.
    pub(crate) region_bytes: u64,
}

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

impl<F: File> Journal<F> {
    /// Returns the way of writing for a thread that syncs immediately: past the cache if every wait is for a sync.
    pub(crate) fn to_be_synced(&self) -> Extent {
        let everybody_syncs = self.options.level == Durability::Power;
        if everybody_syncs && self.log.has_way_past_cache() { Extent::Through } else { Extent::Cached }
    }

    /// Writes the entries appended before this call, unless another thread has; returns the written part.
    pub(crate) fn write_out(&self, extent: Extent) -> Result<Written, MediumError> {
        let mut writer = self.append.writer.lock();
        self.healthy()?;
        let ((mut frame, region_bytes), end) = {
            let mut buffer = self.append.buffer.lock();
            (buffer.take(mem::take(&mut writer.spare)), self.append.appended.load(Ordering::Acquire))
        };
        if frame.len() > FRAME_HEADER_BYTES {
            self.write_frame(&mut writer, &mut frame, extent)?;
            writer.region_bytes = region_bytes;
        }
        writer.spare = frame;
        self.append.written.store(end, Ordering::Release);
        Ok(Written { end, next: writer.sequence, region_bytes: writer.region_bytes })
    }

    fn write_frame(&self, writer: &mut Writer, frame: &mut [u8], extent: Extent) -> Result<(), MediumError> {
        if self.log.breaks(canary::BASE_BEFORE_LOG) {
            broken::write_entries_early(self, frame).map_err(|error| self.poison(&error))?;
        }
        if !self.widen_to(writer.at_bytes + frame.len() as u64)? {
            self.seal(writer);
            self.begin_segment(writer)?;
        }
        let mark = self.append.mark.load(Ordering::Acquire);
        seal_frame(frame, Seal { sequence: writer.sequence, tag: writer.tag, mark });
        let at = writer.slot * self.options.segment_bytes + writer.at_bytes;
        let (bytes, before_bytes) = writer.tail.append(frame, extent);
        let written = self.write_in(extent, bytes, at - before_bytes as u64);
        written.map_err(|error| self.poison(&error))?;
        self.note_written(bytes.len());
        writer.tail.settle();
        self.write_behind(writer, extent, frame.len() as u64);
        writer.at_bytes += frame.len() as u64;
        writer.sequence += 1;
        self.go_ahead(writer.at_bytes)
    }

    /// Begins to write back full pieces, so that the thread that seals the segment finds most of it written.
    fn write_behind(&self, writer: &Writer, extent: Extent, frame_bytes: u64) {
        let (before, now) = (writer.at_bytes, writer.at_bytes + frame_bytes);
        let pieces = before / WRITE_BEHIND_BYTES..now / WRITE_BEHIND_BYTES;
        if extent == Extent::Cached && !pieces.is_empty() {
            let start = writer.slot * self.options.segment_bytes;
            self.log
                .begin_write_back(start + pieces.start * WRITE_BEHIND_BYTES..start + pieces.end * WRITE_BEHIND_BYTES);
        }
    }

    fn write_in(&self, extent: Extent, bytes: &[u8], at: u64) -> io::Result<()> {
        match extent {
            Extent::Cached => self.log.write_at(bytes, at),
            Extent::Through => self.log.write_through(bytes, at),
        }
    }

    /// Step 1.
    pub(crate) fn seal(&self, writer: &Writer) {
        let end = self.append.written.load(Ordering::Acquire);
        if self.log.breaks(canary::SEALED_CALLED_DURABLE) {
            self.note_synced(Written { end, next: writer.sequence, region_bytes: writer.region_bytes });
        }
        let (slot, ordinal, end_bytes) = (writer.slot, writer.ordinal, writer.at_bytes);
        {
            let mut slots = self.segments.slots.lock();
            let (_, first) = slots.begun;
            slots.sealed.push_back(Sealed { slot, ordinal, first, end_bytes, end });
        }
        self.segments.slots_changed.notify_all();
    }

    /// Step 2.
    pub(crate) fn begin_segment(&self, writer: &mut Writer) -> Result<(), MediumError> {
        let ready = match self.take_ready(writer.sequence) {
            None => self.prepare(None).map(|()| self.take_ready(writer.sequence))?,
            ready => ready,
        };
        // One is ready: see `room`.
        let ready = ready.ok_or_else(|| self.poison(&io::Error::from_raw_os_error(libc::ENOSPC)))?;
        (writer.slot, writer.ordinal, writer.tag) = (ready.slot, ready.ordinal, ready.tag);
        writer.at_bytes = FRAMES_START_BYTES;
        writer.tail.restart();
        if self.options.level == Durability::Process {
            self.ask_for_sync();
        }
        Ok(())
    }

    /// Ends a segment that is not full, if another one is free; returns true if it did.
    pub(crate) fn seal_early(&self) -> Result<bool, MediumError> {
        let mut writer = self.append.writer.lock();
        let has_spare = self.segments.has_spare.load(Ordering::Relaxed);
        if has_spare {
            self.seal(&writer);
            self.begin_segment(&mut writer)?;
        }
        Ok(has_spare)
    }

    /// Updates `has_spare` after every change of the free slots.
    pub(crate) fn note_spare(&self, slots: &Slots) {
        self.segments.has_spare.store(slots.has_spare(), Ordering::Relaxed);
    }

    /// Waits until a segment is free.
    #[cold]
    pub(crate) fn await_spare(&self) -> Result<(), MediumError> {
        if !self.options.background {
            return self.checkpoint().map(drop);
        }
        let mut slots = self.segments.slots.lock();
        while !slots.has_spare() {
            self.healthy()?;
            slots.is_one_wanted = true;
            self.segments.slots_changed.notify_all();
            self.segments.slots_changed.wait(&mut slots);
        }
        Ok(())
    }
}
