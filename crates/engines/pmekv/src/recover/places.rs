//! What the logs say of places: the record that one has, or that it has none.
//!
//! Nearly all records of the nodes are in places of which the logs say nothing, and each is asked about. So a filter comes before the tables: a
//! bit for each place that there is, by a hash of its own, in far less memory than the tables take.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use index::Position;
use pmem::{Medium, arch};

use super::logs::FoundLog;
use super::threads::{each_part, part_count, share};
use crate::canary;
use crate::entry::Entry;
use crate::node::Stored;

/// Of one lane, whose entries alone speak of its places.
type Table = HashMap<Position, Option<Stored>, BuildHasherDefault<PlaceHasher>>;

/// Of the places of all lanes.
pub(super) struct Places {
    tables: Vec<Table>,
    filter: Filter,
    any_lane: bool,
}

impl Places {
    /// What the entries that count make of places.
    pub(super) fn of<M: Medium>(medium: &M, logs: &[FoundLog]) -> Places {
        let (any_lane, backwards) =
            (medium.breaks(canary::PLACE_OF_ANY_LANE), medium.breaks(canary::REPLAYED_BACKWARDS));
        let parts = part_count(logs.iter().map(|log| log.entries.len()).sum());
        let table = |lane| match any_lane {
            false => replay(&logs[lane..=lane], backwards),
            true => replay(if lane == 0 { logs } else { &[] }, backwards),
        };
        let tables = each_part(parts, |part| share(part, parts, logs.len()).map(table).collect::<Vec<_>>());
        let tables: Vec<Table> = tables.into_iter().flatten().collect();
        let filter = Filter::of(&tables);
        Places { tables, filter, any_lane }
    }

    /// Asks the cache for what [`Places::speak_of`] reads first.
    #[inline]
    pub(super) fn prefetch(&self, stored: &Stored) {
        self.filter.prefetch(stored.record);
    }

    /// Whether they say anything of a record of the nodes.
    #[inline]
    pub(super) fn speak_of(&self, stored: &Stored) -> bool {
        let lane = if self.any_lane { 0 } else { stored.lane as usize };
        self.filter.may_have(stored.record)
            && self.tables.get(lane).is_some_and(|table| table.contains_key(&stored.record))
    }

    pub(super) fn count(&self) -> usize {
        self.tables.iter().map(HashMap::len).sum()
    }

    /// The records that have begun, of a part of the lanes.
    pub(super) fn begun(&self, part: usize, part_count: usize) -> Vec<Stored> {
        let tables = &self.tables[share(part, part_count, self.tables.len())];
        tables.iter().flat_map(HashMap::values).flatten().copied().collect()
    }
}

/// What these logs make of places.
fn replay(logs: &[FoundLog], backwards: bool) -> Table {
    let entries = || logs.iter().flat_map(FoundLog::counted);
    let count = entries().map(|entry| usize::from(!entry.old.is_empty()) + usize::from(!entry.new.is_empty())).sum();
    let mut table = Table::with_capacity_and_hasher(count, BuildHasherDefault::default());
    for log in logs {
        let mut apply = |entry: &Entry| {
            if !entry.old.is_empty() {
                table.insert(entry.old, None);
            }
            if !entry.new.is_empty() {
                let stored = Stored { record: entry.new, checksum: entry.checksum, lane: log.lane as u32 };
                table.insert(entry.new, Some(stored));
            }
        };
        match backwards {
            true => log.counted().rev().for_each(&mut apply),
            false => log.counted().for_each(&mut apply),
        }
    }
    table
}

/// A hash of places, which the allocator gives out and nobody chooses.
#[derive(Default)]
struct PlaceHasher(u64);

impl std::hash::Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(32) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// Bits of the filter for each place: one record in so many is looked for in vain.
const BITS_PER_PLACE: usize = 16;

/// Which places there may be.
struct Filter {
    words: Vec<u64>,
    /// Bits of a hash that are not the filter's.
    shift: u32,
}

impl Filter {
    fn of(tables: &[Table]) -> Filter {
        let count: usize = tables.iter().map(HashMap::len).sum();
        let bit_count = (count * BITS_PER_PLACE).next_power_of_two().max(64);
        let shift = u64::BITS - bit_count.trailing_zeros();
        let mut filter = Filter { words: vec![0; bit_count / 64], shift };
        for place in tables.iter().flat_map(HashMap::keys) {
            let (word, bit) = filter.at(*place);
            filter.words[word] |= bit;
        }
        filter
    }

    #[inline]
    fn may_have(&self, place: Position) -> bool {
        let (word, bit) = self.at(place);
        self.words[word] & bit != 0
    }

    #[inline]
    fn prefetch(&self, place: Position) {
        arch::prefetch((&raw const self.words[self.at(place).0]).cast());
    }

    #[inline]
    fn at(&self, place: Position) -> (usize, u64) {
        let hash = place.word().wrapping_mul(0xD134_2543_DE82_EF95) >> self.shift;
        (hash as usize / 64, 1 << (hash % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_has_every_place_and_few_others() {
        let places = |from: u64| (from..from + 1000).map(|number| Position::from_word(number << 8));
        let table: Table = places(0).map(|place| (place, None)).collect();
        let filter = Filter::of(&[table, Table::default()]);
        assert!(places(0).all(|place| filter.may_have(place)));
        assert!(places(1 << 20).filter(|place| filter.may_have(*place)).count() < 200);
        assert!(!Filter::of(&[]).may_have(Position::from_word(7)));
    }
}
