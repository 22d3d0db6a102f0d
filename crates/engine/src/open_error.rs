//! Errors of openings.

use std::{fmt, io};

use heap::HeapError;
use items::ItemError;

/// The failure to open a region as a store.
#[derive(Debug)]
pub enum OpenError {
    /// The region's head, chunks or medium.
    Heap(HeapError),
    /// The operating system refused to start a thread.
    Thread(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Heap(error) => error.fmt(f),
            OpenError::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<ItemError> for OpenError {
    fn from(error: ItemError) -> OpenError {
        OpenError::Heap(match error {
            ItemError::Medium(error) => HeapError::Medium(error),
            ItemError::Damaged { offset, what } => HeapError::Damaged { offset, what },
        })
    }
}

impl From<HeapError> for OpenError {
    fn from(error: HeapError) -> OpenError {
        OpenError::Heap(error)
    }
}
