//! The trees of a store, by name.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catalog::{Catalog, RESERVED, TreeEntry, TreeId, check_name};
use engine::Error;

use crate::{Store, Tree};

/// A tree with a name, from [`Store::trees`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TreeInfo {
    /// The name.
    pub name: String,
    /// The number. No two trees of a store ever have the same; a cleared tree gets another.
    pub id: u32,
    /// The time of creation, by the clock of the store.
    pub created: SystemTime,
}

impl From<TreeEntry> for TreeInfo {
    fn from(entry: TreeEntry) -> TreeInfo {
        let created = UNIX_EPOCH + Duration::from_millis(entry.created_ms);
        TreeInfo { name: entry.name, id: entry.id.number(), created }
    }
}

impl Store {
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
        let named = self.change(|engine| self.inner().trees.find_or_create(engine, name))?;
        Ok(self.named(named))
    }

    /// Returns the tree of this name, or `None`.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn existing_tree(&self, name: impl AsRef<str>) -> Result<Option<Tree>, Error> {
        let named = self.inner().trees.find(self.inner().engine()?, name.as_ref())?;
        Ok(named.map(|named| self.named(named)))
    }

    /// Returns all trees with names, in the order of their names.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn trees(&self) -> Result<Vec<TreeInfo>, Error> {
        Ok(Catalog::of(self.inner().engine()?).entries()?.into_iter().map(TreeInfo::from).collect())
    }

    /// Returns true if the store is marked as one with named trees.
    #[must_use]
    pub fn has_trees(&self) -> bool {
        self.inner().engine.has_trees()
    }

    /// Returns true if the store has a catalog: its stored keys have the form of `docs/format/catalog.md`.
    #[doc(hidden)]
    #[must_use]
    pub fn has_catalog(&self) -> bool {
        self.inner().trees.is_begun()
    }

    /// Records in the catalog that the server's database of this number has keys, under the id of the same number.
    #[doc(hidden)]
    pub fn create_database(&self, number: u8) -> Result<(), Error> {
        let name = format!("{RESERVED}{number}");
        self.change(|engine| Catalog::of(engine).create_with_id(&name, TreeId::new(number.into())))
    }

    /// Returns a handle of all stored keys of an empty store, to which a dump of stored keys is loaded, and marks the
    /// store as one with named trees.
    #[doc(hidden)]
    pub fn stored_to_fill(&self) -> Result<Tree, Error> {
        self.change(|engine| engine.set_has_trees())?;
        Ok(self.stored())
    }

    /// Gives a tree another name, in one step. Handles go on with the tree.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`], [`Error::TreeExists`], [`Error::TreeName`]; otherwise as for [`Tree::write`].
    pub fn rename_tree(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        check_name(from)?;
        check_name(to)?;
        self.change(|engine| self.inner().trees.rename(engine, from, to))
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
        self.change_alone(|engine| self.inner().trees.swap(engine, &self.inner().gate_lock, names))
    }

    /// Removes a tree with all its keys, in one step. Its space becomes free in the background. Operations of its
    /// handles then fail with [`Error::NoSuchTree`], also if another tree gets the name.
    ///
    /// # Errors
    /// As for [`Store::swap_trees`].
    pub fn drop_tree(&self, name: impl AsRef<str>) -> Result<(), Error> {
        let name = name.as_ref();
        check_name(name)?;
        self.change_alone(|engine| self.inner().trees.drop_tree(engine, &self.inner().gate_lock, name))
    }
}
