//! The persistent hash tables with which the paper of Rewo-Hash compares it, and the trees with which HiKV's paper does
//! (see below), for those papers' figures. The tables are [`Pfht`] (Debnath et al., 2016), [`PathHash`] (Zuo and Hua,
//! 2017) and [`LevelHash`] (Zuo, Hua and Wu, 2018). Each follows its paper's description, at a fixed size, for keys of
//! 16 bytes and values of up to 15 bytes. [`RewoPrinted`] is Rewo-Hash itself, as
//! printed.
//!
//! | | PFHT | Path hashing | Level hashing | Rewo-Hash as printed |
//! |---|---|---|---|---|
//! | places of a key | two buckets of four slots, then the stash | a cell on each level of two paths | two upper and two lower buckets | two buckets of eight slots |
//! | collision | one item moves to its other bucket; else the stash | the next level of the path | one item moves on its level | one item moves to its other bucket |
//! | fences: insert | 2; 5 with a move | 2 | 2; 5 with a move | 2; 5 with a move |
//! | update | 4, logged | 4, logged | 2 if the bucket has a free slot, else 4, logged | 2; 3 into the other bucket; 5 with a move |
//! | delete | 1 | 1 | 1 | 1 |
//!
//! Every operation prefetches the key's buckets together, so that their reads overlap.
//!
//! # Guarantees
//! - An operation that has returned survives a loss of power; an operation in progress is present completely or not at
//!   all. The papers of PFHT and Path hashing promise nothing of this kind. Both tables use the methods of Level
//!   hashing, as in the comparison by the authors of Level hashing: an item is durable before its token, and an update
//!   that does not fit in one word is logged.
//! - A crash during a move leaves two equal items. Opening removes one of them, which needs a walk over the entire
//!   table.
//! - Not guaranteed: readers or writers concurrent with a writer (one caller at a time; no table has
//!   locks here), detection of damage, resizing (a full table returns an error), and durability of data that a killed
//!   process left visible.
//!
//! # Trees
//! The trees with which HiKV's paper compares it: [`NvTree`] (there: NVStore), [`FpTree`], and [`FpTreeCached`] (there:
//! FPTree-C), for keys of 16 bytes and values of any length. They use HiKV's heap, records, hash and epochs, so that a
//! figure compares structures.
//!
//! | | NV-Tree | FPTree |
//! |---|---|---|
//! | leaf, in persistent memory | entries are appended; searched from the newest back | unsorted, searched by fingerprint |
//! | inner nodes, in DRAM | contiguous, rebuilt when one of the last level is full | a B+tree with optimistic locks |
//! | fences: put, update | 2; 4 if the leaf is replaced | 3; 6 with a split |
//! | delete | 2; 4 if the leaf is replaced | 1; 3 if the leaf is unlinked |
//!
//! An operation that has returned survives a loss of power; an operation in progress is present completely or not at
//! all. Threads may use a tree concurrently. Not guaranteed: that a value survives which another thread has seen before
//! its put has returned (NV-Tree), detection of damage in records, and durability of data that a killed process left
//! visible.

mod broken;
mod bucket;
pub mod canary;
mod fptree;
mod fptree_cached;
mod item;
mod key;
mod level;
mod nv_tree;
mod path;
mod pfht;
mod records;
mod region;
mod rewo_printed;
mod tree;
mod version;

use std::fmt;

use pmem::{Medium, MediumError};

pub use fptree::FpTree;
pub use fptree_cached::{CACHED_BYTES_A_PAIR, FpTreeCached};
pub use item::{KEY_BYTES, VALUE_BYTES_MAX};
pub use key::KeyBytes;
pub use level::LevelHash;
pub use nv_tree::NvTree;
pub use path::PathHash;
pub use pfht::Pfht;
pub use records::Records;
pub use region::Region;
pub use rewo_printed::RewoPrinted;
pub use tree::{OnPair, Reshapes, Sizes, ComparisonCounter, Tree, TreeError, TreeResult};

/// The reason why a table refused an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// There is no space for the key, and nothing has changed.
    Full,
    /// The key does not have 16 bytes, or the value has more than 15.
    Length,
    /// The region holds no table of this kind.
    Unformatted,
    /// The region is damaged.
    Damaged,
    /// An error of the medium.
    Medium(MediumError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Full => f.write_str("the table has no space for the key"),
            Error::Length => f.write_str("a key must have 16 bytes, and a value at most 15"),
            Error::Unformatted => f.write_str("the region holds no table of this kind"),
            Error::Damaged => f.write_str("the table is damaged"),
            Error::Medium(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<MediumError> for Error {
    fn from(error: MediumError) -> Error {
        Error::Medium(error)
    }
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A hash table of a fixed size in persistent memory. One caller at a time.
pub trait Table<M: Medium>: Sized {
    /// The name in figures.
    const NAME: &'static str;
    /// The minimum number of slots.
    const SLOT_COUNT_MIN: u64;

    /// Creates an empty table of about this many slots, and at most that, whatever the region holds.
    ///
    /// # Errors
    /// [`Error::Length`] if it would have no slots; an error of the medium.
    fn format(medium: M, slot_count: u64) -> Result<Self>;

    /// Opens a table and completes interrupted updates.
    ///
    /// # Errors
    /// [`Error::Unformatted`], [`Error::Damaged`], or an error of the medium.
    fn open(medium: M) -> Result<Self>;

    /// Returns the region.
    fn region(&self) -> &Region<M>;

    /// Returns the medium.
    fn medium(&self) -> &M {
        &self.region().medium
    }

    /// Returns the number of slots, used and free.
    fn slot_count(&self) -> u64 {
        self.region().slot_count
    }

    /// Returns the number of items.
    fn len(&self) -> u64 {
        self.region().item_count()
    }

    /// Returns true if there is no item.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a key that does not exist; this is not checked.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Length`], or an error of the medium.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Replaces the value of a key; returns false if the key does not exist.
    ///
    /// # Errors
    /// [`Error::Length`], or an error of the medium.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool>;

    /// Removes a key; returns false if the key does not exist.
    ///
    /// # Errors
    /// An error of the medium.
    fn delete(&self, key: &[u8]) -> Result<bool>;

    /// Calls `found` with the value of a key; returns false if the key does not exist.
    fn get(&self, key: &[u8], found: impl FnOnce(&[u8])) -> bool;

    /// Calls `each` with every key and value.
    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8]));

    /// Replaces a key's value, or adds the key.
    ///
    /// # Errors
    /// As for [`Table::update`] and [`Table::insert`].
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.update(key, value)? { Ok(()) } else { self.insert(key, value) }
    }
}
