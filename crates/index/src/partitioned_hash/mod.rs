//! HiKV's persistent hash index (paper, sections 3.1, 3.3 and 3.4.1), made to grow.
//!
//! Signatures are cut into partitions; each partition is an extendible directory, in DRAM, over durable segments. A
//! segment that fills up is split in two; no item is touched and no entry moves within a segment.
//!
//! # Invariants
//! - A key has one entry, reachable from its home line by the bits that [`layout`] describes.
//! - An entry is committed by its position word alone. A word marked FRESH may not be durable yet: a thread that acts on such a
//!   word settles it first.
//! - A word marked BATCH is in a batch that is under way: a thread that meets it asks that batch ([`batch`]).
//! - A live segment is in the directory, or chained to one that is; every directory entry names a live segment.
//! - A segment's bytes change only under the lock of the pair that an entry belongs to (for the stash and the chain, the
//!   stash lock as well, and only to fill a free entry), except that any thread may settle a word.
//!
//! # Write order
//! Overflow bit before the entry that relies on it; new segments before the split's commit word; that before their
//! states; those before the record is cleared; that before the old segment is free.
//!
//! # Lock order
//! partition -> pairs of one segment in ascending order -> stash. An operation holds one pair; a batch holds those of its
//! keys, of several segments, and then stashes ([`batch`]). Every thread that looks into a segment is pinned (`epoch`), since
//! splits retire segments.

mod absence;
pub mod batch;
mod check;
mod clear;
mod counts;
mod draft;
mod due;
mod find;
mod format;
pub mod layout;
mod locked;
mod lookup;
mod open;
mod ops;
pub mod salvage;
mod segment;
mod settle;
mod slot;
mod split;
mod sweep;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

pub use absence::Absence;
pub use check::{EachEntry, SegmentDamage};
pub use clear::Cleared;
pub use counts::SEGMENT_COUNT_WORDS;
pub use due::NEVER;
pub use find::Found;
pub use lookup::{BatchLookup, Candidate, LockedLookup, Lookup, Route, Target};
pub use ops::{Bucket, Published};
pub use segment::Entry;
pub use slot::Slot;
pub use walk::Cursor;

use batch::Batches;
use due::Due;
use layout::Geometry;
use segment::Segment;

use crate::segmented::directory;
use crate::shared::Pointer;

pub use crate::segmented::{Context, Garbage, Table};

type Root = directory::Root<Segment>;

/// What splits have done since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitStats {
    /// Segments that were split.
    pub split_count: u64,
    /// Entries they held, together. Over `split_count * SEGMENT_ENTRY_COUNT`: the mean load at a split.
    pub split_entry_count: u64,
    /// Segments that were chained because a split would not have made room.
    pub chained_count: u64,
}

/// The index. Methods take a [`Context`]; callers are pinned.
#[derive(Debug)]
pub struct PartitionedHash {
    geometry: Geometry,
    root: Pointer<Root>,
    partitions: Box<[Mutex<()>]>,
    batches: Batches,
    split_count: AtomicU64,
    split_entry_count: AtomicU64,
    chained_count: AtomicU64,
    due: Due,
}

impl PartitionedHash {
    fn new(geometry: Geometry, root: Box<Root>, batches: Batches) -> PartitionedHash {
        let due = root.segments().map(|segment| segment.due.get()).min();
        PartitionedHash {
            due: Due::at(due.unwrap_or(NEVER)),
            geometry,
            root: Pointer::new(Box::into_raw(root)),
            partitions: (0..geometry.partition_count()).map(|_| Mutex::new(())).collect(),
            batches,
            split_count: AtomicU64::new(0),
            split_entry_count: AtomicU64::new(0),
            chained_count: AtomicU64::new(0),
        }
    }

    /// How many entries there are. Exact once every segment has been swept, if nobody writes meanwhile.
    pub fn len(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().tally.sum()
    }

    /// The partition of a signature.
    #[inline(always)]
    pub fn partition(&self, signature: u64) -> usize {
        self.geometry.partition(signature)
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> usize {
        self.geometry.partition_count()
    }

    /// True if there is no entry; see [`PartitionedHash::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many segments are live, chained ones not counted.
    pub fn segment_count(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().segments().count() as u64
    }

    /// Volatile memory of directories and segment tables.
    pub fn dram_bytes(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().dram_bytes()
    }

    /// What splits have done since open.
    pub fn split_stats(&self) -> SplitStats {
        SplitStats {
            split_count: self.split_count.load(Ordering::Relaxed),
            split_entry_count: self.split_entry_count.load(Ordering::Relaxed),
            chained_count: self.chained_count.load(Ordering::Relaxed),
        }
    }

    /// The root as it is now; it stays valid while the caller is pinned.
    #[inline(always)]
    fn root(&self) -> &Root {
        // SAFETY: the root is never null; a replaced one is retired, and the caller is pinned.
        unsafe { &*self.root.load(Ordering::Acquire) }
    }
}

impl Drop for PartitionedHash {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and nobody else uses the index any more.
        drop(unsafe { Box::from_raw(*self.root.get_mut()) });
    }
}
