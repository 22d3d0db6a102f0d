//! What can go wrong in a region.

use core::fmt;

use pmem::MediumError;

use crate::EngineNumber;

/// Why a region could not be formatted, opened or allocated from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HeapError {
    /// The medium failed: it is full, read-only, or the operating system refused.
    Medium(MediumError),
    /// The region was never formatted, or its format did not finish.
    Unformatted,
    /// The region is to be formatted but holds a store.
    AlreadyFormatted,
    /// The region holds something, but no store.
    Foreign,
    /// The region's bytes contradict themselves.
    Damaged {
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The region is longer than what is left of it.
    Truncated {
        /// The length that the superblock states.
        region_bytes: u64,
        /// The length of the medium.
        file_bytes: u64,
    },
    /// The region has a newer format than this program knows.
    Newer {
        /// The major version found.
        found: u16,
        /// The newest major version that this program reads.
        supported: u16,
    },
    /// The region uses features that this program does not know.
    UnknownFeatures {
        /// The flags that are not known.
        flags: u32,
    },
    /// The region is the base of a journal, and is opened without it.
    NeedsJournal,
    /// The region is opened with a journal, and was made without.
    NotJournaled,
    /// The region belongs to another engine.
    WrongEngine {
        /// The engine in the superblock.
        found: EngineNumber,
        /// The engine that was wanted.
        wanted: EngineNumber,
    },
    /// A parameter of a new region is outside its range.
    Parameter {
        /// Which one.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// The host has no volatile memory left to lend.
    NoDram {
        /// How much was wanted.
        wanted_bytes: usize,
    },
    /// No region is large enough for an item of this length.
    TooLong {
        /// The item's length.
        len_bytes: u64,
        /// The longest that could be stored.
        limit_bytes: u64,
    },
}

impl HeapError {
    /// As [`MediumError::is_full`].
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, HeapError::Medium(error) if error.is_full())
    }
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            HeapError::Medium(error) => error.fmt(f),
            HeapError::Unformatted => f.write_str("the region was never formatted, or its format did not finish"),
            HeapError::AlreadyFormatted => f.write_str("the region holds a store already"),
            HeapError::Foreign => f.write_str("this is not a hikv store: its first bytes are something else"),
            HeapError::Damaged { offset, what } => write!(f, "the store is damaged at offset {offset:#x}: {what}"),
            HeapError::Truncated { region_bytes, file_bytes } => {
                write!(f, "the store has {region_bytes} bytes, of which only {file_bytes} are left")
            }
            HeapError::Newer { found, supported } => {
                write!(f, "the store has format {found}; this program reads formats up to {supported}")
            }
            HeapError::UnknownFeatures { flags } => {
                write!(f, "the store uses features that this program does not know: flags {flags:#x}")
            }
            HeapError::NeedsJournal => f.write_str(
                "it is part of a journaled store, whose journal is missing: without that it lacks the last changes",
            ),
            HeapError::NotJournaled => f.write_str("it was made without a journal, and there is one beside it"),
            HeapError::WrongEngine { found, wanted } => {
                write!(f, "the store belongs to engine {found}, not to {wanted}")
            }
            HeapError::Parameter { what, value } => write!(f, "{what} cannot be {value}"),
            HeapError::NoDram { wanted_bytes } => write!(f, "no memory left: {wanted_bytes} bytes were wanted"),
            HeapError::TooLong { len_bytes, limit_bytes } => {
                write!(f, "an item of {len_bytes} bytes is too long: the limit is {limit_bytes}")
            }
        }
    }
}

impl core::error::Error for HeapError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            HeapError::Medium(error) => Some(error),
            _ => None,
        }
    }
}

impl From<MediumError> for HeapError {
    fn from(error: MediumError) -> HeapError {
        HeapError::Medium(error)
    }
}

/// A place that is none: whatever names it is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidPlace {
    /// The offset that was named.
    pub offset: u64,
    /// What is wrong with it.
    pub what: &'static str,
}

impl From<InvalidPlace> for HeapError {
    fn from(wrong: InvalidPlace) -> HeapError {
        HeapError::Damaged { offset: wrong.offset, what: wrong.what }
    }
}

impl fmt::Display for InvalidPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {:#x} {}", self.offset, self.what)
    }
}

impl core::error::Error for InvalidPlace {}
