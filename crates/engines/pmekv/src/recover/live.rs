//! Which records there are, and the tree of them.
//!
//! Each record's header and key are read, to see that the record is the one that was meant: what takes time is that such lines lie anywhere. Lines are
//! asked for ahead, and parts of the keys are read by a thread each.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use engine::{Error, Hasher};
use heap::{Heap, HeapError};
use index::bplus_tree::{Keys as _, LoadError, Loader};
use index::{BPlusTree, Position};
use pmem::{Dram, Medium};

use super::places::Places;
use super::threads::{each_part, part_count, share};
use super::{Found, reach, read_nodes};
use crate::lane::lane_of;
use crate::node::Stored;
use crate::record::{Records, place_of};

/// Records that are asked for ahead of the one that is read.
const AHEAD_COUNT: usize = 16;
/// Up to here a record has its header and a key of some length, which may lie in two lines.
const HEAD_BYTES: u64 = 48;

/// Keys between two calls of the watcher.
const KEYS_PER_TELLING: u64 = 1 << 16;

/// Is told how many keys are in the tree, and of how many.
pub(super) type Watch<'w> = dyn Fn(u64, u64) + Sync + 'w;

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
    lane_count: usize,
    places: Places,
}

/// Records of the nodes, all of one range of keys, which begins with the first that still is what it was.
struct Part<'o> {
    low: &'o [u8],
    stored: Vec<Stored>,
}

/// The tree of everything that is there; the heap is told of every record, and `watch` of how many.
pub(crate) fn load<M: Medium, D: Dram + Clone>(
    medium: &M,
    heap: &Heap<D>,
    dram: D,
    hasher: &Hasher,
    found: &Found,
    watch: &Watch<'_>,
) -> Result<BPlusTree<D>, HeapError> {
    let (places, lane_count) = (Places::of(medium, &found.logs), found.logs.len());
    let opening = Opening { records: Records(medium), heap, hasher, lane_count, places };
    let (begun, parts) = (opening.begun()?, opening.parts(medium, found)?);
    let (count, total) = (AtomicU64::new(0), found.checkpoint.key_count + begun.len() as u64);
    let tell = |more| watch(count.fetch_add(more, Relaxed) + more, total);
    let loader = Loader::new(dram);
    let load_part = |number: usize| {
        let Part { low, stored } = &parts[number];
        let high = parts.get(number + 1).map(|next| next.low);
        let past = high.map_or(begun.len(), |high| begun.partition_point(|keyed| keyed.key < high));
        let from = begun.partition_point(|keyed| keyed.key < *low).min(past);
        let sorted = opening.sorted(stored, &begun[from..past]).zip(1u64..).map(|(item, number)| {
            if number.is_multiple_of(KEYS_PER_TELLING) {
                tell(KEYS_PER_TELLING);
            }
            item
        });
        loader.part(low, high, sorted)
    };
    let loaded = each_part(parts.len(), load_part).into_iter().collect::<Result<Vec<_>, _>>();
    loader.finish(loaded.map_err(told)?).map_err(|error| told(error.into()))
}

impl<'o, M: Medium, D: Dram> Opening<'o, M, D> {
    /// The records that the logs say have begun, in the order of their keys.
    fn begun(&self) -> Result<Vec<Keyed<'o>>, HeapError> {
        let by_key =
            |one: &Keyed<'_>, other: &Keyed<'_>| one.head.cmp(&other.head).then_with(|| one.key.cmp(other.key));
        let part_count = part_count(self.places.count());
        let parts = each_part(part_count, |part| {
            let records = self.places.begun(part, part_count);
            let mut begun =
                self.in_time(&records).map(|&stored| self.keyed(stored)).collect::<Result<Vec<_>, HeapError>>()?;
            begun.sort_unstable_by(by_key);
            Ok(begun)
        });
        let mut begun = parts.into_iter().collect::<Result<Vec<_>, HeapError>>()?.concat();
        if part_count > 1 {
            // A stable sort merges runs that are sorted.
            begun.sort_by(by_key);
        }
        Ok(begun)
    }

    /// The nodes' records, read in parts. A part of which the logs have overtaken everything is left out.
    fn parts(&self, medium: &'o M, found: &Found) -> Result<Vec<Part<'o>>, HeapError> {
        let checkpoint = &found.checkpoint;
        let part_count = part_count(checkpoint.key_count as usize);
        let read = each_part(part_count, |part| {
            let nodes = &checkpoint.nodes[share(part, part_count, checkpoint.nodes.len())];
            let stored = read_nodes(medium, checkpoint.number, nodes)?;
            let first = stored.iter().find(|stored| !self.places.speak_of(stored));
            let low = first.map(|&first| self.keyed(first).map(|keyed| keyed.key)).transpose()?;
            Ok((low, stored))
        });
        let read = read.into_iter().collect::<Result<Vec<_>, HeapError>>()?;
        checkpoint.has_keys(medium, read.iter().map(|(_, stored)| stored.len()).sum())?;
        let parts = read.into_iter().enumerate().filter_map(|(number, (low, stored))| {
            let low = if number == 0 { &[] } else { low? };
            Some(Part { low, stored })
        });
        Ok(parts.collect())
    }

    /// The records, those of the nodes that still are what they were and those that have begun since, in the order of their keys.
    fn sorted<'s>(
        &'s self,
        stored: &'s [Stored],
        begun: &'s [Keyed<'o>],
    ) -> impl Iterator<Item = Result<(Position, &'o [u8]), HeapError>> {
        let same = self.in_time(stored).filter(|stored| !self.places.speak_of(stored));
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
        let near = |stored: &Stored| {
            self.records.prefetch(stored.record);
            self.records.0.prefetch_line(stored.record.offset().plus(HEAD_BYTES - 1));
        };
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
        if lane_of(self.hasher.signature(item.key), self.lane_count) != stored.lane as usize {
            return Err(wrong("a record's key is of another lane"));
        }
        Ok(Keyed { head: head_of(item.key), key: item.key, record: stored.record })
    }
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
