//! The persistent hash tables with which the paper of Rewo-Hash compares it, for that paper's figures: [`Pfht`] (Debnath et al.,
//! 2016), [`PathHash`] (Zuo and Hua, 2017) and [`LevelHash`] (Zuo, Hua and Wu, 2018). Each is as described in its paper, at a
//! fixed size, for keys of 16 bytes and values of up to 15.
//!
//! | | PFHT | Path hashing | Level hashing |
//! |---|---|---|---|
//! | where a key may be | two buckets of four slots, then the stash | a cell on each level of two paths | two buckets above, two below |
//! | collision | one item moves to its other bucket; else the stash | the next level of the path | one item moves on its level |
//! | fences: insert | 2; 5 with a move | 2 | 2; 5 with a move |
//! | update | 4, logged | 4, logged | 2 if the bucket has a free slot, else 4, logged |
//! | delete | 1 | 1 | 1 |
//!
//! # What is claimed, and what is not
//! - An operation that has returned survives a loss of power; one that was under way is there whole or not at all. PFHT's paper and
//!   that of Path hashing claim nothing of the kind; both are given the ways of Level hashing, whose authors gave them to compare: an
//!   item is durable before its token, an update that cannot be one word is logged.
//! - A crash in a move leaves two equal items. Opening makes one of them, at the price of a walk over the whole table.
//! - Not claimed: that readers or writers run beside a writer (one caller at a time; none of the three papers' tables is
//!   locked here), damage told, resizing (a table that is full says so), that what a killed process left visible is durable.

mod bucket;
pub mod canary;
mod item;
mod level;
mod path;
mod pfht;
mod region;

use std::fmt;

use pmem::{Medium, MediumError};

pub use item::{KEY_BYTES, VALUE_BYTES_MAX};
pub use level::LevelHash;
pub use path::PathHash;
pub use pfht::Pfht;
pub use region::Region;

/// Why a table refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// There is no room for the key, and nothing has changed.
    Full,
    /// The key has not 16 bytes, or the value more than 15.
    Length,
    /// The region holds no such table.
    Unformatted,
    /// The region cannot be a table's.
    Damaged,
    /// The medium's.
    Medium(MediumError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Full => f.write_str("the table has no room for the key"),
            Error::Length => f.write_str("keys have 16 bytes here, and values at most 15"),
            Error::Unformatted => f.write_str("there is no such table"),
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

/// What an operation comes to.
pub type Result<T> = std::result::Result<T, Error>;

/// A hash table of a fixed size in persistent memory. One caller at a time.
pub trait Table<M: Medium>: Sized {
    /// Its name in figures.
    const NAME: &'static str;
    /// The fewest slots that it can have.
    const SLOT_COUNT_MIN: u64;

    /// Makes an empty table of about so many slots, and no more, whatever the region holds.
    ///
    /// # Errors
    /// [`Error::Length`] if it would have none; the medium's.
    fn format(medium: M, slot_count: u64) -> Result<Self>;

    /// Opens a table: what a crash interrupted is finished.
    ///
    /// # Errors
    /// [`Error::Unformatted`], [`Error::Damaged`], the medium's.
    fn open(medium: M) -> Result<Self>;

    /// Its region.
    fn region(&self) -> &Region<M>;

    /// What it lies on.
    fn medium(&self) -> &M {
        &self.region().medium
    }

    /// Its slots, used and free.
    fn slot_count(&self) -> u64 {
        self.region().slot_count
    }

    /// Its items.
    fn len(&self) -> u64 {
        self.region().item_count()
    }

    /// True if there is no item.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a key that is not there: nobody looks whether it is.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Length`], the medium's.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Replaces the value of a key; false if it is not there.
    ///
    /// # Errors
    /// [`Error::Length`], the medium's.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool>;

    /// Removes a key; false if it is not there.
    ///
    /// # Errors
    /// The medium's.
    fn delete(&self, key: &[u8]) -> Result<bool>;

    /// Shows the value of a key; false if it is not there.
    fn get(&self, key: &[u8], found: impl FnOnce(&[u8])) -> bool;

    /// Shows every key and value.
    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8]));

    /// Replaces a key's value, or adds the key.
    ///
    /// # Errors
    /// As [`Table::update`] and [`Table::insert`].
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.update(key, value)? { Ok(()) } else { self.insert(key, value) }
    }
}
