//! Prepares the log ahead of its writer: a thread makes space for later frames and writes the next segment's header
//! early.
//!
//! # Steps of a segment's header
//! 1. A slot that may be overwritten is chosen. If no other slot is free and the file may get longer, it is
//!    lengthened first.
//! 2. The header is written and synced. Its mark records the frames that were durable before; the header also
//!    records where replay begins, as of now. *Crash:* the slot's old content, or a segment without frames whose
//!    header records where replay begins. Both begin at segments that are still intact: only a free slot is chosen,
//!    and the newest header is in another.
//! 3. The segment is ready. The writer that fills the segment before uses it next.
//!
//! The writer asks the thread for these steps when a quarter of the segment is full (see below). If a step is not
//! done when the next segment is needed, the writer does it. So do opening and closing a log, where the number of
//! the segment's first frame is known.
//!
//! # Space of segments
//! A new log, or one that was closed, has space for only the first 64 KiB of each segment; the rest of the file is
//! holes. When a quarter of that space is used, the thread gives all segments four times as much, up to their full
//! length. This happens in place, without sealing a segment. Only allocated space counts as usable (`capacity_bytes`),
//! and two of the longest frames fit into the next segment's usable space: so everything appended can be synced
//! even if the disk fills up. On a full disk, segments stay as short as they are. The usable space is not part of
//! the format: opening determines how much space all slots have. A *crash* while they get more leaves some with
//! more than others, and the surplus is not used. Zeros are written only to free slots that the newest header does not
//! count, and behind the usable space of the segment that is being written.
//!
//! # Lock order
//! writer -> ahead -> slots. A thread that holds only `ahead` does not wait for a writer.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pmem::MediumError;

use crate::durable::Durable;
use crate::error::is_full;
use crate::guarded::Guarded;
use crate::layout::FRAMES_START_BYTES;
use crate::pages::Pages;
use crate::segment::{Header, VERSION};
use crate::slots::{Ready, SlotTable, Slots};
use crate::{File, JournalOptions, canary};

/// Number of segments of a new or closed log: one is written while the other waits for its checkpoint.
pub(crate) const SEGMENT_COUNT: u64 = 2;

/// Zeros are written in pieces of this size.
const ZEROS_BYTES: u64 = 1 << 20;

/// More space is prepared when 1/4 of a segment's usable space is filled.
const AHEAD_DIVISOR: u64 = 4;

/// Factor by which the usable space grows: few steps lead from a small log to a large one.
const WIDER_FACTOR: u64 = 4;

/// The segments of the log: their usable space, and the free, ready and sealed ones.
#[derive(Debug)]
pub(crate) struct Segments<F> {
    log: Arc<Guarded<F>>,
    options: JournalOptions,
    identity: [u8; 16],
    slots: Arc<SlotTable>,
    /// The number of bytes of each segment that have space and may be written.
    capacity_bytes: AtomicU64,
    /// The fill level of the segment at which later space has to be prepared.
    ahead_at: AtomicU64,
    /// Its holder makes space for later frames.
    ahead: Mutex<()>,
    /// Replay begins at this position or behind it, by the newest header.
    replayed_from: AtomicU64,
}

impl<F: File> Segments<F> {
    pub(crate) fn new(
        log: &Arc<Guarded<F>>,
        slots: &Arc<SlotTable>,
        capacity_bytes: u64,
        identity: [u8; 16],
        options: JournalOptions,
    ) -> Segments<F> {
        let replayed_from = slots.lock().recycled;
        Segments {
            log: Arc::clone(log),
            options,
            identity,
            slots: Arc::clone(slots),
            capacity_bytes: capacity_bytes.into(),
            ahead_at: 0.into(),
            ahead: Mutex::default(),
            replayed_from: replayed_from.into(),
        }
    }

    /// Returns the identity of the journal.
    pub(crate) fn identity(&self) -> [u8; 16] {
        self.identity
    }

    pub(crate) fn slots(&self) -> &SlotTable {
        &self.slots
    }

    /// Returns the position at which replay begins, or an earlier one, by the newest durable header.
    pub(crate) fn replayed_from(&self) -> u64 {
        self.replayed_from.load(Ordering::Acquire)
    }

