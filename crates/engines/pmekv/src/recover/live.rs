//! Which records there are, and the tree of them.

use std::collections::HashMap;

use engine::{Error, Hasher};
use heap::{Heap, HeapError};
use index::bplus_tree::{LoadError, Loader};
use index::{BPlusTree, Position};
use pmem::{Dram, Medium};

use super::{Found, reach};
use crate::canary;
use crate::entry::Entry;
use crate::lane::lane_of;
use crate::node::Stored;
use crate::record::{Records, place_of};

/// What the logs say of places: the record that one has, or that it has none.
type Places = HashMap<(usize, Position), Option<Stored>>;

/// The tree of everything that is there; the heap is told of every record.
pub(crate) fn load<M: Medium, D: Dram + Clone>(
    medium: &M,
    heap: &Heap<D>,
    dram: D,
    hasher: &Hasher,
    found: &Found,
) -> Result<BPlusTree<D>, HeapError> {
    let places = replay(medium, found);
    let records = Records(medium);
    let keyed = |stored: Stored| keyed(&records, hasher, found, stored);
    let mut begun = places.values().flatten().map(|&stored| keyed(stored)).collect::<Result<Vec<_>, _>>()?;
    begun.sort_unstable_by_key(|&(_, key)| key);
    let any_lane = medium.breaks(canary::PLACE_OF_ANY_LANE);
    let is_same =
        |stored: &&Stored| !places.contains_key(&(if any_lane { 0 } else { stored.lane as usize }, stored.record));
    let mut stored = found.keys.iter().filter(is_same).map(|&stored| keyed(stored)).peekable();
    let mut begun = begun.into_iter().peekable();
    let sorted = std::iter::from_fn(|| {
        let is_first = match (begun.peek(), stored.peek()) {
            (Some((_, key)), Some(Ok((_, other)))) => key < other,
            (begun, _) => begun.is_some(),
        };
        let next = if is_first { begun.next().map(Ok) } else { stored.next() };
        next.map(|next| next.and_then(|item: (Position, &[u8])| reached(heap, item)))
    });
    let loader = Loader::new(dram);
    let part = loader.part(b"", None, sorted).map_err(told)?;
    loader.finish(vec![part]).map_err(|error| told(error.into()))
}

/// What the entries that count make of places.
fn replay<M: Medium>(medium: &M, found: &Found) -> Places {
    let mut places = Places::new();
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

/// The record with its key, once seen to be the one that was meant.
fn keyed<'m, M: Medium>(
    records: &Records<'m, M>,
    hasher: &Hasher,
    found: &Found,
    stored: Stored,
) -> Result<(Position, &'m [u8]), HeapError> {
    let wrong = |what| HeapError::Damaged { offset: stored.record.offset().0, what };
    let item = records.read(stored.record).map_err(|error| match error {
        Error::Medium(error) => HeapError::Medium(error),
        _ => wrong("a record's header is damaged"),
    })?;
    if item.header.checksum != stored.checksum {
        return Err(wrong("a record is not the one that was written"));
    }
    if lane_of(hasher.signature(item.key), found.logs.len()) != stored.lane as usize {
        return Err(wrong("a record's key is of another lane"));
    }
    Ok((stored.record, item.key))
}

fn reached<'k, D: Dram>(heap: &Heap<D>, item: (Position, &'k [u8])) -> Result<(Position, &'k [u8]), HeapError> {
    let offset = item.0.offset().0;
    let place = place_of(item.0).map_err(|_| HeapError::Damaged { offset, what: "a record of no size class is named" });
    reach(heap, place?).map(|()| item)
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
