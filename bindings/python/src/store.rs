//! Stores: opening, closing, trees.

use std::path::PathBuf;
use std::sync::Arc;

use hikv::{FrontEnd, Store as LibraryStore};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::open::Arguments;
use crate::slot::{Slot, Slots};
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::{bytes, errors};

/// An open store, which is also the tree of its keys without a name.
#[pyclass(extends = Tree, subclass, frozen, mapping, module = "hikv._hikv")]
pub struct Store {
    store: Arc<Slot<LibraryStore>>,
    slots: Arc<Slots>,
    is_in_memory: bool,
}

impl Store {
    /// Returns a tree of the store, or `None`.
    pub(crate) fn tree(&self, py: Python<'_>, name: &str, is_created: bool) -> PyResult<Option<Tree>> {
        let tree = self.store.long(py, |store| {
            let tree = if is_created { Some(store.tree(name)?) } else { store.existing_tree(name)? };
            Ok(tree.map(|tree| self.slots.add(tree)))
        })?;
        Ok(tree.map(|tree| Tree { tree, slots: Arc::clone(&self.slots), is_in_memory: self.is_in_memory }))
    }

    pub(crate) fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let snapshot = self.store.long(py, |store| Ok(self.slots.add(store.snapshot()?)))?;
        Ok(Snapshot { snapshot, slots: Arc::clone(&self.slots) })
    }

    /// Returns a handle for a transaction.
    pub(crate) fn handle(&self) -> PyResult<LibraryStore> {
        self.store.with(|store| Ok(store.clone()))
    }
}

#[pymethods]
impl Store {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, arguments: Arguments) -> PyResult<PyClassInitializer<Store>> {
        let options = arguments.options()?;
        let store = py.detach(|| options.open(path)).map_err(errors::of_opening)?;
        let is_in_memory = FrontEnd::of(&store).stats_now().map_err(errors::of)?.journal.is_none();
        let slots = Arc::new(Slots::new());
        let tree = Tree { tree: slots.add((*store).clone()), slots: Arc::clone(&slots), is_in_memory };
        let store = Arc::new(Slot::new(store));
        Ok(PyClassInitializer::from(tree).add_subclass(Store { store, slots, is_in_memory }))
    }

    /// Closes the store and everything that was opened from it. Does nothing if it is closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| {
            let Some(store) = self.slots.take(&self.store) else { return Ok(()) };
            self.slots.close();
            store.close()
        });
        match closed {
            // In a child process there is nothing to close.
            Err(hikv::Error::Forked) => Ok(()),
            closed => closed.map_err(errors::of),
        }
    }

    #[getter]
    fn closed(&self) -> bool {
        self.store.is_closed()
    }

    /// The path, as the caller gave it.
    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        self.store.with(|store| Ok(store.path().to_owned()))
    }

    /// Makes every write that has returned as durable as the storage allows.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.store.long(py, LibraryStore::sync)
    }

    /// Reads a key of a tree without a wait for a disk. Returns the value, or `None`, in a tuple. Returns `None` alone
    /// if the value, or its absence, is not durable yet and so must not be reported.
    fn _get_now(
        &self,
        py: Python<'_>,
        tree: &Tree,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(Option<Py<PyBytes>>,)>> {
        let key = bytes::of(key)?;
        let read = self.store.with(|store| {
            let get = || tree.tree.unraised(|tree| tree.in_place().get(&key, |value| PyBytes::new(py, value).unbind()));
            let (found, ticket) = store.deferred(|_| get());
            let Some(found) = found.transpose()? else { return Ok(None) };
            Ok(Some(store.is_durable(ticket)?.then_some((found,))))
        })?;
        read.ok_or_else(errors::closed)
    }

    /// Returns true if writes of keys wait for no disk.
    #[getter]
    fn _is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// Copies the store to a new directory.
    fn backup(&self, py: Python<'_>, place: PathBuf) -> PyResult<()> {
        let copied = self.store.long(py, |store| Ok(store.backup(place, |_| {})))?;
        copied.map(drop).map_err(errors::of_backup)
    }

    /// Returns the store's figures as JSON.
    fn _stats(&self, py: Python<'_>) -> PyResult<String> {
        let stats = self.store.long(py, |store| {
            FrontEnd::of(store).stats_now()?;
            Ok(store.stats())
        })?;
        serde_json::to_string(&stats).map_err(|error| errors::raised("Error", error.to_string()))
    }

    /// Returns the names of all trees, in their order.
    fn trees(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.store.long(py, LibraryStore::trees)?.into_iter().map(|tree| tree.name).collect())
    }

    fn rename_tree(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.store.long(py, |store| store.rename_tree(old, new))
    }

    fn swap_trees(&self, py: Python<'_>, a: &str, b: &str) -> PyResult<()> {
        self.store.long(py, |store| store.swap_trees(a, b))
    }

    fn drop_tree(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.store.long(py, |store| store.drop_tree(name))
    }
}
