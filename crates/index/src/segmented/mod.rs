//! What persistent hash indexes have in common: signatures are cut into partitions, each partition is an extendible directory, in
//! volatile memory, over durable segments; a segment that fills up is split in two.
//!
//! What a segment holds is the index's own, and so are its locks: here are the segment's header, the split's record and its
//! commit, what opening finds, clearing, and the directories.

pub(crate) mod clear;
mod context;
pub(crate) mod counters;
mod cursor;
pub(crate) mod directory;
pub mod layout;
pub(crate) mod open;
pub(crate) mod record;
mod sweep;

use pmem::{Medium, Offset};

pub use context::{Context, Garbage, Table};
pub use cursor::Cursor;
pub use sweep::{Misplacement, Sweep, finish_sweep};

/// A segment's table in volatile memory.
pub(crate) trait Segmented: Send + Sync + 'static {
    /// All its locks, held.
    type Frozen<'a>
    where
        Self: 'a;

    /// Where the segment lies.
    fn offset(&self) -> Offset;
    /// The directory bits that its entries share.
    fn prefix(&self) -> u64;
    /// How many those are.
    fn depth(&self) -> u32;
    /// Where the segment and those chained to it lie.
    fn chain<M: Medium>(&self, medium: &M) -> impl Iterator<Item = Offset>;
    /// Freezes the segment: all its locks, in the order in which threads take them.
    fn lock_all(&self) -> Self::Frozen<'_>;
    /// Marks the segment dead; the caller holds all its locks.
    fn kill(&self);
}
