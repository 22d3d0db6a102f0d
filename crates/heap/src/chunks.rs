//! Chunks: how they are made and freed durably. Everything here happens under the space lock.
//!
//! # A chunk at the mark
//! 0. The region is long enough and has space there (`region`, `holes`). *Crash:* the old mark.
//! 1. The chunk's header (and, for segments, zeroes over the first line of each), order. *Crash:* the old mark;
//!    everything above it is ignored.
//! 2. The mark rises past the chunk, order. *Crash:* the chunk exists and nothing refers to it: the sweep frees it.
//! 3. The chunk is used.
//!
//! # A chunk of m units from a free run of n
//! 0. The run is taken off the lists. If the run may have holes, space for the chunk is allocated again (`holes`).
//!    *Crash:* the run. For segments, whose zeroes are spread over the whole chunk, the run's header is stored once
//!    more, order. *Crash:* the run at full length: nothing within the run is read.
//! 1. The header of the remainder, Free of n - m, inside the run (and the zeroes of segments), order. *Crash:* the
//!    run is unchanged; its contents are ignored.
//! 2. The header at the start becomes the chunk's: one word, order. *Crash:* chunk and remainder exist.
//! 3. The chunk is used.
//!
//! # An extent of one unit from the end of a free run of n
//! 0. As above.
//! 1. The extent's header, in the last unit of the run, order. *Crash:* the run is unchanged; its contents are
//!    ignored.
//! 2. The run's header becomes Free of n - 1: one word, order. *Crash:* run and extent exist.
//! 3. The extent is used.
//!
//! # Giving a chunk back
//! 1. The chunk's header, or the header of the free run before the chunk, becomes Free with the length of chunk and
//!    free neighbours together: one word. *Crash:* either the chunk, to which nothing refers, or the run.
//! 2. Later chunks can be made from the run. This needs no order: a thread that carves the run stores the same word
//!    again, and the headers inside the run stay as they are until that store is durable.

use pmem::{Backoff, Dram, Medium, MediumError};

use crate::canary;
use crate::dram_allocator::DramAllocator;
use crate::header::{ChunkHeader, ChunkKind, zero_segment_heads};
use crate::layout::{FIRST_CHUNK_UNIT, UNIT_BYTES};
use crate::lock::{Guard, Spin};
use crate::record::SlabRef;
use crate::region::{GROWTH_BYTES, Region};
use crate::runs::Run;
use crate::slab::State;
use crate::slot_kind::{SMALL_SLAB_UNITS, SlotKind};
use crate::space::{Above, DetachedRuns, Space};
use crate::supply::Supply;
use crate::table::{Table, Tag};
use crate::{HeapError, state};

/// The chunks of a region, the space between them, and the records of both in DRAM.
pub struct Chunks<D: Dram> {
    region: Region,
    table: Table,
    space: Spin<Space>,
    supply: Supply,
    allocator: DramAllocator<D>,
}

impl<D: Dram> Chunks<D> {
    /// Creates the records of a region without chunks, or whose chunks below `mark` follow ([`Chunks::walk`]).
    pub(crate) fn new(region: Region, mark: u32, dram: D) -> Result<Chunks<D>, HeapError> {
        let allocator = DramAllocator::new(dram);
        let table = Table::new(&allocator)?;
        let space = Space::new(mark, &allocator).inspect_err(|_| {
            // SAFETY: no other thread has a reference to the table.
            unsafe { table.deallocate(&allocator) }
        })?;
        let chunks = Chunks { region, table, space: Spin::new(space), supply: Supply::default(), allocator };
        chunks.note(&chunks.lock());
        Ok(chunks)
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    #[inline(always)]
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    #[inline(always)]
    pub(crate) fn supply(&self) -> &Supply {
        &self.supply
    }

    pub(crate) fn allocator(&self) -> &DramAllocator<D> {
        &self.allocator
    }

    /// Locks the space that belongs to no lane.
    pub(crate) fn lock(&self) -> Guard<'_, Space> {
        self.space.lock()
    }

