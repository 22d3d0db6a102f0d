//! The tree's errors in the engines' words.

use engine::Error;
use pbtree::Error as TreeError;

/// What the tree said.
pub(crate) fn from_tree(error: TreeError) -> Error {
    match error {
        TreeError::Heap(error) => error.into(),
        TreeError::Damaged { offset, what } => Error::Corrupt { offset, what },
        TreeError::KeyTooLong { len_bytes } => Error::KeyTooLong { len_bytes },
        TreeError::ValueTooLong { len_bytes } => Error::ValueTooLong { len_bytes: len_bytes as u64 },
        // Nobody here asks not to wait; and what else a tree may come to say is no more than this.
        _ => Error::Corrupt { offset: 0, what: "the tree cannot be read" },
    }
}
