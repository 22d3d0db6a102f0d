//! Free runs: chunks that hold nothing, found by length.
//!
//! Lists by step of length (`steps.rs`), linked through the table's entries, and a bitmap of the lists that are not
//! empty. Everything here happens under the space lock.

use core::sync::atomic::Ordering;

use crate::layout::{FIRST_CHUNK_UNIT, REGION_UNITS_MAX};
use crate::steps::{step_at_least, step_at_most};
use crate::table::{Table, Tag};

const LIST_COUNT: usize = step_at_most(REGION_UNITS_MAX as u32 - 1) + 1;
const WORD_COUNT: usize = LIST_COUNT.div_ceil(64);
/// Unit 0 is the head of the region and never a run.
const NONE: u32 = 0;

/// The free runs of a region.
pub(crate) struct Runs {
    heads: [u32; LIST_COUNT],
    occupied: [u64; WORD_COUNT],
    free_units: u64,
}

impl Runs {
    pub(crate) const EMPTY: Runs = Runs { heads: [NONE; LIST_COUNT], occupied: [0; WORD_COUNT], free_units: 0 };

    /// Units in all runs.
    pub(crate) fn free_units(&self) -> u64 {
        self.free_units
    }

    /// Adds a run.
    pub(crate) fn insert(&mut self, table: &Table, unit: u32, units: u32) {
        let list = step_at_most(units);
        let entry = table.at(unit);
        table.at(unit + units - 1).set(Tag::FREE_END, units);
        entry.set(Tag::FREE, units);
        entry.previous.store(NONE, Ordering::Relaxed);
        entry.next.store(self.heads[list], Ordering::Relaxed);
        if self.heads[list] != NONE {
            table.at(self.heads[list]).previous.store(unit, Ordering::Relaxed);
        }
        self.set_head(list, unit);
        self.free_units += u64::from(units);
    }

    /// Removes and returns a run of at least `units`, with its length.
    pub(crate) fn take(&mut self, table: &Table, units: u32) -> Option<(u32, u32)> {
        let unit = self.head_from(step_at_least(units)).or_else(|| self.fitting(table, units))?;
        Some((unit, self.remove(table, unit)))
    }

    /// Removes the free neighbours of `units` at `unit`; the start and the length of all of it.
    pub(crate) fn absorb(&mut self, table: &Table, unit: u32, units: u32, mark: u32) -> (u32, u32) {
        let past = unit + units;
        let after = if past < mark && table.at(past).tag() == Tag::FREE { self.remove(table, past) } else { 0 };
        let before = run_before(table, unit).map_or(0, |start| self.remove(table, start));
        (unit - before, before + units + after)
    }

    /// Removes the run at `unit`; its length.
    fn remove(&mut self, table: &Table, unit: u32) -> u32 {
        let entry = table.at(unit);
        let units = entry.units();
        let (previous, next) = (entry.previous.load(Ordering::Relaxed), entry.next.load(Ordering::Relaxed));
        if next != NONE {
            table.at(next).previous.store(previous, Ordering::Relaxed);
        }
        if previous == NONE {
            self.set_head(step_at_most(units), next);
        } else {
            table.at(previous).next.store(next, Ordering::Relaxed);
        }
        table.at(unit + units - 1).set(Tag::NOTHING, 0);
        entry.set(Tag::NOTHING, 0);
        self.free_units -= u64::from(units);
        units
    }

    /// The first run of the first list that is not empty, from `list` on.
    fn head_from(&self, list: usize) -> Option<u32> {
        let first_word = list / 64;
        (first_word..WORD_COUNT).find_map(|word| {
            let from = if word == first_word { u64::MAX << (list % 64) } else { u64::MAX };
            let bits = self.occupied[word] & from;
            (bits != 0).then(|| self.heads[word * 64 + bits.trailing_zeros() as usize])
        })
    }

    /// A run of at least `units` from the list that holds shorter ones too.
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

/// The start of the run that ends just before `unit`.
fn run_before(table: &Table, unit: u32) -> Option<u32> {
    if unit == FIRST_CHUNK_UNIT {
        return None;
    }
    let last = table.at(unit - 1);
    match last.tag() {
        Tag::FREE_END => Some(unit - last.units()),
        Tag::FREE if last.units() == 1 => Some(unit - 1),
        _ => None,
    }
}
