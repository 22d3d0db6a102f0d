//! Free runs: chunks that hold nothing, found by length.
//!
//! There is a list for each step of length (`steps.rs`), linked through the table's entries, and a bitmap of the
//! lists that are not empty. Runs that have all their space are preferred to those that may have holes. Everything
//! here happens under the space lock.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use pmem::{Dram, Medium, MediumError};

use crate::dram_allocator::{DramAllocator, Zeroed};
use crate::header::ChunkHeader;
use crate::layout::{CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, REGION_UNITS_MAX, UNIT_BYTES, unit_start};
use crate::steps::{step_at_least, step_at_most};
use crate::table::{Table, Tag};
use crate::{HeapError, canary};

const LIST_COUNT: usize = step_at_most(REGION_UNITS_MAX as u32 - 1) + 1;
const WORD_COUNT: usize = LIST_COUNT.div_ceil(64);
/// Unit 0 is the head of the region and never a run.
const NONE: u32 = 0;

/// A free run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) unit: u32,
    pub(crate) units: u32,
    /// [`Tag::HOLED`], [`Tag::SPACED`], or both.
    pub(crate) space: Tag,
}

impl Run {
    pub(crate) const fn is_holed(&self) -> bool {
        self.space.has(Tag::HOLED)
    }

    /// Allocates space for a chunk at the start of the run and for the header behind it, or for a chunk at the run's
    /// end.
    pub(crate) fn allocate_for<M: Medium>(&self, medium: &M, header: ChunkHeader) -> Result<(), MediumError> {
        if medium.breaks(canary::PUNCHED_RUN_NOT_BACKED) {
            return Ok(());
        }
        let (len_bytes, rest) = (u64::from(header.units) * UNIT_BYTES, self.units - header.units);
        if header.is_from_the_end() {
            return medium.allocate(unit_start(self.unit + rest).span(len_bytes));
        }
        let behind_bytes = if rest > 0 { CHUNK_HEADER_BYTES } else { 0 };
        medium.allocate(unit_start(self.unit).span(len_bytes + behind_bytes))
    }

    const fn is_spaced(&self) -> bool {
        self.space.has(Tag::SPACED)
    }
}

/// The free runs of a region. The lists are allocated, because a heap may be built on a small stack.
pub(crate) struct Runs {
    lists: NonNull<AllLists>,
    free_units: u64,
    spaced_units: u64,
    holed_units: u64,
}

// SAFETY: the runs own the lists that they point at, and access them only through a borrow of themselves.
unsafe impl Send for Runs {}

/// The lists of runs with all their space, and of runs that may have holes.
struct AllLists {
    whole: Lists,
    holed: Lists,
}

// SAFETY: zero bytes are empty lists: no first unit, and no list marked as occupied.
unsafe impl Zeroed for AllLists {}

/// The first run of each list.
struct Lists {
    heads: [u32; LIST_COUNT],
    occupied: [u64; WORD_COUNT],
}

impl Runs {
    /// Creates empty lists.
    pub(crate) fn new<D: Dram>(allocator: &DramAllocator<D>) -> Result<Runs, HeapError> {
        Ok(Runs { lists: allocator.allocate_zeroed()?, free_units: 0, spaced_units: 0, holed_units: 0 })
    }

    /// Frees the lists.
    ///
    /// # Safety
    /// The runs are no longer used.
    pub(crate) unsafe fn deallocate<D: Dram>(&self, allocator: &DramAllocator<D>) {
        // SAFETY: allocated by `new` with this layout, and the caller gives up its use.
        unsafe { allocator.deallocate(self.lists.cast(), Layout::new::<AllLists>()) };
    }

    /// Returns the units in all runs.
    pub(crate) fn free_units(&self) -> u64 {
        self.free_units
    }

    /// Returns the units in runs that may have space to return to the file system.
    pub(crate) fn spaced_units(&self) -> u64 {
        self.spaced_units
    }

    /// Returns the units in runs that may have holes.
    pub(crate) fn holed_units(&self) -> u64 {
        self.holed_units
    }

    /// Adds a run.
    pub(crate) fn insert(&mut self, table: &Table, run: Run) {
        let Run { unit, units, space } = run;
        let entry = table.at(unit);
        table.at(unit + units - 1).set(Tag::FREE_END, units);
        entry.set(Tag::FREE.with(space), units);
        self.lists(run).push(table, unit, step_at_most(units));
        self.free_units += u64::from(units);
        self.spaced_units += if run.is_spaced() { u64::from(units) } else { 0 };
        self.holed_units += if run.is_holed() { u64::from(units) } else { 0 };
    }

    /// Removes and returns a run of at least `units`.
    pub(crate) fn take(&mut self, table: &Table, units: u32) -> Option<Run> {
        let AllLists { whole, holed } = self.all_lists();
        let unit = whole.find(table, units).or_else(|| holed.find(table, units))?;
        Some(self.remove(table, unit))
    }

    /// Removes and returns a run that may have holes.
    pub(crate) fn take_holed(&mut self, table: &Table) -> Option<Run> {
        let unit = self.all_lists().holed.head_from(0)?;
        Some(self.remove(table, unit))
    }

