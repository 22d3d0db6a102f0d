//! Which records there are, and the tree of them.
//!
//! Each record's header and key are read, to see that the record is the one that was meant: what takes time is that such lines lie anywhere, on pages
//! that no translation is at hand for. So parts of the keys are read by a thread each, and a part by windows: while one is read, the next one's lines have
//! been asked for, all in a row (decision 81).

use std::cmp::Ordering;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arrayvec::ArrayVec;
use engine::{Error, Hasher};
use heap::{Heap, HeapError};
use index::bplus_tree::{Keys as _, LoadError, Loader};
use index::{BPlusTree, Position};
use pmem::{Dram, Medium, arch};

use super::lost::{Lost, past};
use super::places::Places;
use super::threads::{each_part, part_count, share};
use super::{Found, reach, read_nodes};
use crate::lane::lane_of;
use crate::node::Stored;
use crate::record::{Records, place_of};

/// Records that are asked for, read and marked together. An instruction that asks for a line waits for the page's translation, and so does what comes
/// long after it; some in a row wait together.
const WINDOW_COUNT: usize = 64;
/// Up to here a record has its header and a key of 16 bytes, which may lie in two lines.
const HEAD_BYTES: u64 = 32;

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

impl Keyed<'_> {
    fn by_key(&self, other: &Keyed<'_>) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.key.cmp(other.key))
    }
}

/// What is known of the records of a region that is being opened.
struct Opening<'o, M, D: Dram> {
    records: Records<'o, M>,
    heap: &'o Heap<D>,
    hasher: &'o Hasher,
    lane_count: usize,
    places: Places,
    /// Where damage is gone past.
    lost: Option<&'o Lost>,
}

/// Records of the nodes, all of one range of keys, which begins with the first that still is what it was.
struct Part<'o> {
    low: &'o [u8],
    stored: Vec<Stored>,
}

/// Records that were read together.
type Window<'o> = ArrayVec<Keyed<'o>, WINDOW_COUNT>;

