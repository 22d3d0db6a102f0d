//! The log ahead of its writer: room for what comes next, and the next segment's header, made by a thread while there is time.
//!
//! # Steps of a segment's header
//! 1. A slot is chosen that may be overwritten. Before that the file gets longer if it may and no other is free.
//! 2. The header is written, and synced. It says what was durable before (its mark), and where replay begins, as of now. *Crash:* what
//!    the slot held before, or a segment without frames, from which replay is told where to begin. Both begin at segments that
//!    are still whole: a slot is chosen only when it is free, and the newest header is in another.
//! 3. The segment is ready. Whoever fills the one before takes it.
//!
//! The writer asks for this when a quarter of its segment is full. It does the steps itself where nobody has when it needs them, as
//! those that open and close a log do, who know with which number the segment begins.
//!
//! # Lock order
//! writer -> ahead -> slots. Who holds only `ahead` does not wait for a writer.

use std::io;
use std::sync::atomic::Ordering;

use pmem::{Canary, MediumError};

use crate::File;
use crate::journal::Journal;
use crate::layout::FRAMES_START_BYTES;
use crate::pages::Pages;
use crate::segment::{Header, VERSION};
use crate::slots::{Ready, Slots};
use crate::writer::is_full;

/// Zeros are written in pieces of this size.
const ZEROS_BYTES: u64 = 1 << 20;

/// Which part of a segment is filled when the next one is prepared.
const AHEAD_DIVISOR: u64 = 4;

impl<F: File> Journal<F> {
    /// The segment is filled up to `at_bytes` now, and was up to `before_bytes`.
    pub(crate) fn go_ahead(&self, before_bytes: u64, at_bytes: u64) -> Result<(), MediumError> {
        let due_bytes = FRAMES_START_BYTES + (self.options.segment_bytes - FRAMES_START_BYTES) / AHEAD_DIVISOR;
        if before_bytes > due_bytes || at_bytes <= due_bytes {
            return Ok(());
        }
        if !self.options.background {
            return self.prepare(None);
        }
        self.slots.lock().is_next_wanted = true;
        self.slots_changed.notify_all();
        Ok(())
    }

    /// Steps 1 to 3, unless a segment is ready or none can be had. `first` is the number of its first frame, where that is known: then
    /// all before it are durable.
    pub(crate) fn prepare(&self, first: Option<u64>) -> Result<(), MediumError> {
        let _alone = self.ahead.lock();
        self.keep_spare()?;
        let (slot, header, recycled) = {
            let slots = self.slots.lock();
            if slots.ready.is_some() {
                return Ok(());
            }
            let Some(&slot) = slots.free.last() else {
                return Ok(());
            };
            let ordinal = slots.begun.0 + 1;
            let (oldest, start) = slots.oldest(first.map_or(slots.begun, |first| (ordinal, first)));
            (slot, self.next_header(ordinal, oldest, start, first), slots.recycled)
        };
        write_header(&self.log, slot, &header).map_err(|error| self.poison(&error))?;
        if !self.log.breaks(Canary::FramesBeforeHeader) {
            self.sync_log()?;
        }
        self.replayed_from.store(recycled, Ordering::Release);
        let mut slots = self.slots.lock();
        slots.make_ready(Ready { slot, ordinal: header.ordinal, tag: header.tag() });
        self.note_spare(&slots);
        Ok(())
    }

    /// What it says was true before: marks only rise, and of what is recycled all is durable.
    fn next_header(&self, ordinal: u64, oldest: u64, start: u64, first: Option<u64>) -> Header {
        let mark = first.unwrap_or_else(|| self.mark.load(Ordering::Acquire));
        Header {
            version: VERSION,
            segment_bytes: self.options.segment_bytes as u32,
            identity: self.identity,
            ordinal,
            mark: mark.max(start),
            is_first: first.is_some(),
            oldest,
            start,
            region_bytes: self.synced_region_bytes.load(Ordering::Acquire),
            salt: self.options.salt,
        }
    }

    /// The segment that is ready, for the writer, whose next frame has the number `first`.
    pub(crate) fn take_ready(&self, first: u64) -> Option<Ready> {
        let mut slots = self.slots.lock();
        let ready = slots.ready.take()?;
        slots.begun = (ready.ordinal, first);
        self.note_spare(&slots);
        Some(ready)
    }

    /// Makes the log longer where it may be and not even a segment behind the next one is free.
    pub(crate) fn keep_spare(&self) -> Result<(), MediumError> {
        let must_lengthen = {
            let slots = self.slots.lock();
            slots.spare_count() < 2 && self.may_lengthen(&slots)
        };
        if must_lengthen { self.lengthen() } else { Ok(()) }
    }

    fn may_lengthen(&self, slots: &Slots) -> bool {
        slots.count < self.options.segment_count_max() && !slots.is_disk_full
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

/// The thread that does it, until the journal is closed or poisoned.
pub(crate) fn prepare<F: File>(journal: &Journal<F>) {
    while journal.healthy().is_ok() {
        {
            let mut slots = journal.slots.lock();
            while !(slots.is_next_wanted
                && slots.ready.is_none()
                && (slots.has_spare() || journal.may_lengthen(&slots)))
            {
                if journal.is_closing() || journal.healthy().is_err() {
                    return;
                }
                journal.slots_changed.wait(&mut slots);
            }
            slots.is_next_wanted = false;
        }
        if journal.is_closing() || journal.prepare(None).is_err() {
            return;
        }
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
