//! The keys and values of a store, and the operations on them.

mod conditional;
mod iter;
mod keyspace;
mod mapping;
mod order;
mod reads;
mod writes;

use std::fmt;

use crate::handles::{Handle, Kind};
use crate::store::Inner;
pub(crate) use keyspace::{BATCH_COUNT, Keyspace};
pub(crate) use mapping::{Mapping, StoredKeys};

pub use iter::{Iter, IterKeys};

/// Keys in a store and their values. A [`Store`](crate::Store) has one tree without a name, whose operations are called
/// on the store: `store.get(key)`. [`Store::tree`](crate::Store::tree) returns the others. Clones share the tree.
pub struct Tree {
    keyspace: Keyspace,
    handle: Handle,
}

impl Clone for Tree {
    fn clone(&self) -> Tree {
        self.held_by(Kind::Tree)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        f.debug_struct("Tree").field("path", &inner.path).field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Tree {
    /// Returns a handle of keys.
    pub(crate) fn new(keyspace: Keyspace, handle: Handle) -> Tree {
        Tree { keyspace, handle }
    }

    /// Returns another handle, counted as one of this kind.
    pub(crate) fn held_by(&self, kind: Kind) -> Tree {
        self.with(self.keyspace.clone(), kind)
    }

    /// Returns a handle of other keys of the store, counted as one of this kind.
    pub(crate) fn with(&self, keyspace: Keyspace, kind: Kind) -> Tree {
        Tree { keyspace, handle: self.handle.another(kind) }
    }

    #[inline(always)]
    pub(crate) fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    pub(crate) fn inner(&self) -> &Inner {
        self.keyspace.inner()
    }

    /// Returns the tree's name, or `None` for the store's own tree.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.keyspace.mapping().name()
    }
}

/// Returns a handle of all stored keys of the tree's store, those of all trees and of the catalog.
pub(crate) fn stored_keys(tree: &Tree) -> Tree {
    tree.with(tree.keyspace.mapped(Mapping::Stored), Kind::Tree)
}
