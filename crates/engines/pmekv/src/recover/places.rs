//! The state of places by the logs: each has a record, or none.
//!
//! The logs do not mention the places of nearly all records of the nodes, but each place must be checked. So a filter
//! comes before the tables: a few bits per mentioned place, by a separate hash, in far less memory than the tables
//! need.

use index::Position;
use pmem::{Medium, arch};

use super::logs::FoundLog;
use super::table::Table;
use super::threads::{each_part, share, thread_count};
use super::windows::Window;
use crate::canary;
use crate::entry::Entry;
use crate::node::Stored;

/// The places of all lanes.
pub(super) struct Places {
    /// A table per lane: only the lane's entries are about its places.
    tables: Vec<Table>,
    filter: Filter,
    any_lane: bool,
}

impl Places {
    /// Builds the state of places from the valid entries.
    pub(super) fn of<M: Medium>(medium: &M, logs: &[FoundLog]) -> Places {
        let (any_lane, backwards) =
            (medium.breaks(canary::PLACE_OF_ANY_LANE), medium.breaks(canary::REPLAYED_BACKWARDS));
        let threads = thread_count(logs.iter().map(|log| log.entries.len()).sum());
        let table = |lane| match any_lane {
            false => replay(&logs[lane..=lane], backwards),
            true => replay(if lane == 0 { logs } else { &[] }, backwards),
        };
        let tables = each_part(threads, logs.len(), table);
        let filter = Filter::of(&tables);
        Places { tables, filter, any_lane }
    }

    /// Prefetches the memory that [`Places::mention`] reads first.
    #[inline]
    pub(super) fn prefetch(&self, stored: &Stored) {
        self.filter.prefetch(stored.record);
    }

    /// Returns true if the logs mention a record of the nodes.
    #[inline]
    pub(super) fn mention(&self, stored: &Stored) -> bool {
        self.filter.may_have(stored.record) && self.table_of(stored).is_some_and(|table| table.mentions(stored.record))
    }

    /// Keeps the records that the logs do not mention.
    pub(super) fn silent_of<'o>(&self, mut window: Window<'o>) -> Window<'o> {
        for stored in window.iter().map(|named| &named.stored).filter(|stored| self.filter.may_have(stored.record)) {
            self.table_of(stored).into_iter().for_each(|table| table.prefetch(stored.record));
        }
        window.retain(|named| !self.mention(&named.stored));
        window
    }

    #[inline]
    fn table_of(&self, stored: &Stored) -> Option<&Table> {
        self.tables.get(if self.any_lane { 0 } else { stored.lane as usize })
    }

    pub(super) fn count(&self) -> usize {
        self.tables.iter().map(Table::len).sum()
    }

    /// Returns the records that have begun, of a part of the lanes, lane by lane.
    pub(super) fn begun(&self, part: usize, part_count: usize) -> impl Iterator<Item = Vec<Stored>> {
        let tables = &self.tables[share(part, part_count, self.tables.len())];
        tables.iter().map(|table| table.begun().collect())
    }
}

/// Replays these logs into a table.
fn replay(logs: &[FoundLog], backwards: bool) -> Table {
    let entries = || logs.iter().flat_map(FoundLog::counted);
    let count = entries().map(|entry| usize::from(!entry.old.is_empty()) + usize::from(!entry.new.is_empty())).sum();
    let mut table = Table::with_space(count);
    for log in logs {
        match backwards {
            true => replay_entries(&mut table, log.lane, log.counted().rev()),
            false => replay_entries(&mut table, log.lane, log.counted()),
        }
    }
    table
}

fn replay_entries<'l>(table: &mut Table, lane: usize, entries: impl Iterator<Item = &'l Entry> + Clone) {
    let mut ahead = entries.clone().skip(ASKED_AHEAD);
    for entry in entries {
        for place in ahead.next().into_iter().flat_map(|entry| [entry.old, entry.new]) {
            table.prefetch(place);
        }
        if !entry.old.is_empty() {
            table.end(entry.old);
        }
        if !entry.new.is_empty() {
            table.begin(Stored { record: entry.new, checksum: entry.checksum, lane: lane as u32 });
        }
    }
}

/// The number of entries whose table lines are prefetched.
const ASKED_AHEAD: usize = 16;

/// Bits of the filter for each mentioned place. Each place sets [`BITS_SET`] of them, all in one word. One record in
/// some hundreds is a false positive, which costs two lines from far away.
const BITS_PER_PLACE: usize = 16;
const BITS_SET: u32 = 4;
/// The number of hash bits that select a bit of a word.
const BIT_BITS: u32 = u64::BITS.trailing_zeros();

/// A filter of the mentioned places.
struct Filter {
    words: Vec<u64>,
    /// The number of hash bits that do not select a word.
    shift: u32,
}

impl Filter {
    fn of(tables: &[Table]) -> Filter {
        let count: usize = tables.iter().map(Table::len).sum();
        let word_count = (count * BITS_PER_PLACE / 64).next_power_of_two().max(2);
        let mut filter = Filter { words: vec![0; word_count], shift: u64::BITS - word_count.trailing_zeros() };
        for place in tables.iter().flat_map(Table::places) {
            let word = filter.word(place);
            filter.words[word] |= bits(place);
        }
        filter
    }

    #[inline]
    fn may_have(&self, place: Position) -> bool {
        !self.words[self.word(place)] & bits(place) == 0
    }

    #[inline]
    fn prefetch(&self, place: Position) {
        arch::prefetch((&raw const self.words[self.word(place)]).cast());
    }

    #[inline]
    fn word(&self, place: Position) -> usize {
        (place.word().wrapping_mul(0xD134_2543_DE82_EF95) >> self.shift) as usize
    }
}

/// Returns the bits that a place sets, by a separate hash.
#[inline]
fn bits(place: Position) -> u64 {
    let hash = place.word().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let numbers = (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> (u64::BITS - BITS_SET * BIT_BITS);
    (0..BITS_SET).fold(0, |bits, set| bits | 1 << (numbers >> (set * BIT_BITS) & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_contains_places_and_few_others() {
        let places = |from: u64| (from..from + 1000).map(|number| Position::from_word(number << 8));
        let mut table = Table::with_space(1000);
        places(0).skip(1).for_each(|place| table.end(place));
        let filter = Filter::of(&[table, Table::with_space(0)]);
        assert!(places(0).skip(1).all(|place| filter.may_have(place)));
        assert!(places(1 << 20).filter(|place| filter.may_have(*place)).count() < 20);
        assert!(!Filter::of(&[]).may_have(Position::from_word(7)));
    }
}
