//! The errors of a tree.

use core::fmt;

use heap::HeapError;
use pmem::{MediumError, Offset};

/// The reason why an operation failed. A failed operation changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The region failed, or has no space.
    Heap(HeapError),
    /// The tree's bytes contradict themselves.
    Damaged {
        /// The offset of the damage.
        offset: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// A lock is held, and the caller did not want to wait.
    WouldWait,
    /// The caller stopped the operation.
    Stopped,
    /// The key is longer than [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX).
    KeyTooLong {
        /// The key's length.
        len_bytes: usize,
    },
    /// The value is longer than [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
    ValueTooLong {
        /// The value's length.
        len_bytes: usize,
    },
}

impl Error {
    #[cold]
    pub(crate) fn damaged(at: Offset, what: &'static str) -> Error {
        Error::Damaged { offset: at.0, what }
    }

    /// Returns the error for the inner node at `at`: two separators may have been exchanged although their checksums
    /// fit.
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
            Error::WouldWait => f.write_str("the lock is held by another thread"),
            Error::Stopped => f.write_str("the operation was stopped by its caller"),
            Error::KeyTooLong { len_bytes } => {
                write!(f, "a key of {len_bytes} bytes is too long: the limit is {} bytes", crate::KEY_BYTES_MAX)
            }
            Error::ValueTooLong { len_bytes } => {
                write!(f, "a value of {len_bytes} bytes is too long: the limit is {} bytes", crate::VALUE_BYTES_MAX)
            }
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
            MediumError::OutOfBounds { offset, .. } => {
                Error::Damaged { offset, what: "a reference to this offset, which is outside the region" }
            }
            error => Error::Heap(error.into()),
        }
    }
}
