//! The inputs of the tree, and its errors.

use crate::Position;

/// The source of whole keys: the items of the tree's owner.
///
/// The tree reads only positions that it holds, or that are in a change being applied. Its callers have been pinned
/// since before they found the position. So an item that is retired after the tree has dropped it is still intact.
pub trait Keys {
    /// The reason why an item's key cannot be read: damage.
    type Error;

    /// Returns the whole key of the item at `position`.
    ///
    /// # Errors
    /// Returns an error if no item can be there.
    fn key(&self, position: Position) -> Result<&[u8], Self::Error>;

    /// Returns true if the whole key of the item at `position` equals `key`. False means nothing: call
    /// [`Keys::key`] then.
    #[inline(always)]
    fn has_key(&self, _position: Position, _key: &[u8]) -> bool {
        false
    }

    /// Prefetches the first line of the item.
    fn prefetch(&self, position: Position);
}

/// A key, of which possibly only the first bytes are in memory. The remaining bytes are read from the item if they
/// matter.
#[derive(Clone, Copy, Debug)]
pub struct KeyStart<'k> {
    pub(super) bytes: &'k [u8],
    pub(super) key_bytes: usize,
}

impl<'k> KeyStart<'k> {
    /// Creates the start of a key of `key_bytes` bytes, at most 65,535.
    ///
    /// # Panics
    /// Panics if `bytes` is longer than the key.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'k [u8], key_bytes: usize) -> KeyStart<'k> {
        assert!(bytes.len() <= key_bytes, "a key's start is longer than the key");
        KeyStart { bytes, key_bytes }
    }

    /// Creates the start of a key that is completely in memory.
    #[inline]
    #[must_use]
    pub fn whole(key: &'k [u8]) -> KeyStart<'k> {
        KeyStart { bytes: key, key_bytes: key.len() }
    }
}

/// A change of one key. Changes of the same key are applied in the order in which they happened.
#[derive(Clone, Copy, Debug)]
pub struct Change<'k> {
    /// The key.
    pub key: KeyStart<'k>,
    /// The kind of change.
    pub edit: Edit,
}

/// A kind of change. Positions are those of items, without marks ([`Position::item`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
    /// The key was inserted, with this item.
    Insert(Position),
    /// The key's item was replaced.
    Replace {
        /// The item to which the tree refers.
        old: Position,
        /// The item to which it must refer.
        new: Position,
    },
    /// The key was removed; this was its item.
    Remove(Position),
}

impl Edit {
    /// Returns the item from which the key can be read while the change is applied.
    pub(super) fn item(self) -> Position {
        match self {
            Edit::Insert(new) | Edit::Replace { new, .. } => new,
            Edit::Remove(old) => old,
        }
    }

    /// Returns the number of items that the change adds.
    pub(super) fn growth(self) -> i64 {
        match self {
            Edit::Insert(_) => 1,
            Edit::Replace { .. } => 0,
            Edit::Remove(_) => -1,
        }
    }
}

/// The reason why a change was not applied. The tree is as it was before the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeError<E> {
    /// An item's key could not be read.
    Keys(E),
    /// The host has no more memory.
    NoDram {
        /// The number of bytes requested.
        wanted_bytes: usize,
    },
    /// The key to insert exists, with this item.
    Exists(Position),
    /// The item to replace or to remove is not stored under that key.
    Missing(Position),
}

/// The reason why a tree was not loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadError<E> {
    /// An item's key could not be read.
    Keys(E),
    /// The host has no more memory.
    NoDram {
        /// The number of bytes requested.
        wanted_bytes: usize,
    },
    /// The item's key does not follow the one before it, or is outside its part.
    Unsorted(Position),
}

/// The host has no more memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoDram {
    /// The number of bytes requested.
    pub wanted_bytes: usize,
}
