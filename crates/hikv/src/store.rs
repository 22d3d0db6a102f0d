//! A store: opening, closing, and the tree of its keys.

mod durable;
mod inner;
mod maintenance;

use std::fmt;
use std::ops::Deref;
use std::path::Path;

use catalog::{Catalog, check_name};
use engine::Error;
use pmem::MediumError;

use crate::handles::Kind;
use crate::tree::{Keyspace, Mapping};
use crate::{OpenError, Options, Tree, TreeInfo};
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
        let Some(mut inner) = Keyspace::of_last(self.0)? else { return Ok(()) };
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

    /// Returns the tree of this name, and creates it if there is none. Trees have separate keys: the same key may have
    /// a value in each. A [`WriteBatch`](crate::WriteBatch) can change several trees in one step.
    ///
    /// A name has 1 to 255 bytes. Names that begin with `hikv:` are reserved: `hikv:1` to `hikv:15` are the databases
    /// of the server, and `hikv:0` is its first one, whose keys are those of the store itself.
    ///
    /// The first tree marks the store: versions of hikv that do not know trees then refuse to open it. It is slow in a
    /// store with many keys whose order is not built, because all keys are visited once.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let jobs = store.tree("jobs")?;
    /// jobs.put("1", "resize cat.png")?;
    /// assert_eq!(store.tree("jobs")?.get("1")?.as_deref(), Some(&b"resize cat.png"[..]));
    /// assert_eq!(store.get("1")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::TreeName`], [`Error::TooManyTrees`]; [`Error::Unsupported`] if the engine has no batches;
    /// [`Error::TreeBusy`] if the first tree waits too long for other operations; otherwise as for [`Tree::write`].
    pub fn tree(&self, name: impl AsRef<str>) -> Result<Tree, Error> {
        let name = name.as_ref();
        if let Some(tree) = self.existing_tree(name)? {
            return Ok(tree);
        }
        check_name(name)?;
        let Inner { trees, gate_lock, .. } = self.inner();
        let named = self.keyspace().change_alone(|engine| trees.find_or_create(engine, gate_lock, name))?;
        Ok(self.with(self.keyspace().mapped(Mapping::of(named)), Kind::Tree))
    }

    /// Returns the tree of this name, or `None`.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn existing_tree(&self, name: impl AsRef<str>) -> Result<Option<Tree>, Error> {
        let named = self.inner().trees.find(self.inner().engine()?, name.as_ref())?;
        Ok(named.map(|named| self.with(self.keyspace().mapped(Mapping::of(named)), Kind::Tree)))
    }

    /// Returns all trees with names, in the order of their names.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let next = store.tree("next")?;
    /// next.put("greeting", "good morning")?;
    /// store.tree("now")?.put("greeting", "good night")?;
    /// store.swap_trees("now", "next")?;
    /// store.drop_tree("next")?;
    /// store.rename_tree("now", "greetings")?;
    /// let names: Vec<_> = store.trees()?.into_iter().map(|tree| tree.name).collect();
    /// assert_eq!(names, ["greetings"]);
    /// let greetings = store.existing_tree("greetings")?.expect("it was just listed");
    /// assert_eq!(greetings.name().as_deref(), Some("greetings"));
    /// assert_eq!(greetings.get("greeting")?.as_deref(), Some(&b"good morning"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn trees(&self) -> Result<Vec<TreeInfo>, Error> {
        Ok(Catalog::of(self.inner().engine()?).entries()?.into_iter().map(TreeInfo::from).collect())
    }

    /// Gives a tree another name, in one step. Handles go on with the tree.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`], [`Error::TreeExists`], [`Error::TreeName`]; otherwise as for [`Tree::write`].
    pub fn rename_tree(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        check_name(from)?;
        check_name(to)?;
        self.keyspace().change_alone(|engine| self.inner().trees.rename(engine, &self.inner().gate_lock, from, to))
    }

    /// Exchanges the keys of two trees, in one step: handles of each name go on with the other's keys. So a tree can be
    /// filled while another serves, and then take its place.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let (index, new) = (store.tree("index")?, store.tree("index.new")?);
    /// index.put("cat", "1")?;
    /// new.put("cat", "2")?;
    /// store.swap_trees("index", "index.new")?;
    /// store.drop_tree("index.new")?;
    /// assert_eq!(index.get("cat")?.as_deref(), Some(&b"2"[..]));
    /// assert!(matches!(new.get("cat"), Err(hikv::Error::NoSuchTree { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchTree`], [`Error::TreeName`]; [`Error::TreeBusy`] if writes of the trees do not end within ten
    /// seconds; [`Error::InsideCallback`]; otherwise as for [`Tree::write`].
    pub fn swap_trees(&self, a: impl AsRef<str>, b: impl AsRef<str>) -> Result<(), Error> {
        let names = [a.as_ref(), b.as_ref()];
        names.into_iter().try_for_each(check_name)?;
        self.keyspace().change_alone(|engine| self.inner().trees.swap(engine, &self.inner().gate_lock, names))
    }

    /// Removes a tree with all its keys, in one step. Its space becomes free in the background. Operations of its
    /// handles then fail with [`Error::NoSuchTree`], also if another tree gets the name.
    ///
    /// # Errors
    /// As for [`Store::swap_trees`].
    pub fn drop_tree(&self, name: impl AsRef<str>) -> Result<(), Error> {
        let name = name.as_ref();
        check_name(name)?;
        self.keyspace().change_alone(|engine| self.inner().trees.drop_tree(engine, &self.inner().gate_lock, name))
    }
}
