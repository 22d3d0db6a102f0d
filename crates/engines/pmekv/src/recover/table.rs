//! The state of places by a log, each by the last entry about it: a hash table whose lines are far apart, so each is
//! prefetched before it is read.

use index::Position;
use pmem::arch;

use crate::node::Stored;

/// In place of a lane: the record that was there has ended.
const ENDED: u32 = u32::MAX;
const UNUSED: Stored = Stored { record: Position::EMPTY, checksum: 0, lane: ENDED };

/// A hash table with linear probing by place.
pub(super) struct Table {
    slots: Vec<Stored>,
    used_count: usize,
    /// The number of hash bits that do not select a slot.
    shift: u32,
}

impl Table {
    /// Creates a table with capacity for so many places: a fifth of it stays unused.
    pub(super) fn with_space(place_count: usize) -> Table {
        let slot_count = (place_count + place_count / 4 + 1).next_power_of_two().max(2);
        Table { slots: vec![UNUSED; slot_count], used_count: 0, shift: u64::BITS - slot_count.trailing_zeros() }
    }

    /// Records that a place has this record.
    pub(super) fn begin(&mut self, stored: Stored) {
        let slot = self.slot(stored.record);
        self.used_count += usize::from(self.slots[slot].record.is_empty());
        self.slots[slot] = stored;
    }

    /// Records that a place has no record.
    pub(super) fn end(&mut self, record: Position) {
        self.begin(Stored { record, ..UNUSED });
    }

    pub(super) fn mentions(&self, record: Position) -> bool {
        !self.slots[self.slot(record)].record.is_empty()
    }

    /// Prefetches the line that a lookup of this place reads first.
    #[inline]
    pub(super) fn prefetch(&self, record: Position) {
        arch::prefetch((&raw const self.slots[self.first_slot(record)]).cast());
    }

    pub(super) fn len(&self) -> usize {
        self.used_count
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Position> {
        self.slots.iter().map(|stored| stored.record).filter(|record| !record.is_empty())
    }

    /// Returns the records of all places that have one.
    pub(super) fn begun(&self) -> impl Iterator<Item = Stored> {
        self.slots.iter().filter(|stored| stored.lane != ENDED).copied()
    }

    /// Returns the slot of the place, or the slot where it would be.
    #[inline]
    fn slot(&self, record: Position) -> usize {
        let mut slot = self.first_slot(record);
        while self.slots[slot].record != record && !self.slots[slot].record.is_empty() {
            slot = (slot + 1) % self.slots.len();
        }
        slot
    }

    #[inline]
    fn first_slot(&self, record: Position) -> usize {
        (record.word().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_record_of_a_place_counts() {
        let place = |number: u64| Position::from_word(number << 4);
        let stored = |number: u64, checksum| Stored { record: place(number), checksum, lane: 1 };
        for place_count in [0, 1, 2, 7, 1000] {
            let mut table = Table::with_space(place_count as usize);
            (1..=place_count).for_each(|number| table.begin(stored(number, 1)));
            (1..=place_count).filter(|number| number % 2 == 0).for_each(|number| table.end(place(number)));
            (1..=place_count).filter(|number| number % 4 == 0).for_each(|number| table.begin(stored(number, 2)));
            assert!((1..=place_count).all(|number| table.mentions(place(number))));
            assert!(!table.mentions(place(place_count + 1)));
            assert_eq!((table.len() as u64, table.places().count() as u64), (place_count, place_count));
            let mut begun: Vec<_> = table.begun().map(|stored| (stored.record, stored.checksum)).collect();
            begun.sort_unstable_by_key(|(record, _)| record.word());
            let last = |number: &u64| [Some(2), Some(1), None, Some(1)][*number as usize % 4];
            let expected = (1..=place_count).filter_map(|number| Some((place(number), last(&number)?)));
            assert!(begun.into_iter().eq(expected));
        }
    }
}
