//! The keys and values of a store, and the operations on them.

mod conditional;
mod iter;
mod keys;
mod order;
mod reads;
mod writes;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use catalog::MARK;
use engine::{Engine, Error};
use pmem::Durability;
use transact::Gate;

use crate::handles::{Handle, Kind};
use crate::in_place::InPlace;
use crate::store::Inner;
use crate::trees::Named;
pub(crate) use keys::StoredKeys;

pub use iter::{Iter, IterKeys};

/// Keys in a store and their values. A [`Store`](crate::Store) has one tree without a name, whose operations are called
/// on the store: `store.get(key)`. [`Store::tree`](crate::Store::tree) returns the others. Clones share the tree.
pub struct Tree {
    inner: Arc<Inner>,
    handle: Handle,
    /// The durability of operations, if it is not the store's own.
    level: Option<Durability>,
    /// True if a lookup is worth a try before a read of the engine ([`Reads::supports_lookup`]).
    supports_lookup: bool,
    keys: Keys,
    /// Keys whose first byte is below this are stored as they are. 0 of a tree with a name.
    plain_below: u16,
}

/// The mapping of a handle's keys to stored keys.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    /// Those of the tree without a name.
    Nameless,
    Named(Arc<Named>),
    /// Every stored key, those of the catalog included.
    Stored,
}

impl Keys {
    /// Returns true for the same tree.
    pub(crate) fn is_same(&self, other: &Keys) -> bool {
        match (self, other) {
            (Keys::Named(a), Keys::Named(b)) => Arc::ptr_eq(a, b),
            (Keys::Nameless, Keys::Nameless) | (Keys::Stored, Keys::Stored) => true,
            _ => false,
        }
    }
}

impl Clone for Tree {
    fn clone(&self) -> Tree {
        self.held_by(Kind::Tree)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("path", &self.inner.path).field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl Tree {
    /// Returns the tree of a store that was just opened at `path`.
    pub(crate) fn opened(inner: Inner, path: &Path) -> Tree {
        let supports_lookup = inner.engine.supports_lookup();
        let (inner, handle) = (Arc::new(inner), Handle::first(path));
        Tree { inner, handle, level: None, supports_lookup, keys: Keys::Nameless, plain_below: MARK.into() }
    }

    /// Returns another handle, counted as one of this kind.
    pub(crate) fn held_by(&self, kind: Kind) -> Tree {
        let (inner, handle, keys) = (Arc::clone(&self.inner), self.handle.another(kind), self.keys.clone());
        Tree { inner, handle, keys, ..*self }
    }

    /// Drops this handle, and returns the shared part if this handle was the last one. `None` means that the last
    /// other handle was dropped at the same time.
    pub(crate) fn into_inner(self) -> Result<Option<Inner>, Error> {
        let Tree { inner, handle, .. } = self;
        match Arc::into_inner(inner) {
            Some(inner) => Ok(Some(inner)),
            None => handle.others().map_or(Ok(None), |others| Err(Error::StillOpen { kept_by: others.into() })),
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    #[inline(always)]
    pub(crate) fn supports_lookup(&self) -> bool {
        self.supports_lookup
    }

    /// Reads values in place.
    #[inline(always)]
    pub(crate) fn read<R>(&self, read: impl FnOnce(InPlace<'_>) -> Result<R, Error>) -> Result<R, Error> {
        match self.level {
            None => read(self.in_place()),
            Some(level) => read_at(self.in_place(), &self.inner, level, read),
        }
    }

    /// Returns a handle whose operations are durable at `level` when they return.
    pub(crate) fn at_level(&self, level: Durability) -> Result<Tree, Error> {
        self.inner.check_level(level)?;
        Ok(Tree { level: Some(level), ..self.held_by(Kind::Store) })
    }

    /// Makes a change.
    #[inline(always)]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&dyn Engine) -> Result<R, Error>) -> Result<R, Error> {
        match self.level {
            None => self.inner.change(self.gate(), change),
            Some(level) => self.change_at_level(level, change),
        }
    }

    /// Makes a change without a window: the caller closes gates, or has closed them.
    pub(crate) fn change_alone<R>(&self, change: impl FnOnce(&dyn Engine) -> Result<R, Error>) -> Result<R, Error> {
        match self.level {
            None => self.inner.change_without_window(change),
            Some(level) => self.inner.at(level, || self.inner.change_without_window(change)),
        }
    }

    /// Makes a change at `level`, or at the tree's own level.
    pub(crate) fn change_at<R>(
        &self,
        level: Option<Durability>,
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match level {
            None => self.change(change),
            Some(level) => self.change_at_level(level, change),
        }
    }

    #[cold]
    #[inline(never)]
    fn change_at_level<R>(
        &self,
        level: Durability,
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.inner.at(level, || self.inner.change(self.gate(), change))
    }

    /// Returns the gate that writers of the tree's keys pass.
    #[inline(always)]
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        match &self.keys {
            Keys::Named(named) => named.gate(),
            Keys::Nameless | Keys::Stored => &self.inner.gate,
        }
    }

    /// Runs `operate`, and returns when its writes and reads are durable at the tree's level.
    pub(crate) fn settled<R>(&self, operate: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        match self.level {
            None => self.inner.settled(operate),
            Some(level) => self.inner.at(level, || self.inner.settled(operate)),
        }
    }
}

#[cold]
#[inline(never)]
fn read_at<R>(
    in_place: InPlace<'_>,
    inner: &Inner,
    level: Durability,
    read: impl FnOnce(InPlace<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    inner.at(level, || read(in_place))
}
