//! Holes: the space of free runs, given back to the file system and taken again.
//!
//! # Giving back the space of a run
//! 1. The run is taken off the lists: nobody carves or joins it. *Crash:* the run, or what was joined to it.
//! 2. Its header is stored once more, order. *Crash:* the run in its whole length: nothing within it is looked at.
//! 3. The whole pages behind the header are discarded. *Crash:* the run, with holes or without.
//! 4. The run is found again.
//!
//! # Taking space again
//! 1. The run is taken off the lists, the space lock given up. *Crash:* the run.
//! 2. Every page that the chunk and the header of the remainder touch is backed; if there is no space, the run is found
//!    again as it was. *Crash:* the run.
//! 3. The run is carved (`chunks`).
//!
//! # Above the mark
//! Space above the mark is given back from the region's end downwards, piece by piece under the space lock, and taken
//! again from below, before the mark rises over it. `holed_from` lies between: below it there are no holes. A thread takes space
//! without the lock, and looks afterwards whether any was given back meanwhile (`above_count`): then it is unknown which came last,
//! though `holed_from` may be unchanged, and the space is taken once more.
//!
//! # Opening
//! What space free runs have, and what lies above the mark, is unknown: both count as holed, and as having space to give back. All
//! chunks are backed: space that was taken is not durable by itself, and a copy of the file may have left holes.

use pmem::{Dram, Medium, MediumError, Offset};

use crate::canary;
use crate::header::ChunkHeader;
use crate::heap::Heap;
use crate::layout::{CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, UNIT_BYTES, unit_start};
use crate::runs::Run;
use crate::space::Above;
use crate::table::Tag;

impl<D: Dram> Heap<D> {
    /// Bytes of the region that may take space: up to where there may be holes above the mark, but for those in free runs.
    pub fn footprint_bytes(&self) -> u64 {
        let units = u64::from(self.figures.holed_from()).saturating_sub(self.figures.given_back_units());
        units * UNIT_BYTES
    }

    /// Bytes that are not in use and may have space to give back.
    pub fn discardable_bytes(&self) -> u64 {
        let space = self.space.lock();
        (space.runs.spaced_units() + u64::from(space.holed_from - space.mark)) * UNIT_BYTES
    }

    /// Bytes in chunks that became free, or roomy, since [`Heap::reset_newly_free`]: what may be worth a look.
    #[inline]
    pub fn newly_free_bytes(&self) -> u64 {
        self.figures.loosened_units() * UNIT_BYTES
    }

    /// Counts bytes that become free once readers have moved on as [loosened](Heap::newly_free_bytes): so the background looks for them, though no
    /// thread may write any more.
    #[cold]
    pub fn expect_newly_free(&self, bytes: u64) {
        self.figures.loosen((bytes / UNIT_BYTES) as u32);
    }

    /// Counts from zero.
    pub fn reset_newly_free(&self) {
        self.figures.forget_loosened();
    }

    /// Gives back the space of the first free run at `from` or behind that has any; where to go on, and how many bytes
    /// the medium took. `None` if there is no such run, or the sweep has not ended. `from` is 0 at the beginning.
    pub fn discard_free_run<M: Medium>(&self, medium: &M, from: u32) -> Option<(u32, u64)> {
        if !self.is_swept() || !medium.is_writable() {
            return None;
        }
        let run = self.take_spaced_run(from.max(FIRST_CHUNK_UNIT))?;
        ChunkHeader::free(run.units).store(medium, run.unit);
        if !medium.breaks(canary::PUNCH_BEFORE_HEADER) {
            medium.order();
        }
        let behind = unit_start(run.unit).plus(CHUNK_HEADER_BYTES);
        let len_bytes = u64::from(run.units) * UNIT_BYTES - CHUNK_HEADER_BYTES;
        // SAFETY: the run is off the lists and holds nothing: it is this thread's alone. Who carves it backs it before,
        // and so does who opens the region and finds a chunk there.
        let freed_bytes = unsafe { medium.discard(behind.span(len_bytes)) };
        let space = if freed_bytes > 0 { Tag::HOLED } else { run.space.without(Tag::SPACED) };
        let mut locked = self.space.lock();
        locked.away.come_back();
        self.give_run_back(medium, &mut locked, Run { space, ..run });
        drop(locked);
        Some((run.unit + run.units, freed_bytes))
    }

