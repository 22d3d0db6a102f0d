//! Conversion of the tree's errors to the engines' errors.

use engine::Error;
use pbtree::Error as TreeError;

/// Converts a tree's error.
pub(crate) fn from_tree(error: TreeError) -> Error {
    match error {
        TreeError::Heap(error) => error.into(),
        TreeError::Damaged { offset, what } => Error::Corrupt { offset, what },
        TreeError::KeyTooLong { len_bytes } => Error::KeyTooLong { len_bytes },
        TreeError::ValueTooLong { len_bytes } => Error::ValueTooLong { len_bytes: len_bytes as u64 },
        // No caller here requests not to wait, and later additions to the tree's errors are treated alike.
        _ => Error::Corrupt { offset: 0, what: "the tree cannot be read" },
    }
}
