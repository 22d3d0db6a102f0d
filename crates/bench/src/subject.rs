//! What is measured.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use hikv::{Error, Ordered, Store, Upkeep};

/// A store as the workloads use it. Values reach the caller through a callback or a buffer.
pub trait Subject: Sync {
    /// Replaces `value` by the value of `key`; false if there is none.
    ///
    /// # Errors
    /// As the store says.
    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error>;

    /// The value of `key` in memory of its own.
    ///
    /// # Errors
    /// As the store says.
    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Calls `read` with the value of `key` in place; false if there is none.
    ///
    /// # Errors
    /// As the store says.
    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error>;

    /// Calls `found` for each of `keys` with its place among them and its value in place.
    ///
    /// # Errors
    /// As the store says.
    fn multi_get_with(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error>;

    /// Inserts or updates.
    ///
    /// # Errors
    /// As the store says.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Whether `key` was there.
    ///
    /// # Errors
    /// As the store says.
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;

    /// Has the keys put in order, unless they are, and waits for that. From now on the order is kept.
    ///
    /// # Errors
    /// As the store says.
    fn put_in_order(&self) -> Result<(), Error>;

    /// Shows the items from `from` on to `each`, in order, until that says to stop. The keys were put in order before.
    ///
    /// # Errors
    /// As the store says.
    fn scan(&self, from: &[u8], each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error>;

    /// Changes that the order has not caught up with, where one is kept.
    fn queued_count(&self) -> Option<u64>;

    /// Applies some of them, or does other work of the background's, for a calling thread that has the backend's role; how many changes.
    ///
    /// # Errors
    /// As the store says.
    fn help(&self) -> Result<u64, Error> {
        Ok(0)
    }

    /// How the order keeps up.
    fn upkeep(&self) -> Upkeep {
        Upkeep::default()
    }

    /// What the store has asked of its medium so far, where that is counted.
    fn persists(&self) -> Option<Persists>;
}

/// Flushes and fences since the store was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Persists {
    /// Lines whose write-back was started.
    pub flushed_line_count: u64,
    /// Fences issued.
    pub fence_count: u64,
}

/// A store of this library, with its ordered operations once a workload wants them.
pub struct Candidate {
    store: Store,
    ordered: OnceLock<Ordered>,
}

impl Candidate {
    /// Measures `store`.
    pub fn new(store: Store) -> Candidate {
        Candidate { store, ordered: OnceLock::new() }
    }

    /// The store.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Waits until the order has all that was written before, where one is kept, and helps it.
    pub(crate) fn catch_up(&self) -> Result<(), Error> {
        self.ordered.get().map_or(Ok(()), |ordered| ordered.wait_until_ready(|_| {}))
    }
}

impl Subject for Candidate {
    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        self.store.get_into(key, value)
    }

    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.store.get(key)
    }

    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        self.store.get_with(key, read).map(|found| found.is_some())
    }

    fn multi_get_with(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        self.store.multi_get_with(keys, found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.store.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.store.delete(key)
    }

    fn put_in_order(&self) -> Result<(), Error> {
        let ordered = self.store.ordered()?;
        ordered.wait_until_ready(|_| {})?;
        self.ordered.get_or_init(|| ordered);
        Ok(())
    }

    fn scan(&self, from: &[u8], each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        self.ordered.get().expect("the keys were put in order").scan(from, each)
    }

    fn queued_count(&self) -> Option<u64> {
        self.ordered.get().map(|_| self.store.stats().queued_count)
    }

    fn help(&self) -> Result<u64, Error> {
        self.store.help().map(|helped| helped.applied_count)
    }

    fn upkeep(&self) -> Upkeep {
        self.store.upkeep().unwrap_or_default()
    }

    fn persists(&self) -> Option<Persists> {
        let stats = self.store.stats();
        Some(Persists { flushed_line_count: stats.flushed_lines?, fence_count: stats.fences? })
    }
}
