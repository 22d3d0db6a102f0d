//! What can go wrong in a tree.

use core::fmt;

use heap::HeapError;
use pmem::{MediumError, Offset};

/// Why an operation failed. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The region failed, or has no room.
    Heap(HeapError),
    /// The tree's bytes contradict themselves.
    Damaged {
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A lock is held, and the caller did not want to wait.
    WouldWait,
    /// The caller did not want to go on.
    Stopped,
    /// The key is longer than [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX).
    KeyTooLong {
        /// Its length.
        len_bytes: usize,
    },
    /// The value is longer than [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
    ValueTooLong {
        /// Its length.
        len_bytes: usize,
    },
}

impl Error {
    #[cold]
    pub(crate) fn damaged(at: Offset, what: &'static str) -> Error {
        Error::Damaged { offset: at.0, what }
    }

    /// Of the inner node at `at`: separators whose checksums fit may be each other's.
    #[cold]
    pub(crate) fn out_of_order(at: Offset) -> Error {
        Error::damaged(at, "separators are out of order")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::Heap(error) => error.fmt(f),
            Error::Damaged { offset, what } => write!(f, "the store is damaged at offset {offset:#x}: {what}"),
            Error::WouldWait => f.write_str("a lock is held"),
            Error::Stopped => f.write_str("it was stopped"),
            Error::KeyTooLong { len_bytes } => write!(f, "a key of {len_bytes} bytes is too long"),
            Error::ValueTooLong { len_bytes } => write!(f, "a value of {len_bytes} bytes is too long"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Heap(error) => Some(error),
            _ => None,
        }
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Error {
        Error::Heap(error)
    }
}

impl From<MediumError> for Error {
    fn from(error: MediumError) -> Error {
        match error {
            MediumError::OutOfBounds { offset, .. } => Error::Damaged { offset, what: "lies outside the region" },
            error => Error::Heap(error.into()),
        }
    }
}