    /// Removes and returns the run at `unit` if another run follows it.
    pub(crate) fn take_split(&mut self, table: &Table, unit: u32, mark: u32) -> Option<Run> {
        let past = unit + table.chunk(unit).1;
        (is_run(table, unit) && past < mark && is_run(table, past)).then(|| self.remove(table, unit))
    }

    /// Removes the run at `unit`, if there is one whose space can be returned to the file system.
    pub(crate) fn take_spaced(&mut self, table: &Table, unit: u32) -> Option<Run> {
        let tag = table.at(unit).tag();
        (tag.is_free() && tag.has(Tag::SPACED) && !tag.has(Tag::UNSWEPT)).then(|| self.remove(table, unit))
    }

    /// Removes the free neighbours of `run` and returns all of them joined.
    pub(crate) fn absorb(&mut self, table: &Table, run: Run, mark: u32) -> Run {
        let past = run.unit + run.units;
        let after = (past < mark && is_run(table, past)).then(|| self.remove(table, past));
        let before = run_before(table, run.unit).map(|start| self.remove(table, start));
        [after, before].into_iter().flatten().fold(run, |whole, part| Run {
            unit: whole.unit.min(part.unit),
            units: whole.units + part.units,
            space: whole.space.with(part.space),
        })
    }

    /// Removes the run at `unit`.
    fn remove(&mut self, table: &Table, unit: u32) -> Run {
        let entry = table.at(unit);
        let run = Run { unit, units: entry.units(), space: entry.tag().space() };
        self.lists(run).unlink(table, unit, step_at_most(run.units));
        table.at(unit + run.units - 1).set(Tag::NOTHING, 0);
        entry.set(Tag::NOTHING, 0);
        self.free_units -= u64::from(run.units);
        self.spaced_units -= if run.is_spaced() { u64::from(run.units) } else { 0 };
        self.holed_units -= if run.is_holed() { u64::from(run.units) } else { 0 };
        run
    }

    fn lists(&mut self, run: Run) -> &mut Lists {
        let AllLists { whole, holed } = self.all_lists();
        if run.is_holed() { holed } else { whole }
    }

    fn all_lists(&mut self) -> &mut AllLists {
        // SAFETY: allocated by `new` and freed only when the runs are no longer used; accessed only here, through a
        // borrow of the runs.
        unsafe { self.lists.as_mut() }
    }
}

impl Lists {
    fn push(&mut self, table: &Table, unit: u32, list: usize) {
        let entry = table.at(unit);
        entry.previous.store(NONE, Ordering::Relaxed);
        entry.next.store(self.heads[list], Ordering::Relaxed);
        if self.heads[list] != NONE {
            table.at(self.heads[list]).previous.store(unit, Ordering::Relaxed);
        }
        self.set_head(list, unit);
    }

    fn unlink(&mut self, table: &Table, unit: u32, list: usize) {
        let entry = table.at(unit);
        let (previous, next) = (entry.previous.load(Ordering::Relaxed), entry.next.load(Ordering::Relaxed));
        if next != NONE {
            table.at(next).previous.store(previous, Ordering::Relaxed);
        }
        if previous == NONE {
            self.set_head(list, next);
        } else {
            table.at(previous).next.store(next, Ordering::Relaxed);
        }
    }

    /// Finds a run of at least `units`.
    fn find(&self, table: &Table, units: u32) -> Option<u32> {
        self.head_from(step_at_least(units)).or_else(|| self.fitting(table, units))
    }

    /// Returns the first run of the first list that is not empty, starting with `list`.
    fn head_from(&self, list: usize) -> Option<u32> {
        let first_word = list / 64;
        (first_word..WORD_COUNT).find_map(|word| {
            let from = if word == first_word { u64::MAX << (list % 64) } else { u64::MAX };
            let bits = self.occupied[word] & from;
            (bits != 0).then(|| self.heads[word * 64 + bits.trailing_zeros() as usize])
        })
    }

    /// Finds a run of at least `units` in the list that also holds shorter ones.
    fn fitting(&self, table: &Table, units: u32) -> Option<u32> {
        let mut unit = self.heads[step_at_most(units)];
        while unit != NONE && table.at(unit).units() < units {
            unit = table.at(unit).next.load(Ordering::Relaxed);
        }
        (unit != NONE).then_some(unit)
    }

    fn set_head(&mut self, list: usize, unit: u32) {
        self.heads[list] = unit;
        let bit = 1 << (list % 64);
        if unit == NONE {
            self.occupied[list / 64] &= !bit;
        } else {
            self.occupied[list / 64] |= bit;
        }
    }
}

/// Returns true if a run starts at `unit`.
fn is_run(table: &Table, unit: u32) -> bool {
    let tag = table.at(unit).tag();
    tag.is_free() && !tag.has(Tag::UNSWEPT)
}

/// Returns the start of the run that ends just before `unit`.
fn run_before(table: &Table, unit: u32) -> Option<u32> {
    if unit == FIRST_CHUNK_UNIT {
        return None;
    }
    let last = table.at(unit - 1);
    match last.tag() {
        Tag::FREE_END => Some(unit - last.units()),
        _ if is_run(table, unit - 1) && last.units() == 1 => Some(unit - 1),
        _ => None,
    }
}
