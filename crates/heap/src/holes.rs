//! Holes: the space of free runs is returned to the file system and allocated again when needed.
//!
//! # Giving back the space of a run
//! 1. The run is taken off the lists: no thread carves or joins it. *Crash:* the run, or the run that it was joined
//!    to.
//! 2. Its header is stored once more, order. *Crash:* the run at its full length: nothing within it is read.
//! 3. All full pages behind the header are discarded. *Crash:* the run, with holes or without.
//! 4. The run is listed again.
//!
//! # Taking space again
//! 1. The run is taken off the lists, the space lock released. *Crash:* the run.
//! 2. Every page that the chunk and the header of the remainder touch is allocated. If there is no space, the run is
//!    listed again unchanged. *Crash:* the run.
//! 3. The run is carved (`chunks`).
//!
//! # Filling holes ahead of writers
//! The background fills the holes of runs that writers are going to use, in pieces. From a long run it splits a piece,
//! by the steps of a chunk from a free run (`chunks`), where the chunk is a run as well; writers can use the remainder
//! while the piece is filled. The two runs are neighbours until one of them is used, or joined with a chunk that is
//! freed next to it. If no run is long enough for a chunk, all such neighbours are joined before the region grows.
//!
//! # Above the mark
//! Space above the mark is returned from the region's end downwards, piece by piece under the space lock, and
//! allocated again from below, before the mark rises over the piece. `holed_from` separates the two: there are no
//! holes below. A thread allocates space without the lock and then checks whether any was returned in the same time
//! (`above_count`). If so, the order of the two operations is unknown even if `holed_from` is unchanged, and the
//! thread allocates the space once more.
//!
//! # Opening
//! It is unknown which pages of free runs and above the mark have space: all of them count both as holed and as
//! having space to return. All chunks are allocated again, because allocations are not durable on their own and a
//! copy of the file may have introduced holes.

use core::mem;

use pmem::{Dram, Medium, MediumError, Offset};

use crate::canary;
use crate::chunks::Chunks;
use crate::header::ChunkHeader;
use crate::layout::{CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, UNIT_BYTES, unit_start};
use crate::runs::Run;
use crate::space::{Above, Space};
use crate::table::Tag;

impl<D: Dram> Chunks<D> {
    /// Returns the bytes that are not in use and may have space to return to the file system.
    pub fn discardable_bytes(&self) -> u64 {
        let space = self.lock();
        (space.runs.spaced_units() + u64::from(space.holed_from - space.mark)) * UNIT_BYTES
    }

    /// Returns the space of a free run to the file system, as [`Heap::discard_free_run`](crate::Heap::discard_free_run)
    /// says. The sweep has ended.
    pub(crate) fn discard_free_run<M: Medium>(&self, medium: &M, from: u32) -> Option<(u32, u64)> {
        if !medium.is_writable() {
            return None;
        }
        let run = self.take_spaced_run(from.max(FIRST_CHUNK_UNIT))?;
        ChunkHeader::free(run.units).store(medium, run.unit);
        medium.order_unless(canary::PUNCH_BEFORE_HEADER);
        let behind = unit_start(run.unit).plus(CHUNK_HEADER_BYTES);
        let len_bytes = u64::from(run.units) * UNIT_BYTES - CHUNK_HEADER_BYTES;
        // SAFETY: the run is off the lists and holds nothing: only this thread uses it. A thread that carves the run
        // allocates its space first, and so does an opening that finds a chunk there.
        let freed_bytes = unsafe { medium.discard(behind.span(len_bytes)) };
        let space = if freed_bytes > 0 { Tag::HOLED } else { run.space.without(Tag::SPACED) };
        let mut locked = self.lock();
        locked.away.come_back();
        self.supply().note_space_returned();
        self.give_run_back(medium, &mut locked, Run { space, ..run });
        drop(locked);
        Some((run.unit + run.units, freed_bytes))
    }

    /// Allocates and populates the space of a run with holes, or of the first `units_max` of it, and makes these a run
    /// without holes. Returns false if there is no run with holes.
    pub(crate) fn fill_run<M: Medium>(&self, medium: &M, units_max: u32) -> Result<bool, MediumError> {
        let filled = self.take_piece(medium, units_max).and_then(|piece| {
            let Some(run) = piece else { return Ok(false) };
            let filled = run.allocate_for(medium, ChunkHeader::free(run.units));
            if filled.is_ok() {
                medium.populate(unit_start(run.unit).span(u64::from(run.units) * UNIT_BYTES));
            }
            let mut space = self.lock();
            space.away.come_back();
            match filled {
                Ok(()) => space.runs.insert(self.table(), Run { space: Tag::SPACED, ..run }),
                Err(_) => self.give_run_back(medium, &mut space, run),
            }
            self.note(&space);
            filled.map(|()| true)
        });
        // Tried again only once a writer has found space in a run.
        filled.inspect_err(|_| self.supply().note_space_returned())
    }

