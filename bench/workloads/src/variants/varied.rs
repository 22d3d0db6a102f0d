//! A store with some operations replaced.

use std::ops::ControlFlow;

use hikv::QueueStats;

use crate::candidate::Candidate;
use crate::subject::{Error, Need, Persists, Subject};

/// A write's effect on its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write<'a> {
    /// The key gets this value.
    Put(&'a [u8]),
    /// The key is removed.
    Delete,
}

/// The replaced operations; by default none.
pub trait Way: Sync {
    /// Returns the name, as on the command line.
    fn name(&self) -> &'static str;

    /// See [`Subject::offers`].
    fn offers(&self, store: &Candidate, need: Need) -> bool {
        store.offers(need)
    }

    /// Calls `write`, which does `what` to `key`, with additional work before or after it.
    ///
    /// # Errors
    /// Any error of the store.
    fn around_write<R>(
        &self,
        store: &Candidate,
        key: &[u8],
        what: Write<'_>,
        write: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error>;

    /// See [`Subject::put_in_order`].
    ///
    /// # Errors
    /// Any error of the store.
    fn put_in_order(&self, store: &Candidate) -> Result<(), Error> {
        store.put_in_order()
    }

    /// See [`Subject::scan`].
    ///
    /// # Errors
    /// Any error of the store.
    fn scan(
        &self,
        store: &Candidate,
        from: &[u8],
        each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        store.scan(from, each)
    }

    /// See [`Subject::queued_count`].
    fn queued_count(&self, store: &Candidate) -> Option<u64> {
        store.queued_count()
    }

    /// See [`Subject::step`].
    ///
    /// # Errors
    /// Any error of the store.
    fn step(&self, store: &Candidate) -> Result<u64, hikv::Error> {
        store.step()
    }

    /// See [`Subject::queue_stats`].
    fn queue_stats(&self, store: &Candidate) -> QueueStats {
        store.queue_stats()
    }

    /// Returns the flushes and fences of media other than the store's.
    fn persists(&self) -> Persists {
        Persists::default()
    }
}

/// A store with some operations replaced.
pub struct Varied<W> {
    store: Candidate,
    way: W,
}

impl<W: Way> Varied<W> {
    /// Replaces operations of `store`.
    pub fn new(store: Candidate, way: W) -> Varied<W> {
        Varied { store, way }
    }

    /// Returns the replacement.
    pub fn way(&self) -> &W {
        &self.way
    }
}

impl<W: Way> Subject for Varied<W> {
    fn name(&self) -> String {
        format!("variant {}", self.way.name())
    }

    fn offers(&self, need: Need) -> bool {
        need != Need::Transactions && self.way.offers(&self.store, need)
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        self.store.get_into(key, value)
    }

    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.store.get_owned(key)
    }

    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        self.store.get_with(key, read)
    }

    fn multi_get_with(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        self.store.multi_get_with(keys, found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.way.around_write(&self.store, key, Write::Put(value), || self.store.put(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.way.around_write(&self.store, key, Write::Delete, || self.store.delete(key))
    }

    fn put_in_order(&self) -> Result<(), Error> {
        self.way.put_in_order(&self.store)
    }

    fn scan(&self, from: &[u8], each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        self.way.scan(&self.store, from, each)
    }

    fn queued_count(&self) -> Option<u64> {
        self.way.queued_count(&self.store)
    }

    fn step(&self) -> Result<u64, hikv::Error> {
        self.way.step(&self.store)
    }

    fn queue_stats(&self) -> QueueStats {
        self.way.queue_stats(&self.store)
    }

    fn persists(&self) -> Option<Persists> {
        let (store, way) = (self.store.persists()?, self.way.persists());
        Some(Persists {
            flushed_line_count: store.flushed_line_count + way.flushed_line_count,
            fence_count: store.fence_count + way.fence_count,
        })
    }
}
