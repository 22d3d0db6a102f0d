//! The errors of a region.

use core::fmt;

use pmem::MediumError;

use crate::EngineNumber;

/// The reason why a region could not be formatted, opened or allocated from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HeapError {
    /// The medium failed: it is full, read-only, or the operating system refused.
    Medium(MediumError),
    /// The region was never formatted, or its format did not finish.
    Unformatted,
    /// The region to be formatted already holds a store.
    AlreadyFormatted,
    /// The region holds data that is not a store.
    Foreign,
    /// The region's bytes contradict themselves.
    Damaged {
        /// The offset of the damage.
        offset: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// The region is longer than the medium that holds it.
    Truncated {
        /// The length in the superblock.
        region_bytes: u64,
        /// The length of the medium.
        file_bytes: u64,
    },
    /// The region has a newer format than this program supports.
    Newer {
        /// The major version found.
        found: u16,
        /// The newest major version that this program reads.
        supported: u16,
    },
    /// The region uses features that this program does not support.
    UnknownFeatures {
        /// The unsupported flags.
        flags: u32,
    },
    /// The region is the base of a journal and is opened without the journal.
    NeedsJournal,
    /// The region was made without a journal and is opened with one.
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
        /// The parameter's name.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// The host has no memory left to allocate.
    NoDram {
        /// The size of the failed allocation.
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
    /// Returns true if the medium is full, as [`MediumError::is_full`].
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
            HeapError::AlreadyFormatted => f.write_str("the region already holds a store"),
            HeapError::Foreign => f.write_str("this is not a hikv store: its first bytes are not those of a store"),
            HeapError::Damaged { offset, what } => write!(f, "the store is damaged at offset {offset:#x}: {what}"),
            HeapError::Truncated { region_bytes, file_bytes } => {
                write!(f, "the store is truncated: {file_bytes} of its {region_bytes} bytes are left")
            }
            HeapError::Newer { found, supported } => {
                write!(f, "the store has format {found}; this program reads formats up to {supported}")
            }
            HeapError::UnknownFeatures { flags } => {
                write!(f, "the store uses features that this program does not support: flags {flags:#x}")
            }
            HeapError::NeedsJournal => f.write_str(
                "the region belongs to a journaled store whose journal is missing: without it recent changes are lost",
            ),
            HeapError::NotJournaled => f.write_str("the region was made without a journal, but a journal is present"),
            HeapError::WrongEngine { found, wanted } => {
                write!(f, "the store belongs to engine {found}, not to {wanted}")
            }
            HeapError::Parameter { what, value } => write!(f, "{what} cannot be {value}"),
            HeapError::NoDram { wanted_bytes } => write!(f, "out of memory: cannot allocate {wanted_bytes} bytes"),
            HeapError::TooLong { len_bytes, limit_bytes } => {
                write!(f, "an item of {len_bytes} bytes is too long: the limit is {limit_bytes} bytes")
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

/// A place that is not valid: the reference to it is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidPlace {
    /// The offset in the reference.
    pub offset: u64,
    /// The reason why it is not valid.
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
