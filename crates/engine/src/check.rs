//! How thoroughly a store is checked, and how far a check has come.

use index::partitioned_hash::Cursor;

use crate::places::Places;

/// How thoroughly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Depth {
    /// Head, chunk and segment headers, the places that entries name, item headers: a line an item.
    Quick,
    /// The same; every key and value against checksum and signature, every key by a lookup, what is free against what is
    /// named, and the clean image.
    Deep,
}

/// A check under way: of one store, from its start to its end.
#[derive(Debug)]
pub struct Check {
    pub(crate) depth: Depth,
    pub(crate) cursor: Cursor,
    pub(crate) item_count: u64,
    /// Places that entries named so far.
    pub(crate) named: Places,
}

impl Check {
    /// A check that has not begun.
    #[must_use]
    pub fn new(depth: Depth) -> Check {
        Check { depth, cursor: Cursor::default(), item_count: 0, named: Places::new(0) }
    }

    /// True once everything was checked.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.cursor.is_done()
    }

    /// Items checked so far.
    #[must_use]
    pub fn item_count(&self) -> u64 {
        self.item_count
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.cursor != Cursor::default()
    }
}
