//! Finds the present records, and builds the tree of them.
//!
//! Short keys are in the nodes, and their records are not read: damage to such a record is reported when it is read
//! later (decision 41). For other keys, and for records that have begun in the logs, the header and the key of each
//! record are read, to check that the record is the right one. Those lines are anywhere in the region, on pages without
//! a cached translation, which takes most of the time. So threads read parts of the keys, and each part is read in
//! windows: while one window is read, the lines of the next one are prefetched, all in a row (decision 44).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::{iter, mem};

use arrayvec::ArrayVec;
use engine::{Error, Hasher};
use heap::{Heap, HeapError, Mark};
use index::bplus_tree::{LoadError, Loader};
use index::{BPlusTree, Position};
use pmem::{Dram, Medium, Offset};

use super::lost::{Lost, damaged, past};
use super::places::Places;
use super::sorted_runs::{Keyed, SortedRuns};
use super::threads::{each_part, share, thread_count};
use super::windows::{WINDOW_COUNT, Window, Windows, read_nodes};
use super::{Found, set};
use crate::lanes::lane_of;
use crate::node::{Named, NodeForm, Stored};
use crate::record::{Records, place_of};
use crate::root::Checkpoint;

/// Parts of the nodes per thread, so that no thread has much left to do when the others have finished.
const PARTS_PER_THREAD: usize = 8;
/// Keys between two calls of the progress callback.
const KEYS_PER_REPORT: u64 = 1 << 16;

/// The progress callback: the number of keys in the tree, and the total.
pub(super) type Watch<'w> = dyn Fn(u64, u64) + Sync + 'w;

/// The state of an opening while it reads records.
struct Opening<'o, M, D: Dram> {
    records: Records<'o, M>,
    heap: &'o Heap<D>,
    hasher: &'o Hasher,
    lane_count: usize,
    places: Places,
    checkpoint: &'o Checkpoint,
    form: NodeForm,
    /// The number of keys in the nodes that were read.
    stored_count: AtomicU64,
    /// Collects damage, if damage is skipped.
    lost: Option<&'o Lost>,
}

/// Nodes of one range of keys, which begins with the first of their records that is still current.
#[derive(Clone, Copy)]
struct Part<'o> {
    low: &'o [u8],
    nodes: &'o [Offset],
}

/// Records whose keys were read together.
type Read<'o> = ArrayVec<Keyed<'o>, WINDOW_COUNT>;