    /// Takes a run with holes off the lists, split if it is longer than `units_max`.
    fn take_piece<M: Medium>(&self, medium: &M, units_max: u32) -> Result<Option<Run>, MediumError> {
        let mut space = self.lock();
        let Some(run) = space.runs.take_holed(self.table()) else { return Ok(None) };
        space.away.leave();
        self.note(&space);
        if run.units <= units_max {
            return Ok(Some(run));
        }
        drop(space);
        let backed = medium.allocate(unit_start(run.unit + units_max).span(CHUNK_HEADER_BYTES));
        let mut space = self.lock();
        if let Err(error) = backed {
            space.away.come_back();
            self.give_run_back(medium, &mut space, run);
            return Err(error);
        }
        self.carve(medium, &mut space, run, ChunkHeader::free(units_max));
        space.has_split_runs = true;
        Ok(Some(Run { units: units_max, ..run }))
    }

    /// Joins the runs that [`Chunks::fill_run`] has split. Returns true if there may have been any.
    pub(crate) fn join_split_runs<M: Medium>(&self, medium: &M, space: &mut Space) -> bool {
        let may_be_split = mem::take(&mut space.has_split_runs);
        let mut unit = if may_be_split { FIRST_CHUNK_UNIT } else { space.mark };
        while unit < space.mark {
            match space.runs.take_split(self.table(), unit, space.mark) {
                Some(run) => self.give_run_back(medium, space, run),
                None => unit += self.table().chunk(unit).1,
            }
        }
        may_be_split
    }

    /// Returns a piece of the space above the mark to the file system. Returns the number of bytes that the medium
    /// took, or `None` if there was none.
    pub fn discard_above_mark<M: Medium>(&self, medium: &M) -> Option<u64> {
        let mut space = self.lock();
        if space.holed_from == space.mark || !medium.is_writable() {
            return None;
        }
        let past = space.holed_from;
        space.holed_from = (past - past.min(PIECE_UNITS)).max(space.mark);
        space.above_count += 1;
        self.note(&space);
        let start = unit_start(space.holed_from);
        // SAFETY: nothing above the mark is in use, and the lock keeps the mark where it is. A thread that raises the
        // mark over this piece allocates its space first.
        Some(unsafe { medium.discard(start.span(unit_start(past).0 - start.0)) })
    }

    /// Allocates space above the mark, from the first possible hole in `found` to `past`. Returns false if the caller
    /// must try again, because another thread has allocated or returned space in the same time.
    pub(crate) fn back_above_mark<M: Medium>(&self, medium: &M, found: Above, past: u32) -> Result<bool, MediumError> {
        let Above { holed_from: from, .. } = found;
        let start = unit_start(from);
        medium.allocate(start.span(unit_start(past).0 - start.0))?;
        let mut space = self.lock();
        if space.above() == found {
            space.holed_from = past;
            self.note(&space);
        }
        Ok(space.holed_from >= past)
    }

    fn take_spaced_run(&self, from: u32) -> Option<Run> {
        let mut unit = from;
        loop {
            let mut space = self.lock();
            if unit >= space.mark {
                return None;
            }
            if let Some(run) = space.runs.take_spaced(self.table(), unit) {
                space.away.leave();
                self.note(&space);
                return Some(run);
            }
            drop(space);
            unit += self.table().chunk(unit).1;
        }
    }
}

/// Space above the mark that is returned in one step: tens of microseconds, during which no chunk can be made.
const PIECE_UNITS: u32 = 4;

/// Allocates the space in use while a region is opened: chunk after chunk, neighbours in one call.
pub(crate) struct Backer<'a, M> {
    medium: &'a M,
    start: Offset,
}

impl<'a, M: Medium> Backer<'a, M> {
    /// Starts at the region's head.
    pub(crate) fn new(medium: &'a M) -> Backer<'a, M> {
        Backer { medium, start: Offset(0) }
    }

    /// Allocates everything between the last free run and this one, including this run's header, which is in use.
    pub(crate) fn skip(&mut self, run_unit: u32, units: u32) -> Result<(), MediumError> {
        self.back_up_to(unit_start(run_unit).plus(CHUNK_HEADER_BYTES))?;
        self.start = unit_start(run_unit + units);
        Ok(())
    }

    /// Allocates everything between the last free run and the mark.
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
