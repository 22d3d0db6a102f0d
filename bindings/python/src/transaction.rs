//! Transactions.
//!
//! The library's transaction borrows its store, and an object of Python cannot. So the object owns a clone of the store
//! in a `Box`, and a transaction whose lifetime is declared `'static`. This is sound because the box is dropped last:
//! fields are dropped in their order, and no part of the transaction leaves the object. Its ranges are read at once
//! into the parts that a caller asks for.
//!
//! The library runs a body again within its own call, and may shut out other writers. Here that loop is in
//! Python (`Store.transact`), so a body runs outside of all calls of the library, and no thread waits for the
//! interpreter while it shuts out others.

use std::cell::RefCell;

use hikv::{Store, Transaction as LibraryTransaction, TxTree};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::range::bounds;
use crate::tree::{Tree, ttl_of};
use crate::{bytes, errors};

/// A transaction, which one thread uses.
#[pyclass(subclass, unsendable, module = "hikv._hikv")]
pub struct Transaction {
    live: RefCell<Option<Live>>,
}

/// The transaction, before the store that it borrows.
struct Live {
    tx: LibraryTransaction<'static>,
    store: Box<Store>,
}

impl Transaction {
    fn begin(store: Store) -> PyResult<Transaction> {
        let store = Box::new(store);
        // SAFETY: the box does not move its content, and is dropped after the transaction.
        let tx = unsafe { &*std::ptr::from_ref(&*store) }.begin().map_err(errors::of)?;
        Ok(Transaction { live: RefCell::new(Some(Live { tx, store })) })
    }

    fn with<R>(&self, tree: Option<&Tree>, operate: impl FnOnce(&TxTree<'_>) -> Result<R, hikv::Error>) -> PyResult<R> {
        let live = self.live.borrow();
        let Some(Live { tx, .. }) = &*live else { return Err(errors::closed()) };
        match tree {
            None => operate(tx).map_err(errors::of),
            Some(tree) => tree.tree.with(|tree| operate(&tx.tree(tree)?)),
        }
    }
}

/// Runs `operate` on this thread without the interpreter's lock, also if its parts are for one thread.
///
/// # Safety
/// `operate` does nothing that needs the interpreter's lock.
unsafe fn detached<R: Send>(py: Python<'_>, operate: impl FnOnce() -> R) -> R {
    struct Here<F>(F);

    impl<R, F: FnOnce() -> R> Here<F> {
        fn run(self) -> R {
            (self.0)()
        }
    }

    // SAFETY: `detach` runs its closure on the calling thread.
    unsafe impl<F> Send for Here<F> {}

    let operate = Here(operate);
    py.detach(|| operate.run())
}

#[pymethods]
impl Transaction {
    #[new]
    fn new(store: &crate::store::Store) -> PyResult<Transaction> {
        Transaction::begin(store.handle()?)
    }

    #[pyo3(signature = (key, tree = None))]
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>, tree: Option<&Tree>) -> PyResult<Option<Py<PyBytes>>> {
        let key = bytes::of(key)?;
        Ok(self.with(tree, |keys| keys.get(key))?.map(|value| PyBytes::new(py, &value).unbind()))
    }

    #[pyo3(signature = (key, value, tree = None, *, ttl = None))]
    fn put(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        tree: Option<&Tree>,
        ttl: Option<f64>,
    ) -> PyResult<()> {
        let (key, value) = (bytes::of(key)?, bytes::of(value)?);
        match ttl.map(ttl_of).transpose()? {
            None => self.with(tree, |keys| keys.put(key, value)),
            Some(ttl) => self.with(tree, |keys| keys.put_ttl(key, value, ttl)),
        }
    }

    #[pyo3(signature = (key, tree = None))]
    fn delete(&self, key: &Bound<'_, PyAny>, tree: Option<&Tree>) -> PyResult<()> {
        let key = bytes::of(key)?;
        self.with(tree, |keys| keys.delete(key))
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
        self.get(py, key, None)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.__getitem__(py, key)?;
        self.delete(key, None)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes::of(key)?;
        self.with(None, |keys| keys.contains(key))
    }

    /// Returns the items of a range as a list; at most `limit` of them, and only those count as read.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, reverse = false, limit = None, tree = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn items<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'py, PyAny>>,
        stop: Option<&Bound<'py, PyAny>>,
        prefix: Option<&Bound<'py, PyAny>>,
        reverse: bool,
        limit: Option<usize>,
        tree: Option<&Tree>,
    ) -> PyResult<Bound<'py, PyList>> {
        let bounds = bounds(start, stop, prefix)?;
        let read = |keys: &TxTree<'_>| {
            let range = keys.range(bounds)?;
            let limit = limit.unwrap_or(usize::MAX);
            if reverse { range.rev().take(limit).collect() } else { range.take(limit).collect::<Result<Vec<_>, _>>() }
        };
        // SAFETY: the library knows nothing of Python, and an exception attaches to the interpreter itself.
        let items = unsafe { detached(py, || self.with(tree, read)) }?;
        PyList::new(py, items.iter().map(|(key, value)| (PyBytes::new(py, key), PyBytes::new(py, value))))
    }

    /// Raises `hikv.Conflict` if the transaction cannot commit because a key that it has read has changed.
    fn check(&self) -> PyResult<()> {
        self.with(None, |keys| keys.check())
    }

    /// Writes everything as one step.
    fn _commit(&self, py: Python<'_>) -> PyResult<()> {
        let Some(Live { tx, store }) = self.live.borrow_mut().take() else { return Err(errors::closed()) };
        let commit = || {
            let committed = tx.commit();
            drop(store);
            committed
        };
        // SAFETY: the library knows nothing of Python.
        unsafe { detached(py, commit) }.map_err(errors::of)
    }

    /// Ends the transaction without a change.
    fn _abort(&self) {
        drop(self.live.borrow_mut().take());
    }
}