/// Builds the tree of all present records. Marks every record in the heap, and reports progress to `watch`.
pub(crate) fn load<M: Medium, D: Dram + Clone>(
    medium: &M,
    heap: &Heap<D>,
    dram: D,
    hasher: &Hasher,
    found: &Found,
    (watch, lost): (&Watch<'_>, Option<&Lost>),
) -> Result<BPlusTree<D>, HeapError> {
    let (places, lane_count) = (Places::of(medium, &found.logs), found.logs.len());
    let (checkpoint, stored_count) = (&found.checkpoint, AtomicU64::new(0));
    let (records, form) = (Records(medium), NodeForm::of(heap));
    let opening = Opening { records, heap, hasher, lane_count, places, checkpoint, form, stored_count, lost };
    let begun = opening.begun()?;
    let parts = opening.parts()?;
    let (count, total) = (AtomicU64::new(0), found.checkpoint.key_count + begun.count() as u64);
    let report = |more| watch(count.fetch_add(more, Relaxed) + more, total);
    let loader = Loader::new(dram);
    let load_part = |number: usize| {
        let Part { low, nodes } = parts[number];
        let high = parts.get(number + 1).map(|next| next.low);
        let mut unreported = 0;
        let sorted = opening.sorted(opening.stored(nodes), begun.range(low, high)).inspect(|_| {
            unreported += 1;
            if unreported == KEYS_PER_REPORT {
                report(mem::take(&mut unreported));
            }
        });
        let part = loader.part(low, high, sorted);
        report(unreported);
        part
    };
    let loaded =
        each_part(thread_count(total as usize), parts.len(), load_part).into_iter().collect::<Result<Vec<_>, _>>();
    let loaded = loaded.map_err(heap_error)?;
    if lost.is_none() {
        found.checkpoint.has_keys(medium, opening.stored_count.into_inner())?;
    }
    loader.finish(loaded).map_err(|error| heap_error(error.into()))
}

impl<'o, M: Medium, D: Dram> Opening<'o, M, D> {
    /// Reads the records that have begun according to the logs.
    fn begun(&self) -> Result<SortedRuns<'o>, HeapError> {
        let threads = thread_count(self.places.count());
        let runs = each_part(threads, threads, |part| {
            let named = |stored| Named { stored, key: None };
            let records = self.places.begun(part, threads).map(|records| Ok(records.into_iter().map(named)));
            let mut run = self.read(Windows::of(records), |window| window).collect::<Result<Vec<_>, HeapError>>()?;
            run.sort_unstable_by(Keyed::by_key);
            Ok(run)
        });
        runs.into_iter().collect::<Result<_, _>>().map(SortedRuns::of)
    }

    /// Splits the nodes into parts. Nodes whose records the logs have all superseded belong to the part before them.
    fn parts(&self) -> Result<Vec<Part<'o>>, HeapError> {
        let nodes = &self.checkpoint.nodes;
        let part_count = match thread_count(self.checkpoint.key_count as usize) {
            1 => 1,
            threads => threads * PARTS_PER_THREAD,
        };
        let mut starts = vec![(0, &[][..])];
        for part in 1..part_count {
            let share = share(part, part_count, nodes.len());
            let low = self.low(&nodes[share.clone()])?;
            starts.extend(low.map(|low| (share.start, low)));
        }
        let past = |number: usize| starts.get(number + 1).map_or(nodes.len(), |&(past, _)| past);
        let part =
            |(number, &(from, low)): (usize, &(usize, &'o [u8]))| Part { low, nodes: &nodes[from..past(number)] };
        Ok(starts.iter().enumerate().map(part).collect())
    }

    /// Returns the first key of these nodes whose record is still current. Damage before it is reported when all
    /// records are read.
    fn low(&self, nodes: &'o [Offset]) -> Result<Option<&'o [u8]>, HeapError> {
        let passed = Lost::default();
        let lost = self.lost.map(|_| &passed);
        for keys in read_nodes(self.records.0, (self.form, self.checkpoint.number), nodes, lost) {
            for named in keys?.filter(|named| !self.places.mention(&named.stored)) {
                if let Some(keyed) = past(lost, self.keyed(named))? {
                    return Ok(Some(keyed.key));
                }
            }
        }
        Ok(None)
    }

    /// Reads and marks the records of the nodes that the logs do not mention.
    fn stored<'s>(&'s self, nodes: &'o [Offset]) -> impl Iterator<Item = Result<Keyed<'o>, HeapError>> + 's {
        let nodes = read_nodes(self.records.0, (self.form, self.checkpoint.number), nodes, self.lost);
        let nodes = nodes.inspect(|keys| {
            let key_count = keys.as_ref().map_or(0, ExactSizeIterator::len);
            self.stored_count.fetch_add(key_count as u64, Relaxed);
        });
        let ask_for = |window: &Window<'_>| window.iter().for_each(|named| self.places.prefetch(&named.stored));
        let windows = Windows::of(nodes).inspect(move |window| window.iter().for_each(ask_for));
        self.read(windows, |window| self.places.silent_of(window))
    }

    /// Merges both, in key order.
    fn sorted<'s>(
        &'s self,
        stored: impl Iterator<Item = Result<Keyed<'o>, HeapError>> + 's,
        begun: impl Iterator<Item = Keyed<'o>> + 's,
    ) -> impl Iterator<Item = Result<(Position, &'o [u8]), HeapError>> + 's {
        let (mut stored, mut begun) = (stored.peekable(), begun.peekable());
        iter::from_fn(move || {
            let is_first = match (begun.peek(), stored.peek()) {
                (Some(begun), Some(Ok(stored))) => begun.by_key(stored).is_lt(),
                (begun, _) => begun.is_some(),
            };
            let next = if is_first { begun.next().map(Ok) } else { stored.next() };
            next.map(|next| next.map(|keyed| (keyed.record, keyed.key)))
        })
    }

    /// Reads and marks the records that `still` keeps of the windows.
    fn read<'s>(
        &'s self,
        windows: impl Iterator<Item = Result<Window<'o>, HeapError>> + 's,
        still: impl Fn(Window<'o>) -> Window<'o> + 's,
    ) -> impl Iterator<Item = Result<Keyed<'o>, HeapError>> + 's {
        let mut windows = windows.inspect(|window| window.iter().for_each(|window| self.ask_for(window))).peekable();
        let mut read = Read::new().into_iter();
        windows.peek();
        iter::from_fn(move || {
            loop {
                if let Some(keyed) = read.next() {
                    return Some(Ok(keyed));
                }
                let window = windows.next()?;
                windows.peek();
                match window.and_then(|window| self.window(&still(window))) {
                    Ok(keyed) => read = keyed.into_iter(),
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }

    /// Prefetches everything that is read of a window's records.
    fn ask_for(&self, window: &[Named<'o>]) {
        for record in window.iter().filter(|named| self.known(named).is_none()).map(|named| named.stored.record) {
            self.records.prefetch_head(record);
        }
    }

    fn window(&self, window: &[Named<'o>]) -> Result<Read<'o>, HeapError> {
        let (mut read, mut marks) = (Read::new(), ArrayVec::<_, WINDOW_COUNT>::new());
        for &named in window {
            read.extend(past(self.lost, self.keyed(named))?);
        }
        for keyed in &read {
            marks.push(expect_mark(self.heap, keyed.record)?);
        }
        marks.into_iter().zip(&read).try_for_each(|(mark, keyed)| set(mark, keyed.record.offset()))?;
        Ok(read)
    }

    /// Returns the key if the record need not be read. If damage is skipped, all records are read.
    fn known(&self, named: &Named<'o>) -> Option<&'o [u8]> {
        named.key.filter(|_| self.lost.is_none())
    }

    fn keyed(&self, named: Named<'o>) -> Result<Keyed<'o>, HeapError> {
        match self.known(&named) {
            Some(key) => Ok(Keyed::new(key, named.stored.record)),
            None => self.read_key(named.stored),
        }
    }

    /// Reads the record and its key, and checks that it is the right record.
    fn read_key(&self, stored: Stored) -> Result<Keyed<'o>, HeapError> {
        let wrong = |what| HeapError::Damaged { offset: stored.record.offset().0, what };
        let item = self.records.read(stored.record).map_err(|error| match error {
            Error::Medium(error) => HeapError::Medium(error),
            _ => wrong("a record's header is damaged"),
        })?;
        if item.header.checksum != stored.checksum {
            return Err(wrong("a record is not the one that the log or a node names"));
        }
        if lane_of(self.hasher.signature(item.key), self.lane_count) != stored.lane as usize {
            return Err(wrong("a record's key belongs to another lane"));
        }
        // The tree is built by key, and the order of two keys does not show which of them is damaged.
        if self.lost.is_some() && !item.is_intact() {
            return Err(wrong("a record's checksum does not fit"));
        }
        Ok(Keyed::new(item.key, stored.record))
    }
}

fn expect_mark<D: Dram>(heap: &Heap<D>, record: Position) -> Result<Mark<'_>, HeapError> {
    let (offset, what) = (record.offset().0, "a record's place has no size class");
    heap.sweep().expect_mark(place_of(record).map_err(|_| HeapError::Damaged { offset, what })?).map_err(damaged)
}

fn heap_error(error: LoadError<HeapError>) -> HeapError {
    match error {
        LoadError::Keys(error) => error,
        LoadError::NoDram { wanted_bytes } => HeapError::NoDram { wanted_bytes },
        LoadError::Unsorted(position) => {
            HeapError::Damaged { offset: position.offset().0, what: "a key is duplicated or out of order" }
        }
    }
}
