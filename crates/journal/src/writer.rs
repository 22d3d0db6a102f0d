//! From the buffer to the log file: frames, one segment after the other.
//!
//! | after | a crash leaves |
//! |---|---|
//! | entries in memory, in the order of the stores | nothing of them |
//! | a frame written | nothing of it, a part that does not fit the checksum, or all |
//! | the log synced: acknowledged | the frame |
//! | a full segment synced, and sealed | all of it |
//! | a header written to a free segment, and synced | the old segment's end is the log's, or the new one is there and empty |
//!
//! # Steps of a change of segment
//! 1. The full segment is sealed: the checkpoint may apply it, and has the log synced first. Nothing is synced here: the segment's
//!    last frames are as durable as those that follow, and a lane syncs both (`scan` tells which of them count).
//! 2. The next segment is taken, whose header is durable (`ahead`).
//! 3. Frames are written to it. *Crash:* any part of what was not synced, here and in the sealed segment. The log ends at the first
//!    frame that is missing, wherever that is.
//!
//! Where no writer waits for syncs, the background is asked for the one that step 1 leaves out, so that loss of power takes little
//! more than a segment.

use std::io;
use std::mem;
use std::sync::atomic::Ordering;

use pmem::{Durability, MediumError};

use crate::File;
use crate::canary;
use crate::frame::{FRAME_HEADER_BYTES, Seal, entries, seal_frame};
use crate::journal::Journal;
use crate::layout::FRAMES_START_BYTES;
use crate::slots::{Sealed, Slots};
use crate::tail::{Extent, Tail};

/// What nobody waits for goes to the disk in pieces of this size.
const WRITE_BEHIND_BYTES: u64 = 512 << 10;

/// How much of the log was written at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// Up to this position.
    pub(crate) end: u64,
    /// All frames before this number.
    pub(crate) next: u64,
    /// The region's length with those.
    pub(crate) region_bytes: u64,
}

/// Where the next frame goes.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) slot: u64,
    pub(crate) ordinal: u64,
    /// What its frames have; 0 where they have no mark.
    pub(crate) tag: u64,
    /// The next frame's number.
    pub(crate) sequence: u64,
    /// Where in the segment.
    pub(crate) at_bytes: u64,
    /// What of the page at which the log ends was written.
    pub(crate) tail: Tail,
    /// The region's length after the last frame.
    pub(crate) region_bytes: u64,
    /// A frame's memory, for the next.
    pub(crate) spare: Vec<u8>,
}

impl<F: File> Journal<F> {
    /// How a thread writes that syncs at once: past the cache, where every wait is for a sync.
    pub(crate) fn to_be_synced(&self) -> Extent {
        let everybody_syncs = self.options.level == Durability::Power;
        if everybody_syncs && self.log.has_way_past_cache() { Extent::Through } else { Extent::Cached }
    }

    /// Writes what was appended before this call, if another has not; up to where.
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
            self.write_entries_early(frame).map_err(|error| self.poison(&error))?;
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

    /// The broken twin's way.
    fn write_entries_early(&self, frame: &[u8]) -> io::Result<()> {
        entries(&frame[FRAME_HEADER_BYTES..])
            .flatten()
            .filter(|(_, bytes)| !bytes.is_empty())
            .try_for_each(|(at, bytes)| self.base.write_at(bytes, at))
    }

    /// So that the thread that seals the segment finds most of it written.
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
        // There is one: see `room`.
        let ready = ready.ok_or_else(|| self.poison(&io::Error::from_raw_os_error(libc::ENOSPC)))?;
        (writer.slot, writer.ordinal, writer.tag) = (ready.slot, ready.ordinal, ready.tag);
        writer.at_bytes = FRAMES_START_BYTES;
        writer.tail.restart();
        if self.options.level == Durability::Process {
            self.ask_for_sync();
        }
        Ok(())
    }

    /// Ends a segment that is not full, if another is free.
    pub(crate) fn seal_early(&self) -> Result<bool, MediumError> {
        let mut writer = self.append.writer.lock();
        let has_spare = self.segments.has_spare.load(Ordering::Relaxed);
        if has_spare {
            self.seal(&writer);
            self.begin_segment(&mut writer)?;
        }
        Ok(has_spare)
    }

    /// After every change of what is free.
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
