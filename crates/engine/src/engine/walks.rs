//! Walks over all keys, their number, and the check of the store.

use super::{Identity, unsupported};
use crate::{Check, Cursor, Error, KeyChanges, OnDamaged, OnItem};

/// A contradiction in a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The offset into the region.
    pub offset: u64,
    /// A description of the damage.
    pub what: String,
}

/// Walks over all keys, their number, and the check of the store.
pub trait Walks: Identity {
    /// Returns the number of keys, including expired keys that the reaper has not deleted yet. Waits for the sweep
    /// after an open, and helps with it.
    fn len(&self) -> Result<u64, Error>;

    /// Returns true if there is no key; see [`Walks::len`].
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Calls `each` with the items of the next part of the store and their expiries, in no order, and returns the
    /// position after them. A key that is present from the first step to the last is visited exactly once. The walk is
    /// not a snapshot. A number that the engine never returned is harmless.
    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error>;

    /// As [`Walks::walk`], for read-only stores: skips damaged items and reports each to `damaged`. A report may also
    /// stand for a part of the store with an unknown number of items. Cursors of this walk are valid only for this
    /// walk.
    fn walk_skipping_damage(
        &self,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        _damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        self.walk(cursor, each)
    }

    /// Calls `each` with the keys of the next part of the store, expired ones included, and returns the position after
    /// them; otherwise as [`Walks::walk`].
    fn walk_stored(&self, _cursor: Cursor, _each: &mut dyn FnMut(&[u8])) -> Result<Cursor, Error> {
        Err(unsupported(self.name(), "named trees"))
    }

    /// Returns true if a walk that has returned this position has visited the key, if it was present.
    fn has_passed(&self, cursor: &Cursor, _key: &[u8]) -> bool {
        cursor.is_done()
    }

    /// Returns the reports about marked keys, of an engine that can have named trees.
    fn key_changes(&self) -> Option<&KeyChanges> {
        None
    }

    /// Returns a position in the store chosen by `seed`, for callers that want any key.
    fn random_cursor(&self, _seed: u64) -> Cursor {
        Cursor::Start
    }

    /// Checks the next part of the store and reports damage to `damaged`; see [`Check`]. Writes nothing.
    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error>;
}
