//! The common part of persistent hash indexes. Signatures are divided into partitions. Each partition is an
//! extendible-hashing directory in DRAM over durable segments. A full segment is split in two.
//!
//! Each index defines the contents and the locks of its segments. This module has the header of segments, the
//! record of a split and its commit, the steps of opening, clearing and sweeping, the directories, and the segments
//! that they lead to (`segments`).
//!
//! # Modules
//! Each uses only those after it: `segments` -> `clear` -> `open` -> `directory`, `record` -> `context`, `sweep`,
//! `cursor` -> `counters`, `layout`.

pub(crate) mod clear;
mod context;
pub(crate) mod counters;
mod cursor;
pub(crate) mod directory;
pub mod layout;
pub(crate) mod open;
pub(crate) mod record;
pub(crate) mod segments;
pub(crate) mod sweep;

use heap::{Place, PlaceKind};
use pmem::{Medium, Offset};

pub use context::{Context, Garbage, Table};
pub use cursor::Cursor;
pub use sweep::{Misplacement, Sweep, finish_sweep};

/// The DRAM table of a segment.
pub(crate) trait Segmented: Send + Sync + 'static {
    /// All locks of the segment, held.
    type AllLocks<'a>
    where
        Self: 'a;

    /// Returns the offset of the segment.
    fn offset(&self) -> Offset;
    /// Returns the directory bits that its entries share.
    fn prefix(&self) -> u64;
    /// Returns the number of those bits.
    fn depth(&self) -> u32;
    /// Returns the offsets of the segment and of those chained to it.
    fn chain<M: Medium>(&self, medium: &M) -> impl Iterator<Item = Offset>;
    /// Returns the places of the segment and of those chained to it.
    fn places<M: Medium>(&self, medium: &M) -> impl Iterator<Item = Place> {
        self.chain(medium).map(|offset| Place { offset, kind: PlaceKind::Segment })
    }
    /// Freezes the segment: takes all its locks, in the order in which threads take them.
    fn lock_all(&self) -> Self::AllLocks<'_>;
    /// Marks the segment dead. The caller holds all its locks.
    fn kill(&self);
}