    /// Gives back a piece of the space above the mark; how many bytes the medium took, `None` if there was none.
    pub fn discard_above_mark<M: Medium>(&self, medium: &M) -> Option<u64> {
        let mut space = self.space.lock();
        if space.holed_from == space.mark || !medium.is_writable() {
            return None;
        }
        let past = space.holed_from;
        space.holed_from = (past - past.min(PIECE_UNITS)).max(space.mark);
        space.above_count += 1;
        self.note(&space);
        let start = unit_start(space.holed_from);
        // SAFETY: nothing above the mark is anybody's, and the lock keeps the mark where it is; who raises it over this
        // piece backs it before.
        Some(unsafe { medium.discard(start.span(unit_start(past).0 - start.0)) })
    }

    /// Takes space above the mark, as it was found, from where there may be holes to `past`. Another thread may have been faster,
    /// or given it back meanwhile: false if it has to be tried again.
    pub(crate) fn back_above_mark<M: Medium>(&self, medium: &M, found: Above, past: u32) -> Result<bool, MediumError> {
        let Above { holed_from: from, .. } = found;
        let start = unit_start(from);
        medium.allocate(start.span(unit_start(past).0 - start.0))?;
        let mut space = self.space.lock();
        if space.above() == found {
            space.holed_from = past;
            self.note(&space);
        }
        Ok(space.holed_from >= past)
    }

    fn take_spaced_run(&self, from: u32) -> Option<Run> {
        let mut unit = from;
        loop {
            let mut space = self.space.lock();
            if unit >= space.mark {
                return None;
            }
            if let Some(run) = space.runs.take_spaced(&self.table, unit) {
                space.away.leave();
                self.note(&space);
                return Some(run);
            }
            drop(space);
            unit += self.table.chunk(unit).1;
        }
    }

    /// Takes space for a chunk at the start of a run and for what will be the header behind it, or for one at the run's end.
    pub(crate) fn back_part<M: Medium>(&self, medium: &M, run: Run, header: ChunkHeader) -> Result<(), MediumError> {
        if medium.breaks(canary::PUNCHED_RUN_NOT_BACKED) {
            return Ok(());
        }
        let (len_bytes, rest) = (u64::from(header.units) * UNIT_BYTES, run.units - header.units);
        if header.is_from_the_end() {
            return medium.allocate(unit_start(run.unit + rest).span(len_bytes));
        }
        let behind_bytes = if rest > 0 { CHUNK_HEADER_BYTES } else { 0 };
        medium.allocate(unit_start(run.unit).span(len_bytes + behind_bytes))
    }
}

/// Space above the mark that is given back at once: tens of microseconds, in which no chunk is made.
const PIECE_UNITS: u32 = 4;

/// Backs what is in use while a region is opened: chunk after chunk, neighbours in one call.
pub(crate) struct Backer<'a, M> {
    medium: &'a M,
    start: Offset,
}

impl<'a, M: Medium> Backer<'a, M> {
    /// From the region's head on.
    pub(crate) fn new(medium: &'a M) -> Backer<'a, M> {
        Backer { medium, start: Offset(0) }
    }

    /// What lies between the last free run and this one, of which the header is in use as well, is backed.
    pub(crate) fn skip(&mut self, run_unit: u32, units: u32) -> Result<(), MediumError> {
        self.back_up_to(unit_start(run_unit).plus(CHUNK_HEADER_BYTES))?;
        self.start = unit_start(run_unit + units);
        Ok(())
    }

    /// And what lies between the last free run and the mark.
    pub(crate) fn finish(self, mark: u32) -> Result<(), MediumError> {
        self.back_up_to(unit_start(mark))
    }

    fn back_up_to(&self, end: Offset) -> Result<(), MediumError> {
        if !self.medium.is_writable() || end.0 <= self.start.0 {
            return Ok(());
        }
        self.medium.allocate(self.start.span(end.0 - self.start.0))
    }
}
