//! Which records there are, and the tree of them.
//!
//! Each record's first line is read, to see that the record is the one that was meant: what takes time is that such lines lie anywhere. Lines are asked
//! for ahead, and parts of the keys are read by a thread each.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::num::NonZero;
use std::thread::{self, available_parallelism};

use engine::{Error, Hasher};
use heap::{Heap, HeapError};
use index::bplus_tree::{Keys as _, LoadError, Loader};
use index::{BPlusTree, Position};
use pmem::{Dram, Medium};

use super::{Found, reach};
use crate::canary;
use crate::entry::Entry;
use crate::lane::lane_of;
use crate::node::Stored;
use crate::record::{Records, place_of};

/// What the logs say of places: the record that one has, or that it has none.
type Places = HashMap<(usize, Position), Option<Stored>, BuildHasherDefault<PlaceHasher>>;

/// Records that are asked for ahead of the one that is read.
const AHEAD_COUNT: usize = 16;

/// Keys that are worth a thread.
const KEYS_PER_THREAD: usize = 1 << 16;
const THREAD_COUNT_MAX: usize = 16;

/// A hash of places, which the allocator gives out and nobody chooses: by a multiplication each for lane and position.
#[derive(Default)]
struct PlaceHasher(u64);

impl std::hash::Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(32) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// A record and its key, whose first bytes decide most comparisons.
#[derive(Clone, Copy)]
struct Keyed<'m> {
    head: u64,
    key: &'m [u8],
    record: Position,
}

/// What is known of the records of a region that is being opened.
struct Opening<'o, M, D: Dram> {
    records: Records<'o, M>,
    heap: &'o Heap<D>,
    hasher: &'o Hasher,
    found: &'o Found,
    places: Places,
}

/// The tree of everything that is there; the heap is told of every record.
pub(crate) fn load<M: Medium, D: Dram + Clone>(
    medium: &M,
    heap: &Heap<D>,
    dram: D,
    hasher: &Hasher,
    found: &Found,
) -> Result<BPlusTree<D>, HeapError> {
    let opening = Opening { records: Records(medium), heap, hasher, found, places: replay(medium, found) };
    let begun = opening.begun()?;
    let starts = opening.starts();
    let keyed = starts[1..].iter().map(|&start| opening.keyed(found.keys[start]).map(|keyed| keyed.key));
    let lows = keyed.collect::<Result<Vec<_>, _>>()?;
    let loader = Loader::new(dram);
    let load_part = |part: usize| {
        let (low, high) = (part.checked_sub(1).map_or(&b""[..], |before| lows[before]), lows.get(part).copied());
        let past = high.map_or(begun.len(), |high| begun.partition_point(|keyed| keyed.key < high));
        let from = begun.partition_point(|keyed| keyed.key < low).min(past);
        let stored = starts[part]..starts.get(part + 1).copied().unwrap_or(found.keys.len());
        loader.part(low, high, opening.sorted(&found.keys[stored], &begun[from..past]))
    };
    let parts = thread::scope(|scope| {
        let load_part = &load_part;
        let others: Vec<_> = (1..starts.len()).map(|part| scope.spawn(move || load_part(part))).collect();
        let first = load_part(0);
        let others = others.into_iter().map(|thread| thread.join().expect("a part is loaded, or is an error"));
        [first].into_iter().chain(others).collect::<Result<Vec<_>, _>>()
    });
    loader.finish(parts.map_err(told)?).map_err(|error| told(error.into()))
}

