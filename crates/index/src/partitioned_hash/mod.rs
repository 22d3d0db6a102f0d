//! HiKV's persistent hash index (paper, sections 3.1, 3.3 and 3.4.1), extended so that it can grow.
//!
//! The index is divided into partitions by the signatures of keys. Each partition is an extendible-hashing
//! directory in DRAM over durable segments. A full segment is split in two. A split touches no item, and no
//! operation moves an entry within a segment.
//!
//! # Invariants
//! - A key has one entry, which a search reaches from the key's home line by the overflow bits that [`layout`]
//!   describes.
//! - The position word alone commits an entry. A word marked FRESH may not be durable yet; a thread that acts on
//!   such a word makes it durable first.
//! - A word marked BATCH belongs to a batch in progress; a thread that finds such a word asks that batch for the
//!   value ([`batch`]).
//! - A live segment is in the directory, or chained to a segment that is. Every directory entry names a live
//!   segment.
//! - The bytes of a segment change only under the lock of the pair to which the entry belongs. A change to the
//!   stash or the chain also needs the stash lock, and only fills a free entry. Exception: any thread may settle a
//!   word.
//!
//! # Write order
//! 1. The overflow bit is durable before the entry that relies on it.
//! 2. In a split, the new segments are durable before the commit word, the commit word before the states of the
//!    segments, the states before the record is cleared, and the cleared record before the old segment is freed.
//!
//! # Modules
//! The index is its segments, its batches in progress, its splits and its due times; each type owns its fields. Every
//! module uses only those after it: `walk`, `find`, `batch/write` -> `lookup` -> `ops` -> `locked`, `split`, `sweep`,
//! `absence`, `clear` -> `check` -> `salvage` -> `search` -> `segment` -> `batch/active` -> `settle`, `draft`, `due` ->
//! `layout` -> `slot`.
//!
//! # Lock order
//! partition -> pairs of one segment, ascending -> stash. An operation on one key holds one pair. A batch holds the
//! pairs of all its keys, in several segments, and then stashes ([`batch`]). A thread that reads a segment is
//! pinned (`epoch`), because splits retire segments.

mod absence;
pub mod batch;
mod broken;
mod check;
mod clear;
mod counts;
mod draft;
mod due;
mod find;
pub mod layout;
mod locked;
mod lookup;
mod ops;
pub mod salvage;
mod search;
mod segment;
mod settle;
mod slot;
mod split;
mod sweep;
#[cfg(test)]
mod tests;
mod walk;

use std::ops::RangeInclusive;

use epoch::Limbo;
use heap::{FEATURE_EXPIRY, Heap, HeapError};
use pmem::{Dram, Medium, Offset};

pub use absence::Absence;
pub use check::{EachEntry, SegmentDamage};
pub use clear::Cleared;
pub use counts::SEGMENT_COUNT_WORDS;
pub use due::NEVER;
pub use lookup::{BatchLookup, Candidate, LockedLookup, Lookup, Route, Target};
pub use ops::{Bucket, Published};
pub use search::Found;
pub use segment::Entry;
pub use slot::Slot;
pub use split::SplitStats;
pub use walk::Cursor;

use batch::{Batch, Batches, Turn};
use due::Due;
use layout::Geometry;
use segment::Segment;
use split::Splits;

use crate::segmented::open::{finish_splits, live_segments, root_of};
use crate::segmented::segments::Segments;
use crate::segmented::{Segmented, directory};

pub use crate::segmented::{Context, Garbage, Table};

type Root = directory::Root<Segment>;

/// The persistent hash index. Its methods need a [`Context`], and their callers are pinned.
#[derive(Debug)]
pub struct PartitionedHash {
    segments: Segments<Segment>,
    batches: Batches,
    splits: Splits,
    due: Due,
}

impl PartitionedHash {
    /// Writes and flushes the first segments of a new store. They become durable when the format of the allocator
    /// finishes, which is also what makes the region a store.
    pub fn format<M: Medium, D: Dram>(
        medium: &M,
        heap: &Heap<D>,
        geometry: Geometry,
    ) -> Result<PartitionedHash, HeapError> {
        let limbo = Limbo::default();
        let root = clear::empty_root(Context { medium, heap, limbo: &limbo }, geometry, heap.region().generation())?;
        Ok(PartitionedHash::new(Segments::new(geometry, root), Batches::default()))
    }

    /// Opens the index of a store:
    ///
    /// 1. Finishes the splits that a crash interrupted (`crate::segmented`).
    /// 2. Finishes or undoes the batches that a crash interrupted (`batch`).
    /// 3. Finds the live segments and builds the directories (`crate::segmented`).
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if a header is damaged, or if the live segments do not cover every prefix exactly
    /// once.
    pub fn open<M: Medium, D: Dram>(cx: Context<'_, M, D>, geometry: Geometry) -> Result<PartitionedHash, HeapError> {
        let splits = finish_splits(cx, geometry)?;
        let batches = Batches::default();
        batch::recover(cx, &batches)?;
        let due = if cx.heap.region().has_features(FEATURE_EXPIRY) { due::UNKNOWN } else { NEVER };
        let table = |(offset, header)| Box::new(Segment::new(offset, header, !cx.medium.is_writable(), due));
        let live = live_segments(cx, geometry, &splits)?;
        let tables = live.into_iter().map(|segments| segments.into_iter().map(table).collect());
        let root = root_of(tables.collect(), geometry)?;
        Ok(PartitionedHash::new(Segments::new(geometry, root), batches))
    }