    /// Publishes changed lengths of the locked space for readers without the lock.
    pub(crate) fn note(&self, space: &Space) {
        self.supply.note(space, &self.region);
    }

    /// Returns the bytes available for new chunks without growth: free runs, and everything above the mark.
    pub fn spare_bytes(&self) -> u64 {
        self.supply.spare_bytes(&self.region)
    }

    /// Returns true if the region was used to its end and has not grown since: there is no space above the mark for a
    /// chunk of small slots. Both numbers are durable, so a later opening returns the same.
    pub fn is_exhausted(&self) -> bool {
        // The mark is read first: it never exceeds a length that is read after it.
        let mark_bytes = self.supply.mark_bytes();
        self.region.len_bytes() - mark_bytes < u64::from(SMALL_SLAB_UNITS) * UNIT_BYTES
    }

    /// Makes a chunk from a free run, at the mark, or after growth, and returns its first unit.
    pub(crate) fn new_chunk<M: Medium>(&self, medium: &M, header: ChunkHeader) -> Result<u32, HeapError> {
        if !medium.is_writable() {
            return Err(HeapError::Medium(MediumError::ReadOnly));
        }
        let unit = self.make_chunk(medium, header)?;
        medium.prefer(header.span(unit), header.is_index());
        Ok(unit)
    }

    fn make_chunk<M: Medium>(&self, medium: &M, header: ChunkHeader) -> Result<u32, HeapError> {
        loop {
            let (wanting, away) = {
                let mut space = self.space.lock();
                if let Some(run) = space.runs.take(&self.table, header.units) {
                    return self.chunk_of_run(medium, space, run, header);
                }
                if self.join_split_runs(medium, &mut space) {
                    continue;
                }
                let past = u64::from(space.mark) + u64::from(header.units);
                let wanting = match past * UNIT_BYTES <= self.region.len_bytes() {
                    true if past <= u64::from(space.holed_from) => {
                        return self.raise_mark(medium, &mut space, header);
                    }
                    true => Wanting::Space { found: space.above(), past: past as u32 },
                    false => Wanting::Length(past * UNIT_BYTES),
                };
                (wanting, space.away)
            };
            let taken = match wanting {
                Wanting::Space { found, past } => {
                    self.back_above_mark(medium, found, past).map(drop).map_err(HeapError::from)
                }
                Wanting::Length(bytes) => self.region.grow(medium, bytes, GROWTH_BYTES),
            };
            match taken {
                Err(_) if away.count > 0 => self.await_run(away),
                taken => taken?,
            }
        }
    }

    /// Waits until one of the absent runs has come back: a region with absent runs is not full. The thread that took
    /// a run needs no lane to put it back, so the caller may hold a lane.
    #[cold]
    fn await_run(&self, found: DetachedRuns) {
        let mut backoff = Backoff::long();
        while self.space.lock().away.returned_count == found.returned_count {
            backoff.relax();
        }
    }

    /// Makes a chunk of slots, all free, owned by the caller.
    fn new_slab<M: Medium>(&self, medium: &M, slot_kind: SlotKind) -> Result<SlabRef, HeapError> {
        let slab = self.space.lock().record(&self.allocator, slot_kind)?;
        match self.new_chunk(medium, ChunkHeader::slots(slot_kind)) {
            Ok(unit) => {
                slab.begin(unit, State::Owned);
                self.table.enter_slab(slab);
                Ok(slab)
            }
            Err(error) => {
                self.space.lock().pool(slab);
                Err(error)
            }
        }
    }

    /// Returns a chunk with free slots for a lane to own.
    pub(crate) fn owned_slab<M: Medium>(&self, medium: &M, slot_kind: SlotKind) -> Result<SlabRef, HeapError> {
        let is_wanted = |slab: SlabRef| {
            slab.is_half_free() || medium.is_resident(ChunkHeader::slots(slot_kind).span(slab.start_unit()))
        };
        let roomy = match medium.evicts() {
            true => self.space.lock().take_roomy_if(slot_kind, is_wanted),
            false => self.space.lock().take_roomy(slot_kind),
        };
        let slab = roomy.map_or_else(|| self.new_slab(medium, slot_kind), Ok);
        slab.or_else(|error| {
            let roomy = self.space.lock().take_roomy(slot_kind);
            roomy.or_else(|| self.idle_slab(slot_kind)).ok_or(error)
        })
    }

