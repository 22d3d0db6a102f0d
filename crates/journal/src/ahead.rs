//! The log ahead of its writer: room for what comes next, and the next segment's header, made by a thread while there is time.
//!
//! # Steps of a segment's header
//! 1. A slot is chosen that may be overwritten. Before that the file gets longer if it may and no other is free.
//! 2. The header is written, and synced. The mark says what was durable before; the header says, too, where replay begins, as of now.
//!    *Crash:* what the slot held before, or a segment without frames, from which replay is told where to begin. Both begin at
//!    segments that are still whole: a slot is chosen only when it is free, and the newest header is in another.
//! 3. The segment is ready. The writer that fills the one before takes it.
//!
//! The writer asks the thread for these steps when a quarter of the segment is full (see below). Where a step is not done when the
//! next segment is needed, the writer does it. So do opening and closing a log, where the number is known with which the segment
//! begins.
//!
//! # Room
//! A new log, and one that was closed, has space for the first 64 KiB of each segment alone; the rest of the file is holes. When a
//! quarter of that space is used, the thread gives all segments four times as much, up to their whole length: in place, so that
//! nothing is sealed for it. Only what has space is announced as room, and two of the longest frames fit in the next segment's
//! room: so what was appended can be synced whatever becomes of the disk. On a full disk segments stay as short as they are. Room
//! is no state of the format. Opening looks how much space all slots have. *Crash* while they get more: some have more than others,
//! and the surplus is not used. Zeros are written only to slots that are free, and behind the room of the one that is written.
//!
//! # Lock order
//! writer -> ahead -> slots. A thread that holds only `ahead` does not wait for a writer.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use pmem::MediumError;

use crate::File;
use crate::canary;
use crate::error::is_full;
use crate::journal::Journal;
use crate::layout::FRAMES_START_BYTES;
use crate::pages::Pages;
use crate::segment::{Header, VERSION};
use crate::slots::{Ready, Slots};

/// Zeros are written in pieces of this size.
const ZEROS_BYTES: u64 = 1 << 20;

/// Which part of a segment's room is filled when there should soon be more.
const AHEAD_DIVISOR: u64 = 4;

/// So many times as much room at once: few steps from a small log to a large one.
const WIDER_FACTOR: u64 = 4;

