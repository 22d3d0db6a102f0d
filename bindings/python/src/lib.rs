//! The extension module of the Python package `hikv`: its classes without the mixins of `collections.abc`, which
//! `python/hikv/` adds.
//!
//! # The interpreter's lock
//! A call holds it if it is short and can wait for no Python code: reads of a key, and puts and deletes in memory. All
//! else detaches from the interpreter. No Python code runs inside a call of the library: a function of the caller runs
//! between two calls, and nothing but `bytes` is made while an item is read in place.
//!
//! `hikv.aio` reads a key on the thread of an event loop: the read is deferred, so it waits for no disk, and a result
//! that is not durable is read again on another thread.
//!
//! # Closing
//! Each handle of the library is in a [`Slot`](slot::Slot). Closing a store empties the slots of its trees, snapshots
//! and iterators first, so their later calls raise `hikv.Closed`. A transaction is for one thread, which may not be the
//! one that closes: it keeps the store open until it ends, and closing raises `hikv.Error`.

mod batch;
mod bytes;
mod errors;
mod open;
mod range;
mod slot;
mod snapshot;
mod store;
mod transaction;
mod tree;

use pyo3::prelude::*;

/// The module `hikv._hikv`.
#[pymodule(gil_used = false)]
mod _hikv {
    #[pymodule_export]
    use super::batch::Batch;
    #[pymodule_export]
    use super::range::RangeIter;
    #[pymodule_export]
    use super::snapshot::Snapshot;
    #[pymodule_export]
    use super::store::Store;
    #[pymodule_export]
    use super::transaction::Transaction;
    #[pymodule_export]
    use super::tree::Tree;
}