    /// Searches the entire table for an unowned chunk with any free slot, in a region that cannot grow.
    pub(crate) fn idle_slab(&self, slot_kind: SlotKind) -> Option<SlabRef> {
        let space = self.space.lock();
        let mut unit = FIRST_CHUNK_UNIT;
        while unit < space.mark {
            let slab = self.table.at(unit).slab().filter(|slab| slab.slot_kind() == slot_kind);
            let is_unowned = |slab: &SlabRef| matches!(slab.state(), State::Idle | State::Evacuating);
            if let Some(slab) = slab.filter(|slab| is_unowned(slab) && slab.free_count() > 0) {
                slab.set_state(State::Owned);
                return Some(slab);
            }
            unit += self.table.chunk(unit).1;
        }
        None
    }

    /// Gives up the ownership of a chunk of slots.
    pub(crate) fn disown<M: Medium>(&self, medium: &M, slab: SlabRef) {
        let mut space = self.space.lock();
        slab.set_state(State::Idle);
        self.file(medium, &mut space, slab);
    }

    /// Files a chunk of slots that has gained free slots. Its record may already belong to another chunk; that is
    /// harmless.
    #[cold]
    #[inline(never)]
    pub(crate) fn review<M: Medium>(&self, medium: &M, slab: SlabRef) {
        self.file(medium, &mut self.space.lock(), slab);
    }

    /// Turns an empty chunk with all its space into a free run.
    pub(crate) fn give_units_back<M: Medium>(&self, medium: &M, space: &mut Space, unit: u32, units: u32) {
        self.supply.loosen(units);
        self.give_run_back(medium, space, Run { unit, units, space: Tag::SPACED });
    }

    /// Joins a run that is in no list with its free neighbours and lists the result.
    pub(crate) fn give_run_back<M: Medium>(&self, medium: &M, space: &mut Space, run: Run) {
        let run = space.runs.absorb(&self.table, run, space.mark);
        ChunkHeader::free(run.units).store(medium, run.unit);
        space.runs.insert(&self.table, run);
        self.note(space);
    }

    /// Files an unowned chunk of slots: as a free run if empty, in the list of roomy chunks, or nowhere.
    pub(crate) fn file<M: Medium>(&self, medium: &M, space: &mut Space, slab: SlabRef) {
        let is_unowned = matches!(slab.state(), State::Idle | State::Listed | State::Evacuating);
        let is_empty = slab.is_wholly_free() || slab.is_roomy() && medium.breaks(canary::CHUNK_NOT_EMPTY);
        if is_unowned && is_empty {
            space.unlist(slab);
            self.table.leave_slab(slab);
            let (unit, units) = (slab.start_unit(), slab.geometry().units);
            space.pool(slab);
            self.give_units_back(medium, space, unit, units);
        } else if space.list_if_roomy(slab) {
            self.supply.loosen(slab.geometry().units);
        }
    }