impl<F: File> Journal<F> {
    /// How much of each segment may be written.
    #[inline]
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.segments.capacity_bytes.load(Ordering::Acquire)
    }

    /// The segment is filled up to `at_bytes` now.
    pub(crate) fn go_ahead(&self, at_bytes: u64) -> Result<(), MediumError> {
        if at_bytes <= self.segments.ahead_at.load(Ordering::Acquire) {
            return Ok(());
        }
        self.segments.ahead_at.store(u64::MAX, Ordering::Release);
        if !self.options.background {
            return self.make_space();
        }
        self.segments.slots.lock().is_space_wanted = true;
        self.segments.slots_changed.notify_all();
        Ok(())
    }

    /// A segment was begun, or has more room than before.
    pub(crate) fn note_begun(&self) {
        let part_bytes = (self.capacity_bytes() - FRAMES_START_BYTES) / AHEAD_DIVISOR;
        self.segments.ahead_at.store(FRAMES_START_BYTES + part_bytes, Ordering::Release);
    }

    /// More room in all segments; where they have it all, or the disk is full, a segment that is ready.
    fn make_space(&self) -> Result<(), MediumError> {
        if self.widen_to(self.capacity_bytes() + 1)? { Ok(()) } else { self.prepare(None) }
    }

    /// Whether segments have room for `at_bytes`, or have it now.
    pub(crate) fn widen_to(&self, at_bytes: u64) -> Result<bool, MediumError> {
        if at_bytes <= self.capacity_bytes() {
            return Ok(true);
        }
        if at_bytes > self.options.segment_bytes {
            return Ok(false);
        }
        let _alone = self.segments.ahead.lock();
        let mut capacity_bytes = self.capacity_bytes();
        let (count, is_disk_full) = {
            let slots = self.segments.slots.lock();
            (slots.count, slots.is_disk_full)
        };
        while capacity_bytes < at_bytes && !is_disk_full {
            let wider_bytes = (capacity_bytes * WIDER_FACTOR).min(self.options.segment_bytes);
            if !self.take_space(count, wider_bytes)? {
                break;
            }
            capacity_bytes = wider_bytes;
            self.segments.capacity_bytes.store(capacity_bytes, Ordering::Release);
            self.note_begun();
        }
        Ok(at_bytes <= capacity_bytes)
    }

    /// An opened log may be a copy that has holes.
    pub(crate) fn keep_first_space(&self) -> Result<(), MediumError> {
        let (first_bytes, count) = (self.options.first_space_bytes(), self.segments.slots.lock().count);
        if self.capacity_bytes() < first_bytes {
            if !self.take_space(count, first_bytes)? {
                return Err(MediumError::Full { wanted_bytes: first_bytes });
            }
            self.segments.capacity_bytes.store(first_bytes, Ordering::Release);
        }
        Ok(())
    }

    /// Space for `capacity_bytes` of each of `count` slots; false where the disk is full. Sealed segments keep what they hold,
    /// whichever program wrote it and however much that is.
    fn take_space(&self, count: u64, capacity_bytes: u64) -> Result<bool, MediumError> {
        let (segment_bytes, from_bytes) = (self.options.segment_bytes, self.capacity_bytes());
        let sealed: Vec<_> = self.segments.slots.lock().sealed.iter().map(|sealed| sealed.slot).collect();
        let taken = (0..count).try_for_each(|slot| {
            let range = slot * segment_bytes + from_bytes..slot * segment_bytes + capacity_bytes;
            if sealed.contains(&slot) { self.log.allocate(range) } else { write_zeros(&self.log, range) }
        });
        match taken {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => {
                self.segments.slots.lock().is_disk_full = true;
                Ok(false)
            }
            Err(error) => Err(self.poison(&error)),
        }
    }

    /// Steps 1 to 3, unless a segment is ready or none can be had. `first` is the number of its first frame, where that is known: then
    /// all before it are durable.
    pub(crate) fn prepare(&self, first: Option<u64>) -> Result<(), MediumError> {
        let _alone = self.segments.ahead.lock();
        self.keep_spare()?;
        let (slot, header, recycled) = {
            let slots = self.segments.slots.lock();
            if slots.ready.is_some() {
                return Ok(());
            }
            let Some(&slot) = slots.free.first() else {
                return Ok(());
            };
            let ordinal = slots.begun.0 + 1;
            let (oldest, start) = slots.oldest(first.map_or(slots.begun, |first| (ordinal, first)));
            (slot, self.next_header(ordinal, oldest, start, first), slots.recycled)
        };
        write_header(&self.log, slot, &header).map_err(|error| self.poison(&error))?;
        if !self.log.breaks(canary::FRAMES_BEFORE_HEADER) {
            self.sync_log()?;
        }
        self.checkpoints.replayed_from.store(recycled, Ordering::Release);
        let mut slots = self.segments.slots.lock();
        slots.make_ready(Ready { slot, ordinal: header.ordinal, tag: header.tag() });
        self.note_spare(&slots);
        Ok(())
    }

    /// What it says was true before: marks only rise, and of what is recycled all is durable.
    fn next_header(&self, ordinal: u64, oldest: u64, start: u64, first: Option<u64>) -> Header {
        let mark = first.unwrap_or_else(|| self.append.mark.load(Ordering::Acquire));
        Header {
            version: VERSION,
            segment_bytes: self.options.segment_bytes as u32,
            identity: self.identity,
            ordinal,
            mark: mark.max(start),
            is_first: first.is_some(),
            oldest,
            start,
            region_bytes: self.append.synced_region_bytes.load(Ordering::Acquire),
            salt: self.options.salt,
        }
    }

    /// The segment that is ready, for the writer, whose next frame has the number `first`.
    pub(crate) fn take_ready(&self, first: u64) -> Option<Ready> {
        let mut slots = self.segments.slots.lock();
        let ready = slots.ready.take()?;
        slots.begun = (ready.ordinal, first);
        self.note_spare(&slots);
        self.note_begun();
        Some(ready)
    }

    /// Makes the log longer where it may be and not even a segment behind the next one is free.
    pub(crate) fn keep_spare(&self) -> Result<(), MediumError> {
        let must_lengthen = {
            let slots = self.segments.slots.lock();
            slots.spare_count() < 2 && self.may_lengthen(&slots)
        };
        if must_lengthen { self.lengthen() } else { Ok(()) }
    }

    fn may_lengthen(&self, slots: &Slots) -> bool {
        slots.count < self.options.segment_count_max() && !slots.is_disk_full
    }

    /// Adds a slot to the file; not where the disk is full: then the log stays as long as it is.
    fn lengthen(&self) -> Result<(), MediumError> {
        let (slot, segment_bytes) = (self.segments.slots.lock().count, self.options.segment_bytes);
        let start = slot * segment_bytes;
        // The length first, in one step: a header in a slot is never there without the whole slot.
        let lengthened = self.log.truncate(start + segment_bytes);
        let lengthened = lengthened.and_then(|()| write_zeros(&self.log, start..start + self.capacity_bytes()));
        match lengthened {
            Ok(()) => {
                let mut slots = self.segments.slots.lock();
                slots.add();
                self.note_spare(&slots);
            }
            Err(error) if is_full(&error) => {
                self.segments.slots.lock().is_disk_full = true;
                // Where it stays longer opening takes no notice of it.
                let _ = self.log.truncate(start);
            }
            Err(error) => return Err(self.poison(&error)),
        }
        Ok(())
    }
}

/// The thread that does it, until the journal is closed or poisoned.
pub(crate) fn make_space<F: File>(journal: &Journal<F>) {
    while journal.healthy().is_ok() {
        {
            let mut slots = journal.segments.slots.lock();
            while !(slots.is_space_wanted
                && slots.ready.is_none()
                && (slots.has_spare() || journal.may_lengthen(&slots)))
            {
                if journal.is_closing() || journal.healthy().is_err() {
                    return;
                }
                journal.segments.slots_changed.wait(&mut slots);
            }
            slots.is_space_wanted = false;
        }
        if journal.is_closing() || journal.make_space().is_err() {
            return;
        }
    }
}

/// Writes the header of the segment in `slot`, and zeros up to its frames: no page is read for it.
pub(crate) fn write_header<F: File>(log: &F, slot: u64, header: &Header) -> io::Result<()> {
    let page = Pages::starting_with(&header.encode(), FRAMES_START_BYTES as usize);
    log.write_through(page.bytes(), slot * u64::from(header.segment_bytes))
}

/// Takes space for `range` of the log, whole pages, whose bytes are written, so that frames change no metadata of the file system.
pub(crate) fn write_zeros<F: File>(log: &F, range: Range<u64>) -> io::Result<()> {
    log.allocate(range.clone())?;
    let zeros = Pages::zeros(ZEROS_BYTES.min(range.end - range.start) as usize);
    let end = range.end;
    range
        .step_by(zeros.bytes().len())
        .try_for_each(|at| log.write_through(&zeros.bytes()[..(end - at).min(ZEROS_BYTES) as usize], at))
}

#[cfg(test)]
mod tests;