    /// Returns the number of bytes of each segment that may be written.
    #[inline]
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Acquire)
    }

    /// Prepares more space if the segment, which is filled up to `at_bytes` now, needs it soon.
    pub(crate) fn go_ahead(&self, at_bytes: u64, durable: &Durable) -> Result<(), MediumError> {
        if at_bytes <= self.ahead_at.load(Ordering::Acquire) {
            return Ok(());
        }
        self.ahead_at.store(u64::MAX, Ordering::Release);
        if !self.options.background {
            return self.make_space(durable);
        }
        self.slots.lock().is_space_wanted = true;
        self.slots.notify();
        Ok(())
    }

    /// Notes that a segment was begun, or has more space than before.
    pub(crate) fn note_begun(&self) {
        let part_bytes = (self.capacity_bytes() - FRAMES_START_BYTES) / AHEAD_DIVISOR;
        self.ahead_at.store(FRAMES_START_BYTES + part_bytes, Ordering::Release);
    }

    /// Returns true if the thread was asked for more space, and has not begun.
    #[cfg(test)]
    pub(crate) fn is_space_asked_for(&self) -> bool {
        self.ahead_at.load(Ordering::Acquire) == u64::MAX
    }

    /// Gives all segments more space. If they have their full length, or the disk is full, prepares the next
    /// segment.
    fn make_space(&self, durable: &Durable) -> Result<(), MediumError> {
        if self.widen_to(self.capacity_bytes() + 1)? { Ok(()) } else { self.prepare(None, durable) }
    }

    /// Returns true if segments have space for `at_bytes`, after giving them more if necessary.
    pub(crate) fn widen_to(&self, at_bytes: u64) -> Result<bool, MediumError> {
        if at_bytes <= self.capacity_bytes() {
            return Ok(true);
        }
        if at_bytes > self.options.segment_bytes {
            return Ok(false);
        }
        let _alone = self.ahead.lock();
        let mut capacity_bytes = self.capacity_bytes();
        let (count, is_disk_full) = {
            let slots = self.slots.lock();
            (slots.count, slots.is_disk_full)
        };
        while capacity_bytes < at_bytes && !is_disk_full {
            let wider_bytes = (capacity_bytes * WIDER_FACTOR).min(self.options.segment_bytes);
            if !self.take_space(count, wider_bytes)? {
                break;
            }
            capacity_bytes = wider_bytes;
            self.capacity_bytes.store(capacity_bytes, Ordering::Release);
            self.note_begun();
        }
        Ok(at_bytes <= capacity_bytes)
    }

    /// Allocates the first part of every segment: an opened log may be a copy that has holes.
    pub(crate) fn keep_first_space(&self) -> Result<(), MediumError> {
        let (first_bytes, count) = (self.options.first_space_bytes(), self.slots.lock().count);
        if self.capacity_bytes() < first_bytes {
            if !self.take_space(count, first_bytes)? {
                return Err(MediumError::Full { wanted_bytes: first_bytes });
            }
            self.capacity_bytes.store(first_bytes, Ordering::Release);
        }
        Ok(())
    }

    /// Allocates `capacity_bytes` of each of `count` slots; returns false if the disk is full. Segments that are
    /// replayed after a crash keep their content, whichever program wrote it, of any length.
    fn take_space(&self, count: u64, capacity_bytes: u64) -> Result<bool, MediumError> {
        let (segment_bytes, from_bytes) = (self.options.segment_bytes, self.capacity_bytes());
        let kept = self.slots.lock().replayed();
        let taken = (0..count).try_for_each(|slot| {
            let range = slot * segment_bytes + from_bytes..slot * segment_bytes + capacity_bytes;
            if kept.contains(&slot) { self.log.file().allocate(range) } else { write_zeros(self.log.file(), range) }
        });
        match taken {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => {
                self.slots.lock().is_disk_full = true;
                Ok(false)
            }
            Err(error) => Err(self.log.health().poison(&error)),
        }
    }

    /// Steps 1 to 3, unless a segment is ready or no slot is free. `first` is the number of its first frame, if
    /// that is known: then all frames before it are durable.
    pub(crate) fn prepare(&self, first: Option<u64>, durable: &Durable) -> Result<(), MediumError> {
        let _alone = self.ahead.lock();
        self.keep_spare()?;
        let (slot, header, oldest, recycled) = {
            let slots = self.slots.lock();
            if slots.ready.is_some() {
                return Ok(());
            }
            let Some(&slot) = slots.free.first() else {
                return Ok(());
            };
            let ordinal = slots.begun.0 + 1;
            let (oldest, start) = slots.oldest(first.map_or(slots.begun, |first| (ordinal, first)));
            (slot, self.next_header((ordinal, oldest, start), first, durable), oldest, slots.recycled)
        };
        self.log.guard(write_header(self.log.file(), slot, &header))?;
        if !self.log.file().breaks(canary::FRAMES_BEFORE_HEADER) {
            self.log.sync()?;
        }
        self.replayed_from.store(recycled, Ordering::Release);
        self.slots.change(|slots| slots.make_ready(Ready { slot, ordinal: header.ordinal, tag: header.tag() }, oldest));
        Ok(())
    }

    /// Returns the next header. It is true when written: marks only rise, and recycled segments are durable in the
    /// base.
    fn next_header(&self, (ordinal, oldest, start): (u64, u64, u64), first: Option<u64>, durable: &Durable) -> Header {
        let mark = first.unwrap_or_else(|| durable.mark());
        Header {
            version: VERSION,
            segment_bytes: self.options.segment_bytes as u32,
            identity: self.identity,
            ordinal,
            mark: mark.max(start),
            is_first: first.is_some(),
            oldest,
            start,
            region_bytes: durable.region_bytes(),
            salt: self.options.salt,
        }
    }

    /// Returns the ready segment for the writer, whose next frame has the number `first`.
    pub(crate) fn take_ready(&self, first: u64) -> Option<Ready> {
        self.slots.change(|slots| {
            let ready = slots.ready.take()?;
            slots.begun = (ready.ordinal, first);
            self.note_begun();
            Some(ready)
        })
    }

    /// Lengthens the log if that is allowed and no slot is free behind the next segment.
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

    /// Adds a slot to the file. On a full disk, the log stays as long as it is.
    fn lengthen(&self) -> Result<(), MediumError> {
        let (slot, segment_bytes) = (self.slots.lock().count, self.options.segment_bytes);
        let start = slot * segment_bytes;
        // Set the length first, in one step: then a header in a slot is never present without the complete slot.
        let lengthened = self.log.file().truncate(start + segment_bytes);
        let lengthened = lengthened.and_then(|()| write_zeros(self.log.file(), start..start + self.capacity_bytes()));
        match lengthened {
            Ok(()) => self.slots.change(Slots::add),
            Err(error) if is_full(&error) => {
                self.slots.lock().is_disk_full = true;
                // If it stays longer, opening ignores the surplus.
                let _ = self.log.file().truncate(start);
            }
            Err(error) => return Err(self.log.health().poison(&error)),
        }
        Ok(())
    }

    /// Runs the thread that makes space, until the journal is closed or poisoned.
    pub(crate) fn run_ahead(&self, durable: &Durable) {
        while !self.log.health().is_over() {
            {
                let mut slots = self.slots.lock();
                while !(slots.is_space_wanted
                    && slots.ready.is_none()
                    && (slots.has_spare() || self.may_lengthen(&slots)))
                {
                    if self.log.health().is_over() {
                        return;
                    }
                    self.slots.wait(&mut slots);
                }
                slots.is_space_wanted = false;
            }
            if self.log.health().is_closing() || self.make_space(durable).is_err() {
                return;
            }
        }
    }

    /// Waits until a segment is free, which only a checkpoint on another thread brings about.
    pub(crate) fn await_spare(&self) -> Result<(), MediumError> {
        let mut slots = self.slots.lock();
        while !slots.has_spare() {
            self.log.health().check()?;
            // Once: two waiting threads would wake one another all the time.
            if !slots.is_one_wanted {
                slots.is_one_wanted = true;
                self.slots.notify();
            }
            self.slots.wait(&mut slots);
        }
        Ok(())
    }

    /// Returns the number of segments that can be written after the present one, without the one that stays free.
    pub(crate) fn unused_count(&self) -> u64 {
        let slots = self.slots.lock();
        let further_count = self.options.segment_count_max().saturating_sub(slots.count);
        let further_count = if slots.is_disk_full { 0 } else { further_count };
        (slots.spare_count() as u64 + further_count).saturating_sub(1)
    }

    /// Waits until the log, a writer or memory needs a checkpoint; false once the journal is closing or poisoned.
    pub(crate) fn await_sealed(&self) -> bool {
        let due = self.options.checkpoint_segments();
        let mut slots = self.slots.lock();
        while !slots.is_memory_wanted && slots.sealed.len() < if slots.is_one_wanted { 1 } else { due } {
            if self.log.health().is_over() {
                return false;
            }
            self.slots.wait(&mut slots);
        }
        slots.is_memory_wanted = false;
        !self.log.health().is_closing()
    }

    /// Frees the `count` oldest sealed segments, which the base now contains. Returns true if the next checkpoint is
    /// due already.
    pub(crate) fn recycle(&self, count: usize) -> bool {
        let is_next_due = self.slots.change(|slots| {
            slots.recycle(count);
            slots.sealed.len() >= self.options.checkpoint_segments()
        });
        self.slots.notify();
        is_next_due
    }

    /// Shortens the file to the segments before `slot` and a new log's: the newest header, which is in `slot`, excludes
    /// everything behind its segment, which has no frames. *Crash:* the file is as long as before, or shorter, and has
    /// more holes or fewer. A log that cannot be cut stays as it is.
    pub(crate) fn shorten(&self, slot: u64) {
        let (count, segment_bytes) = (SEGMENT_COUNT.max(slot + 1), self.options.segment_bytes);
        let first_bytes = self.options.first_space_bytes();
        self.slots.change(|slots| {
            if count < slots.count && self.log.file().truncate(count * segment_bytes).is_ok() {
                slots.cut(count);
            }
            if self.capacity_bytes() > first_bytes {
                let ends = (0..slots.count).map(|slot| (slot * segment_bytes, (slot + 1) * segment_bytes));
                let mut unused = ends.map(|(start, end)| start + first_bytes..end);
                // The next opening writes a new header before anything else, and uses the space that it finds.
                let _ = unused.try_for_each(|range| self.log.file().punch(range));
            }
        });
    }
}

/// Writes the header of the segment in `slot`, and zeros up to its frames, so that no page has to be read.
pub(crate) fn write_header<F: File>(log: &F, slot: u64, header: &Header) -> io::Result<()> {
    let page = Pages::starting_with(&header.encode(), FRAMES_START_BYTES as usize);
    log.write_through(page.bytes(), slot * u64::from(header.segment_bytes))
}

/// Allocates space for `range` of the log, complete pages, and writes zeros, so that frames change no file system
/// metadata.
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
