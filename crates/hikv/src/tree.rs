//! The keys and values of a store, and the operations on them.

mod conditional;
mod iter;
mod order;
mod reads;
mod writes;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use engine::{Engine, Error};
use pmem::Durability;

use crate::handles::{Handle, Kind};
use crate::in_place::InPlace;
use crate::store::Inner;

pub use iter::{Iter, IterKeys};

/// Keys in a store and their values. A [`Store`](crate::Store) has one tree, and every operation of the tree is called
/// on the store: `store.get(key)`.
pub struct Tree {
    inner: Arc<Inner>,
    handle: Handle,
    /// The durability of operations, if it is not the store's own.
    level: Option<Durability>,
    /// True if a lookup is worth a try before a read of the engine ([`Reads::supports_lookup`]).
    supports_lookup: bool,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Tree {
    /// Returns the tree of a store that was just opened at `path`.
    pub(crate) fn opened(inner: Inner, path: &Path) -> Tree {
        let supports_lookup = inner.engine.supports_lookup();
        Tree { inner: Arc::new(inner), handle: Handle::first(path), level: None, supports_lookup }
    }

    /// Returns another handle, counted as one of this kind.
    pub(crate) fn held_by(&self, kind: Kind) -> Tree {
        Tree { inner: Arc::clone(&self.inner), handle: self.handle.another(kind), ..*self }
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
            None => self.inner.change(change),
            Some(level) => change_at(&self.inner, level, change),
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
            Some(level) => change_at(&self.inner, level, change),
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
fn change_at<R>(
    inner: &Inner,
    level: Durability,
    change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
) -> Result<R, Error> {
    inner.at(level, || inner.change(change))
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
