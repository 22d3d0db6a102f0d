//! What is measured.

use hikv::{Error, Store};

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

impl Subject for Store {
    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Store::get_into(self, key, value)
    }

    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get(key)
    }

    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        Store::get_with(self, key, read).map(|found| found.is_some())
    }

    fn multi_get_with(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        Store::multi_get_with(self, keys, found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Store::put(self, key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        Store::delete(self, key)
    }

    fn persists(&self) -> Option<Persists> {
        let stats = self.stats();
        Some(Persists { flushed_line_count: stats.flushed_lines?, fence_count: stats.fences? })
    }
}
