//! The keys and values of a store, and the operations on them.

mod conditional;
mod expiry;
mod order;
mod reads;
mod writes;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use engine::{Engine, Error};

use crate::handles::{Handle, Kind};
use crate::store::Inner;

/// Keys in a store and their values. A [`Store`](crate::Store) has one tree, and every operation of the tree is called
/// on the store: `store.get(key)`.
pub struct Tree {
    inner: Arc<Inner>,
    handle: Handle,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Tree {
    /// Returns the tree of a store that was just opened at `path`.
    pub(crate) fn opened(inner: Inner, path: &Path) -> Tree {
        Tree { inner: Arc::new(inner), handle: Handle::first(path) }
    }

    /// Returns another handle, counted as one of this kind.
    pub(crate) fn held_by(&self, kind: Kind) -> Tree {
        Tree { inner: Arc::clone(&self.inner), handle: self.handle.another(kind) }
    }

    /// Drops this handle, and returns the shared part if this handle was the last one. `None` means that the last
    /// other handle was dropped at the same time.
    pub(crate) fn into_inner(self) -> Result<Option<Inner>, Error> {
        let Tree { inner, handle } = self;
        match Arc::into_inner(inner) {
            Some(inner) => Ok(Some(inner)),
            None => handle.others().map_or(Ok(None), |others| Err(Error::StillOpen { kept_by: others.into() })),
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Returns the engine, for operations that change nothing.
    #[inline(always)]
    pub(crate) fn engine(&self) -> Result<&dyn Engine, Error> {
        self.inner.engine()
    }

    /// Makes a change.
    #[inline(always)]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&dyn Engine) -> Result<R, Error>) -> Result<R, Error> {
        self.inner.change(change)
    }
}