    fn new(segments: Segments<Segment>, batches: Batches) -> PartitionedHash {
        let due = segments.root().segments().map(|segment| segment.due.get()).min();
        PartitionedHash { due: Due::at(due.unwrap_or(NEVER)), segments, batches, splits: Splits::default() }
    }

    /// Returns the number of entries. It is exact after every segment has been swept, if no thread writes during
    /// the call.
    pub fn len(&self) -> u64 {
        let _pin = epoch::pin();
        self.segments.root().counter.sum()
    }

    /// Returns the partition of a signature.
    #[inline(always)]
    pub fn partition(&self, signature: u64) -> usize {
        self.segments.geometry().partition(signature)
    }

    /// Returns the number of partitions.
    pub fn partition_count(&self) -> usize {
        self.segments.geometry().partition_count()
    }

    /// Returns true if there is no entry; see [`PartitionedHash::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of live segments, without chained ones.
    pub fn segment_count(&self) -> u64 {
        self.segments.count()
    }

    /// Returns the DRAM used by directories and segment tables.
    pub fn dram_bytes(&self) -> u64 {
        self.segments.dram_bytes()
    }

    /// Returns the counters of splits since the store was opened.
    pub fn split_stats(&self) -> SplitStats {
        self.splits.stats()
    }

    /// Returns the signatures covered by the step of a walk from `cursor` to `next`.
    pub fn signatures(&self, cursor: Cursor, next: Cursor) -> RangeInclusive<u64> {
        self.segments.signatures(cursor, next)
    }

    /// Returns true if a walk that has returned this cursor has visited the segment of `signature`.
    pub fn has_passed(&self, cursor: Cursor, signature: u64) -> bool {
        self.segments.has_passed(cursor, signature)
    }

    /// Returns a time that is not later than the earliest due time of all segments.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due.get()
    }

    /// Begins a round of visits. From now on, [`PartitionedHash::due`] covers the entries that the round misses.
    pub fn begin_due_round(&self) {
        self.due.take();
    }

    /// Makes space in the segment of `signature`, if that is still the one at `full`. The caller holds no bucket.
    ///
    /// # Errors
    /// Returns the allocator's error; then nothing has changed.
    pub fn split<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        signature: u64,
        full: Offset,
    ) -> Result<(), HeapError> {
        self.splits.make_space(cx, &self.segments, &[signature], full)
    }

    /// Removes every entry, as one step for readers and for a crash.
    ///
    /// # Errors
    /// Returns an error if there is no space for the empty segments; then nothing has changed.
    pub fn clear<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>) -> Result<Cleared, HeapError> {
        let empty = |generation| clear::empty_root(cx, self.segments.geometry(), generation);
        self.segments.clear(cx, empty).map(Cleared)
    }

    /// Waits until fewer than sixteen batches are in progress. The caller holds no lock.
    pub fn batch_turn(&self) -> Turn<'_> {
        self.batches.turn()
    }

    /// Locks the pairs of all `signatures`, which are sorted, for a batch (step 2). The caller is pinned until the
    /// batch is finished or dropped, and holds no bucket.
    ///
    /// # Panics
    /// Panics if there are 2^32 signatures or more.
    pub fn lock_batch<'a, M: Medium, D: Dram>(
        &'a self,
        cx: Context<'a, M, D>,
        signatures: &'a [u64],
    ) -> Batch<'a, M, D> {
        Batch::lock((&self.segments, &self.batches), cx, signatures)
    }

    /// Makes space for a batch of these signatures, which are sorted. The caller then starts the batch again. If
    /// many of the signatures belong to one segment, that segment is split ahead as if all keys were new. Otherwise
    /// a large batch would start over for each full segment. The caller is pinned and holds no bucket.
    ///
    /// # Errors
    /// Returns the allocator's error; then only splits have taken place.
    pub fn split_for_batch<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        full: batch::Full,
        signatures: &[u64],
    ) -> Result<(), HeapError> {
        full.split(cx, (&self.segments, &self.splits), signatures)
    }

    /// Passes all words to `each`. Every segment must have been counted, and no thread may write during the call.
    pub fn count_words(&self, each: &mut dyn FnMut(u64)) {
        let _pin = epoch::pin();
        self.segments.root().segments().flat_map(Segment::count_words).for_each(each);
    }

    /// Returns true if the words can belong to this index: they name the same segments in the same order.
    pub fn fits_count_words(&self, words: &[u64]) -> bool {
        let _pin = epoch::pin();
        let (segments, rest) = words.as_chunks::<SEGMENT_COUNT_WORDS>();
        let offsets = segments.iter().map(|words| Offset(words[0]));
        rest.is_empty() && self.segments.root().segments().map(Segmented::offset).eq(offsets)
    }

    /// Adopts the words, which must fit, instead of the counters that a sweep would compute. The process that saved
    /// the words had made everything durable before. No other thread may use the index during the call.
    pub fn adopt_count_words(&self, words: &[u64]) {
        let _pin = epoch::pin();
        let root = self.segments.root();
        for (segment, words) in root.segments().zip(words.as_chunks().0) {
            root.counter.add(segment.adopt_count_words(words));
        }
    }
}