impl<'o, M: Medium, D: Dram> Opening<'o, M, D> {
    /// The records that the logs say have begun, in the order of their keys.
    fn begun(&self) -> Result<Vec<Keyed<'o>>, HeapError> {
        let records: Vec<Stored> = self.places.values().flatten().copied().collect();
        let mut begun = self.in_time(&records).map(|&stored| self.keyed(stored)).collect::<Result<Vec<_>, _>>()?;
        begun.sort_unstable_by(|one, other| one.head.cmp(&other.head).then_with(|| one.key.cmp(other.key)));
        Ok(begun)
    }

    /// Where parts of the nodes' records begin, the first at 0: at records that still are what they were, whose keys are read for that.
    fn starts(&self) -> Vec<usize> {
        let count = self.found.keys.len();
        let part_count = match count / KEYS_PER_THREAD {
            0 | 1 => 1,
            worth => worth.min(THREAD_COUNT_MAX).min(available_parallelism().map_or(1, NonZero::get)),
        };
        let later = (1..part_count).filter_map(|part| {
            (count * part / part_count..count).find(|&number| self.is_same(&self.found.keys[number]))
        });
        let mut starts: Vec<usize> = [0].into_iter().chain(later).collect();
        starts.dedup();
        starts
    }

    /// Whether the logs say nothing of a record of the nodes.
    fn is_same(&self, stored: &Stored) -> bool {
        let any_lane = self.records.0.breaks(canary::PLACE_OF_ANY_LANE);
        !self.places.contains_key(&(if any_lane { 0 } else { stored.lane as usize }, stored.record))
    }

    /// The records, those of the nodes that still are what they were and those that have begun since, in the order of their keys.
    fn sorted<'s>(
        &'s self,
        stored: &'s [Stored],
        begun: &'s [Keyed<'o>],
    ) -> impl Iterator<Item = Result<(Position, &'o [u8]), HeapError>> {
        let same = self.in_time(stored).filter(|stored| self.is_same(stored));
        let mut stored = same.map(|&stored| self.keyed(stored)).peekable();
        let mut begun = begun.iter().copied().peekable();
        std::iter::from_fn(move || {
            let is_first = match (begun.peek(), stored.peek()) {
                (Some(begun), Some(Ok(stored))) => begun.key < stored.key,
                (begun, _) => begun.is_some(),
            };
            let next = if is_first { begun.next().map(Ok) } else { stored.next() };
            next.map(|next| next.and_then(|keyed| reached(self.heap, keyed)))
        })
    }

    /// The records, some of which are asked for ahead of each.
    fn in_time<'s>(&'s self, stored: &'s [Stored]) -> impl Iterator<Item = &'s Stored> {
        let near = |stored: &Stored| self.records.prefetch(stored.record);
        stored.iter().take(AHEAD_COUNT).for_each(near);
        stored
            .iter()
            .enumerate()
            .inspect(move |(number, _)| {
                stored.get(number + AHEAD_COUNT).into_iter().for_each(near);
            })
            .map(|(_, stored)| stored)
    }

    /// The record with its key, once seen to be the one that was meant.
    fn keyed(&self, stored: Stored) -> Result<Keyed<'o>, HeapError> {
        let wrong = |what| HeapError::Damaged { offset: stored.record.offset().0, what };
        let item = self.records.read(stored.record).map_err(|error| match error {
            Error::Medium(error) => HeapError::Medium(error),
            _ => wrong("a record's header is damaged"),
        })?;
        if item.header.checksum != stored.checksum {
            return Err(wrong("a record is not the one that was written"));
        }
        if lane_of(self.hasher.signature(item.key), self.found.logs.len()) != stored.lane as usize {
            return Err(wrong("a record's key is of another lane"));
        }
        Ok(Keyed { head: head_of(item.key), key: item.key, record: stored.record })
    }
}

/// What the entries that count make of places.
fn replay<M: Medium>(medium: &M, found: &Found) -> Places {
    let mut places = Places::default();
    for log in &found.logs {
        let mut apply = |entry: &Entry| {
            let lane = if medium.breaks(canary::PLACE_OF_ANY_LANE) { 0 } else { log.lane };
            if !entry.old.is_empty() {
                places.insert((lane, entry.old), None);
            }
            if !entry.new.is_empty() {
                let stored = Stored { record: entry.new, checksum: entry.checksum, lane: log.lane as u32 };
                places.insert((lane, entry.new), Some(stored));
            }
        };
        match medium.breaks(canary::REPLAYED_BACKWARDS) {
            true => log.counted().rev().for_each(&mut apply),
            false => log.counted().for_each(&mut apply),
        }
    }
    places
}

fn reached<'k, D: Dram>(heap: &Heap<D>, keyed: Keyed<'k>) -> Result<(Position, &'k [u8]), HeapError> {
    let offset = keyed.record.offset().0;
    let what = "a record of no size class is named";
    let place = place_of(keyed.record).map_err(|_| HeapError::Damaged { offset, what });
    reach(heap, place?).map(|()| (keyed.record, keyed.key))
}

/// The first eight bytes, which sort as keys do, but for ties.
fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len_bytes = key.len().min(head.len());
    head[..len_bytes].copy_from_slice(&key[..len_bytes]);
    u64::from_be_bytes(head)
}

fn told(error: LoadError<HeapError>) -> HeapError {
    match error {
        LoadError::Keys(error) => error,
        LoadError::NoDram { wanted_bytes } => HeapError::NoDram { wanted_bytes },
        LoadError::Unsorted(position) => {
            HeapError::Damaged { offset: position.offset().0, what: "a key is there twice, or out of order" }
        }
    }
}
