//! What the tree is told, and what it answers.

use crate::Position;

/// Where whole keys are read: the items of the tree's owner.
///
/// It is asked only for positions that are in the tree, or in a change that is being applied, and only by callers that
/// are pinned since before they found the position: so an item that is retired after the tree has let go of it is
/// whole.
pub trait Keys {
    /// Why an item's key cannot be read: damage.
    type Error;

    /// The whole key of the item at `position`.
    ///
    /// # Errors
    /// If no item can lie there.
    fn key(&self, position: Position) -> Result<&[u8], Self::Error>;

    /// True if the whole key of the item at `position` is this one. False says nothing: [`Keys::key`] tells.
    #[inline(always)]
    fn has_key(&self, _position: Position, _key: &[u8]) -> bool {
        false
    }

    /// Asks the cache for the item's first line.
    fn prefetch(&self, position: Position);
}

/// A key of which perhaps only the first bytes are at hand. The rest is read from the item when it matters.
#[derive(Clone, Copy, Debug)]
pub struct KeyStart<'k> {
    pub(super) bytes: &'k [u8],
    pub(super) key_bytes: usize,
}

impl<'k> KeyStart<'k> {
    /// The first bytes of a key of `key_bytes`, which are at most 65,535.
    ///
    /// # Panics
    /// If there are more bytes than that.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'k [u8], key_bytes: usize) -> KeyStart<'k> {
        assert!(bytes.len() <= key_bytes, "a key's start is longer than the key");
        KeyStart { bytes, key_bytes }
    }

    /// A whole key.
    #[inline]
    #[must_use]
    pub fn whole(key: &'k [u8]) -> KeyStart<'k> {
        KeyStart { bytes: key, key_bytes: key.len() }
    }
}

/// What happened to one key. Changes of one key are applied in the order in which they happened.
#[derive(Clone, Copy, Debug)]
pub struct Change<'k> {
    /// The key.
    pub key: KeyStart<'k>,
    /// What happened to it.
    pub edit: Edit,
}

/// What happened to a key. Positions are those of items: no marks ([`Position::item`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
    /// It appeared, with this item.
    Insert(Position),
    /// Its item was replaced.
    Replace {
        /// The item that the tree refers to.
        old: Position,
        /// The one that it shall refer to.
        new: Position,
    },
    /// It was removed; this was its item.
    Remove(Position),
}

impl Edit {
    /// The item that the key can be read from while the change is applied.
    pub(super) fn item(self) -> Position {
        match self {
            Edit::Insert(new) | Edit::Replace { new, .. } => new,
            Edit::Remove(old) => old,
        }
    }

    /// How many items it adds.
    pub(super) fn growth(self) -> i64 {
        match self {
            Edit::Insert(_) => 1,
            Edit::Replace { .. } => 0,
            Edit::Remove(_) => -1,
        }
    }
}

/// Why a change was not applied; the tree is as it was before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeError<E> {
    /// An item's key could not be read.
    Keys(E),
    /// The host lends no more memory.
    NoDram {
        /// What was asked for.
        wanted_bytes: usize,
    },
    /// The key to insert is there, with this item.
    Exists(Position),
    /// The item to replace or to remove is not there under that key.
    Missing(Position),
}

/// Why a tree was not loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadError<E> {
    /// An item's key could not be read.
    Keys(E),
    /// The host lends no more memory.
    NoDram {
        /// What was asked for.
        wanted_bytes: usize,
    },
    /// The item's key does not come after the one before it, or is not within its part.
    Unsorted(Position),
}

/// The host lends no more memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoDram {
    /// What was asked for.
    pub wanted_bytes: usize,
}