/// The tree of everything that is there; the heap is told of every record, and `watch` of how many.
pub(crate) fn load<M: Medium, D: Dram + Clone>(
    medium: &M,
    heap: &Heap<D>,
    dram: D,
    hasher: &Hasher,
    found: &Found,
    (watch, lost): (&Watch<'_>, Option<&Lost>),
) -> Result<BPlusTree<D>, HeapError> {
    let (places, lane_count) = (Places::of(medium, &found.logs), found.logs.len());
    let opening = Opening { records: Records(medium), heap, hasher, lane_count, places, lost };
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
        let part_count = part_count(self.places.count());
        let parts = each_part(part_count, |part| {
            let records = self.places.begun(part, part_count);
            let mut begun = self.read(&records, |_| true).collect::<Result<Vec<_>, HeapError>>()?;
            begun.sort_unstable_by(Keyed::by_key);
            Ok(begun)
        });
        let mut begun = parts.into_iter().collect::<Result<Vec<_>, HeapError>>()?.concat();
        if part_count > 1 {
            // A stable sort merges runs that are sorted.
            begun.sort_by(Keyed::by_key);
        }
        Ok(begun)
    }

    /// The nodes' records, read in parts. A part of which the logs have overtaken everything is left out.
    fn parts(&self, medium: &'o M, found: &Found) -> Result<Vec<Part<'o>>, HeapError> {
        let checkpoint = &found.checkpoint;
        let part_count = part_count(checkpoint.key_count as usize);
        let read = each_part(part_count, |part| {
            let nodes = &checkpoint.nodes[share(part, part_count, checkpoint.nodes.len())];
            let stored = read_nodes(medium, checkpoint.number, nodes, self.lost)?;
            let still = stored.iter().filter(|stored| !self.places.speak_of(stored)).map(|&stored| self.keyed(stored));
            let mut readable = still.skip_while(|keyed| self.lost.is_some() && keyed.is_err());
            let low = readable.next().transpose()?.map(|keyed| keyed.key);
            Ok((low, stored))
        });
        let read = read.into_iter().collect::<Result<Vec<_>, HeapError>>()?;
        if self.lost.is_none() {
            checkpoint.has_keys(medium, read.iter().map(|(_, stored)| stored.len()).sum())?;
        }
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
        let mut stored = self.read(stored, |stored| !self.places.speak_of(stored)).peekable();
        let mut begun = in_time(begun).peekable();
        std::iter::from_fn(move || {
            let is_first = match (begun.peek(), stored.peek()) {
                (Some(begun), Some(Ok(stored))) => begun.by_key(stored).is_lt(),
                (begun, _) => begun.is_some(),
            };
            let next = if is_first { begun.next().map(Ok) } else { stored.next() };
            next.map(|next| next.map(|keyed| (keyed.record, keyed.key)))
        })
    }

    /// Those of the records that `counts` tells, read and marked by windows.
    fn read<'s>(
        &'s self,
        stored: &'s [Stored],
        counts: impl Fn(&Stored) -> bool + 's,
    ) -> impl Iterator<Item = Result<Keyed<'o>, HeapError>> + 's {
        let mut windows = stored.chunks(WINDOW_COUNT).peekable();
        let mut window = Window::new().into_iter();
        windows.peek().into_iter().for_each(|first| self.ask_for(first));
        std::iter::from_fn(move || {
            loop {
                if let Some(keyed) = window.next() {
                    return Some(Ok(keyed));
                }
                let stored = windows.next()?;
                windows.peek().into_iter().for_each(|next| self.ask_for(next));
                match self.window(stored, &counts) {
                    Ok(read) => window = read.into_iter(),
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }

    /// Asks the cache for all that a window's records are read by.
    fn ask_for(&self, stored: &[Stored]) {
        for stored in stored {
            self.records.prefetch(stored.record);
            self.records.0.prefetch_line(stored.record.offset().plus(HEAD_BYTES - 1));
            self.places.prefetch(stored);
        }
    }

    fn window(&self, stored: &[Stored], counts: impl Fn(&Stored) -> bool) -> Result<Window<'o>, HeapError> {
        let counted = stored.iter().filter(|stored| counts(stored));
        let read = counted.map(|&stored| past(self.lost, self.keyed(stored)));
        let window = read.filter_map(Result::transpose).collect::<Result<Window<'_>, _>>()?;
        let places = window.iter().filter_map(|keyed| keyed.record.place());
        places.for_each(|place| self.heap.prefetch_mark(place));
        window.iter().try_for_each(|keyed| reached(self.heap, keyed.record))?;
        Ok(window)
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
        // The tree is of their keys: which of two that are out of order is damaged, the order does not tell.
        if self.lost.is_some() && !item.is_whole() {
            return Err(wrong("a record's checksum does not fit"));
        }
        Ok(Keyed { head: head_of(item.key), key: item.key, record: stored.record })
    }
}

/// Records that were read long ago: the keys of a window are asked for while those before it are used.
fn in_time<'o>(begun: &[Keyed<'o>]) -> impl Iterator<Item = Keyed<'o>> {
    let ask_for = |window: &[Keyed<'_>]| window.iter().for_each(|keyed| arch::prefetch(keyed.key.as_ptr()));
    let mut later = begun.chunks(WINDOW_COUNT);
    later.next().into_iter().for_each(ask_for);
    let windows = begun.chunks(WINDOW_COUNT).inspect(move |_| later.next().into_iter().for_each(ask_for));
    windows.flatten().copied()
}

fn reached<D: Dram>(heap: &Heap<D>, record: Position) -> Result<(), HeapError> {
    let (offset, what) = (record.offset().0, "a record of no size class is named");
    reach(heap, place_of(record).map_err(|_| HeapError::Damaged { offset, what })?)
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
