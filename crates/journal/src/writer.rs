//! From the buffer to the log file: frames, one segment after the other.
//!
//! # Steps of a new segment
//! 1. Sync: every frame of the full segment is durable. *Crash:* the log ends in it.
//! 2. The segment is sealed: the checkpoint may apply it.
//! 3. A free segment is taken: there is one, since nothing is appended otherwise. Before that the file gets longer if it may
//!    and no other is free.
//! 4. The new segment's header is written, and synced. *Crash:* what the segment held before, or an empty segment.
//! 5. Frames are written to it.

use std::io;
use std::mem;
use std::sync::atomic::Ordering;

use pmem::{Canary, Durability, MediumError};

use crate::File;
use crate::frame::{FRAME_HEADER_BYTES, Seal, entries, seal_frame};
use crate::journal::Journal;
use crate::layout::FRAMES_START_BYTES;
use crate::pages::Pages;
use crate::segment::{Header, VERSION};
use crate::slots::{Sealed, Slots};
use crate::tail::{Extent, Tail};

/// Zeros are written in pieces of this size.
const ZEROS_BYTES: u64 = 1 << 20;

/// What nobody waits for goes to the disk in pieces of this size.
const WRITE_BEHIND_BYTES: u64 = 512 << 10;

/// How much of the log was written at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// Up to this position.
    pub(crate) end: u64,
    /// All frames before this number.
    pub(crate) next: u64,
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
    /// How whoever syncs writes: past the cache, where everybody syncs.
    pub(crate) fn to_be_synced(&self) -> Extent {
        let everybody_syncs = self.options.level == Durability::Power;
        if everybody_syncs && self.log.has_way_past_cache() { Extent::Through } else { Extent::Cached }
    }

    /// Writes what was appended before this call, if another has not; up to where.
    pub(crate) fn write_out(&self, extent: Extent) -> Result<Written, MediumError> {
        let mut writer = self.writer.lock();
        self.healthy()?;
        let ((mut frame, region_bytes), end) = {
            let mut buffer = self.buffer.lock();
            (buffer.take(mem::take(&mut writer.spare)), self.appended.load(Ordering::Acquire))
        };
        if frame.len() > FRAME_HEADER_BYTES {
            self.write_frame(&mut writer, &mut frame, extent)?;
            writer.region_bytes = region_bytes;
        }
        writer.spare = frame;
        self.written.store(end, Ordering::Release);
        Ok(Written { end, next: writer.sequence })
    }

    fn write_frame(&self, writer: &mut Writer, frame: &mut [u8], extent: Extent) -> Result<(), MediumError> {
        if self.log.breaks(Canary::BaseBeforeLog) {
            self.write_entries_early(frame).map_err(|error| self.poison(&error))?;
        }
        if writer.at_bytes + frame.len() as u64 > self.options.segment_bytes {
            self.seal(writer)?;
            self.begin_segment(writer)?;
        }
        let mark = self.mark.load(Ordering::Acquire);
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
        Ok(())
    }

    /// The broken twin's way.
    fn write_entries_early(&self, frame: &[u8]) -> io::Result<()> {
        entries(&frame[FRAME_HEADER_BYTES..])
            .flatten()
            .filter(|(_, bytes)| !bytes.is_empty())
            .try_for_each(|(at, bytes)| self.base.write_at(bytes, at))
    }

    /// So that who seals the segment finds most of it written.
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

    /// Steps 1 and 2.
    pub(crate) fn seal(&self, writer: &Writer) -> Result<(), MediumError> {
        let written = Written { end: self.written.load(Ordering::Acquire), next: writer.sequence };
        self.sync_log()?;
        self.note_synced(written);
        let sealed =
            Sealed { slot: writer.slot, ordinal: writer.ordinal, end_bytes: writer.at_bytes, end: written.end };
        self.slots.lock().sealed.push_back(sealed);
        self.slots_changed.notify_all();
        Ok(())
    }

    /// Steps 3 and 4.
    pub(crate) fn begin_segment(&self, writer: &mut Writer) -> Result<(), MediumError> {
        self.keep_spare()?;
        let slot = self.take_slot()?;
        let ordinal = writer.ordinal + 1;
        let (oldest, recycled) = {
            let slots = self.slots.lock();
            (slots.oldest(ordinal), slots.recycled)
        };
        let header = Header {
            version: VERSION,
            segment_bytes: self.options.segment_bytes as u32,
            identity: self.identity,
            ordinal,
            first_sequence: writer.sequence,
            oldest,
            region_bytes: writer.region_bytes,
            salt: self.options.salt,
        };
        let written = write_header(&self.log, slot, &header);
        written.map_err(|error| self.poison(&error))?;
        if !self.log.breaks(Canary::FramesBeforeHeader) {
            self.sync_log()?;
        }
        self.replayed_from.store(recycled, Ordering::Release);
        (writer.slot, writer.ordinal, writer.tag) = (slot, ordinal, header.tag());
        writer.at_bytes = FRAMES_START_BYTES;
        writer.tail.restart();
        Ok(())
    }

    /// Ends a segment that is not full, if another is free.
    pub(crate) fn seal_early(&self) -> Result<bool, MediumError> {
        let mut writer = self.writer.lock();
        let has_spare = self.has_spare.load(Ordering::Relaxed);
        if has_spare {
            self.seal(&writer)?;
            self.begin_segment(&mut writer)?;
        }
        Ok(has_spare)
    }

    /// Step 3. There is one: see `room`.
    fn take_slot(&self) -> Result<u64, MediumError> {
        let slot = {
            let mut slots = self.slots.lock();
            let slot = slots.free.pop();
            self.note_spare(&slots);
            slot
        };
        slot.ok_or_else(|| self.poison(&io::Error::from_raw_os_error(libc::ENOSPC)))
    }

    /// After every change of what is free.
    pub(crate) fn note_spare(&self, slots: &Slots) {
        self.has_spare.store(!slots.free.is_empty(), Ordering::Relaxed);
    }

    /// Makes the log longer where it may be and not even a segment behind the next one is free.
    pub(crate) fn keep_spare(&self) -> Result<(), MediumError> {
        let must_lengthen = {
            let slots = self.slots.lock();
            slots.free.len() < 2 && slots.count < self.options.segment_count_max() && !slots.is_disk_full
        };
        if must_lengthen { self.lengthen() } else { Ok(()) }
    }

    /// Waits until a segment is free.
    #[cold]
    pub(crate) fn await_spare(&self) -> Result<(), MediumError> {
        if !self.options.background {
            return self.checkpoint().map(drop);
        }
        let mut slots = self.slots.lock();
        while slots.free.is_empty() {
            self.healthy()?;
            slots.is_one_wanted = true;
            self.slots_changed.notify_all();
            self.slots_changed.wait(&mut slots);
        }
        Ok(())
    }

    /// Adds a slot to the file; not where the disk is full: then the log stays as long as it is.
    fn lengthen(&self) -> Result<(), MediumError> {
        let slot = self.slots.lock().count;
        match write_zeros(&self.log, slot, self.options.segment_bytes) {
            Ok(()) => {
                let mut slots = self.slots.lock();
                slots.add();
                self.note_spare(&slots);
            }
            Err(error) if is_full(&error) => self.slots.lock().is_disk_full = true,
            Err(error) => return Err(self.poison(&error)),
        }
        Ok(())
    }
}

/// Writes the header of the segment in `slot`, and zeros up to its frames: no page is read for it.
pub(crate) fn write_header<F: File>(log: &F, slot: u64, header: &Header) -> io::Result<()> {
    let page = Pages::starting_with(&header.encode(), FRAMES_START_BYTES as usize);
    log.write_through(page.bytes(), slot * u64::from(header.segment_bytes))
}

/// Makes the log long enough for `slot`, whose bytes are written, so that frames change no metadata of the file system.
pub(crate) fn write_zeros<F: File>(log: &F, slot: u64, segment_bytes: u64) -> io::Result<()> {
    let (start, end) = (slot * segment_bytes, (slot + 1) * segment_bytes);
    log.allocate(start..end)?;
    let zeros = Pages::zeros(ZEROS_BYTES.min(segment_bytes) as usize);
    (start..end)
        .step_by(zeros.bytes().len())
        .try_for_each(|at| log.write_through(&zeros.bytes()[..(end - at).min(ZEROS_BYTES) as usize], at))
}

/// True for every way to say 'no space left'.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}
