//! What persistent hash indexes have in common: signatures are cut into partitions, each partition is an extendible directory, in
//! volatile memory, over durable segments; a segment that fills up is split in two.
//!
//! What a segment holds is the index's own, and so are its locks: here are its header, the split's record and its commit, what
//! opening finds, and the directories.

mod context;
mod cursor;
pub(crate) mod directory;
pub mod layout;
pub(crate) mod open;
pub(crate) mod record;

use pmem::Offset;

pub use context::{Context, Garbage, Table};
pub use cursor::Cursor;

/// A segment's table in volatile memory.
pub(crate) trait Segmented: Send + Sync + 'static {
    /// Where the segment lies.
    fn offset(&self) -> Offset;
    /// The directory bits that its entries share.
    fn prefix(&self) -> u64;
    /// How many those are.
    fn depth(&self) -> u32;
}
