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

/// Counters of splits since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitStats {
    /// The number of segments that were split.
    pub split_count: u64,
    /// The total number of entries in those segments. Divided by `split_count * SEGMENT_ENTRY_COUNT`, it is the
    /// mean load at a split.
    pub split_entry_count: u64,
    /// The number of segments that got a chained segment because a split would not have freed space.
    pub chained_count: u64,
}

/// The persistent hash index. Its methods need a [`Context`], and their callers are pinned.
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

    /// Returns the number of entries. It is exact after every segment has been swept, if no thread writes during
    /// the call.
    pub fn len(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().tally.sum()
    }

    /// Returns the partition of a signature.
    #[inline(always)]
    pub fn partition(&self, signature: u64) -> usize {
        self.geometry.partition(signature)
    }

    /// Returns the number of partitions.
    pub fn partition_count(&self) -> usize {
        self.geometry.partition_count()
    }

    /// Returns true if there is no entry; see [`PartitionedHash::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of live segments, without chained ones.
    pub fn segment_count(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().segments().count() as u64
    }

    /// Returns the DRAM used by directories and segment tables.
    pub fn dram_bytes(&self) -> u64 {
        let _pin = epoch::pin();
        self.root().dram_bytes()
    }

    /// Returns the counters of splits since the store was opened.
    pub fn split_stats(&self) -> SplitStats {
        SplitStats {
            split_count: self.split_count.load(Ordering::Relaxed),
            split_entry_count: self.split_entry_count.load(Ordering::Relaxed),
            chained_count: self.chained_count.load(Ordering::Relaxed),
        }
    }

    /// Returns the current root, which stays valid while the caller is pinned.
    #[inline(always)]
    fn root(&self) -> &Root {
        // SAFETY: the root is never null; a replaced root is retired, and the caller is pinned.
        unsafe { &*self.root.load(Ordering::Acquire) }
    }
}

impl Drop for PartitionedHash {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and no other thread uses the index any more.
        drop(unsafe { Box::from_raw(*self.root.get_mut()) });
    }
}