    /// Makes a chunk at the start of a run that was taken off the lists. The lock is released while the file system
    /// allocates space.
    fn chunk_of_run<'a, M: Medium>(
        &'a self,
        medium: &M,
        mut space: Guard<'a, Space>,
        run: Run,
        header: ChunkHeader,
    ) -> Result<u32, HeapError> {
        self.supply.note_run_used();
        self.note(&space);
        if run.is_holed() {
            space.away.leave();
            drop(space);
            let backed = run.allocate_for(medium, header);
            space = self.space.lock();
            space.away.come_back();
            if let Err(error) = backed {
                self.give_run_back(medium, &mut space, run);
                return Err(error.into());
            }
        }
        Ok(self.carve(medium, &mut space, run, header))
    }

    /// Takes steps 1 and 2 of a chunk from a free run.
    pub(crate) fn carve<M: Medium>(&self, medium: &M, space: &mut Space, run: Run, header: ChunkHeader) -> u32 {
        if header.is_from_the_end() && run.units > header.units {
            self.carve_end(medium, space, run, header)
        } else {
            self.carve_start(medium, space, run, header)
        }
    }

    /// Puts small long-lived extents, such as PMEKV's log, together at the ends of runs, so that long pieces stay
    /// free for chunks that need them.
    fn carve_end<M: Medium>(&self, medium: &M, space: &mut Space, run: Run, header: ChunkHeader) -> u32 {
        let rest = run.units - header.units;
        header.store(medium, run.unit + rest);
        medium.order_unless(canary::RUN_BEFORE_ITS_END);
        ChunkHeader::free(rest).store(medium, run.unit);
        medium.order();
        space.runs.insert(&self.table, Run { units: rest, ..run });
        self.note(space);
        run.unit + rest
    }

    fn carve_start<M: Medium>(&self, medium: &M, space: &mut Space, run: Run, header: ChunkHeader) -> u32 {
        let Run { unit, units, space: of_rest } = run;
        let rest = units - header.units;
        if rest > 0 {
            ChunkHeader::free(rest).store(medium, unit + header.units);
            space.runs.insert(&self.table, Run { unit: unit + header.units, units: rest, space: of_rest });
        }
        self.note(space);
        if header.kind == ChunkKind::Slots(SlotKind::SEGMENTS) && !medium.breaks(canary::ZEROES_BEFORE_RUN) {
            ChunkHeader::free(units).store(medium, unit);
            medium.order();
        }
        clear_segments(medium, unit, header);
        medium.order_unless(canary::RUN_BEFORE_ITS_REST);
        header.store(medium, unit);
        medium.order();
        unit
    }

    /// Takes steps 1 and 2 of a chunk at the mark, for which the region has space.
    fn raise_mark<M: Medium>(&self, medium: &M, space: &mut Space, header: ChunkHeader) -> Result<u32, HeapError> {
        let (unit, past) = (space.mark, space.mark + header.units);
        self.table.cover(&self.allocator, unit, past)?;
        header.store(medium, unit);
        clear_segments(medium, unit, header);
        medium.order();
        if !medium.breaks(canary::CHUNK_BEFORE_MARK) {
            state::store_mark(medium, past);
            medium.order();
        }
        space.mark = past;
        space.holed_from = space.holed_from.max(past);
        self.note(space);
        Ok(unit)
    }
}

/// A requirement that a chunk at the mark waits for.
enum Wanting {
    /// A longer region.
    Length(u64),
    /// Space above the mark, as it was found, up to a unit.
    Space { found: Above, past: u32 },
}

fn clear_segments<M: Medium>(medium: &M, unit: u32, header: ChunkHeader) {
    if header.kind == ChunkKind::Slots(SlotKind::SEGMENTS) && !medium.breaks(canary::STALE_SEGMENT_HEADER) {
        zero_segment_heads(medium, unit);
    }
}

impl<D: Dram> Drop for Chunks<D> {
    fn drop(&mut self) {
        let space = self.space.get_mut();
        let past = space.mark;
        for slab in space.drain_pool() {
            // SAFETY: the heap is being dropped, and its records are not used afterwards.
            unsafe { slab.deallocate(&self.allocator) };
        }
        self.table.each_chunk(past, |unit, tag, _| {
            if tag.slot_kind().is_some()
                && let Some(slab) = self.table.at(unit).slab()
            {
                // SAFETY: as above; each record is visited once, at its chunk's first unit.
                unsafe { slab.deallocate(&self.allocator) };
            }
        });
        // SAFETY: as above.
        unsafe {
            self.space.get_mut().deallocate(&self.allocator);
            self.table.deallocate(&self.allocator);
        }
    }
}
