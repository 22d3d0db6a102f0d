//! A store: opening, closing, and the tree of its keys.

mod durable;
mod figures;
mod inner;
mod maintenance;

use std::fmt;
use std::ops::Deref;
use std::path::Path;

use engine::Error;
use pmem::MediumError;

use crate::handles::Kind;
use crate::{OpenError, Options, Tree};
pub use durable::{Ticket, Waker};
pub(crate) use inner::Inner;

/// An open store. Clones share it. Dropping the last clone closes it.
///
/// Reads and writes of keys are the methods of [`Tree`], to which a store dereferences.
pub struct Store(Tree);

impl Deref for Store {
    type Target = Tree;

    #[inline(always)]
    fn deref(&self) -> &Tree {
        &self.0
    }
}

impl Clone for Store {
    fn clone(&self) -> Store {
        self.another(Kind::Store)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at `path`, a directory or a DAX device, and creates it if there is none.
    ///
    /// # Errors
    /// [`OpenError::Locked`] if another process has the store open; [`OpenError::Unusable`] or [`OpenError::Journal`]
    /// if it is damaged; [`OpenError::Io`] if the operating system refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Options::new().open(path)
    }

    /// Opens an existing store for reading. Several processes can do so while none has it open for writing.
    ///
    /// # Errors
    /// As for [`Store::open`]; [`OpenError::Missing`] if there is no store.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Options::new().read_only(true).open(path)
    }

    /// Returns the store of a tree.
    pub(crate) fn new(tree: Tree) -> Store {
        Store(tree)
    }

    /// Returns a handle of the store whose keys are the stored ones of all trees.
    pub(crate) fn with_stored_keys(&self) -> Store {
        Store(self.stored())
    }

    /// Like [`Store::with_stored_keys`], for a front end with its own mapping of keys: until the store is closed, it
    /// keeps the form of its stored keys. A store without named trees refuses its first one.
    #[doc(hidden)]
    #[must_use]
    pub fn for_front_end(&self) -> Store {
        self.inner().trees.fix_form();
        self.with_stored_keys()
    }

    /// Returns another handle, counted as one of this kind.
    pub(crate) fn another(&self, kind: Kind) -> Store {
        Store(self.held_by(kind))
    }

    /// Closes the store if this handle is the last one. All writes of a journal are then on the disk, at any
    /// durability. The lock is released, and a clean image is written if there is space for it: the next opening then
    /// need not search for free space, count keys, or sort keys that were in order.
    ///
    /// Other handles, snapshots, ordered views, ranges and readers keep the store open. This call then returns
    /// [`Error::StillOpen`] and drops only its own handle; the last handle closes the store.
    ///
    /// Dropping the last handle closes the store as well, but its error is only recorded: as a `tracing` event of
    /// level `ERROR` (feature `tracing`). Within a callback of the background ([`Store::on_expired`]), closing happens
    /// soon after the callback has returned.
    ///
    /// # Errors
    /// [`Error::StillOpen`] names the handles that keep the store open. [`Error::Medium`] if the storage fails: the
    /// store is closed and intact, but writes acknowledged below `power` may be lost in a power failure. With
    /// [`crate::MediumError::Removed`] the store's files, and everything written to them, are gone. [`Error::Forked`].
    pub fn close(self) -> Result<(), Error> {
        self.inner().engine()?;
        let Some(mut inner) = self.0.into_inner()? else { return Ok(()) };
        let is_removed = inner.is_removed();
        let (image, journal) = (inner.shut(), inner.journal.clone());
        // Dropping the medium makes the end of the log durable.
        drop(inner);
        if is_removed {
            return Err(MediumError::Removed.into());
        }
        image?;
        Ok(journal.map_or(Ok(()), |journal| journal.closed())?)
    }
}
