//! A store of this library under measurement.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use hikv::{Order, Ordered, QueueStats, Store};

use crate::subject::{Error, Need, Persists, Subject};

/// A store of this library, with its ordered operations once a workload needs them.
pub struct Candidate {
    store: Store,
    ordered: OnceLock<Ordered>,
}

impl Candidate {
    /// Measures `store`.
    pub fn new(store: Store) -> Candidate {
        Candidate { store, ordered: OnceLock::new() }
    }

    /// Returns the store.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Waits until the ordered index, if one is kept, contains every earlier write, and helps to apply them.
    pub(crate) fn catch_up(&self) -> Result<(), Error> {
        Ok(self.ordered.get().map_or(Ok(()), |ordered| ordered.wait_until_ready(|_| {}))?)
    }
}

impl Subject for Candidate {
    fn name(&self) -> String {
        format!("engine {}", self.store.engine_kind().name())
    }

    fn offers(&self, need: Need) -> bool {
        match need {
            Need::Gets | Need::Deletes => true,
            Need::Transactions => self.store.features().batch,
            Need::Order | Need::Scans => self.store.features().order != Order::No,
        }
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(self.store.get_into(key, value)?)
    }

    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.store.get(key)?.map(Into::into))
    }

    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        Ok(self.store.in_place().get(key, read)?.is_some())
    }

    fn multi_get_with(&self, keys: &[&[u8]], found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        Ok(self.store.in_place().multi_get(keys, found)?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put(key, value)?)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.store.delete(key)?)
    }

    fn put_in_order(&self) -> Result<(), Error> {
        let ordered = self.store.ordered()?;
        ordered.wait_until_ready(|_| {})?;
        self.ordered.get_or_init(|| ordered);
        Ok(())
    }

    fn scan(&self, from: &[u8], each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        self.ordered.get().expect("the keys were put in order").scan(from, each)?;
        Ok(())
    }

    fn transact(
        &self,
        keys: [&[u8]; 2],
        values: Option<[&[u8]; 2]>,
        mut found: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        Ok(self.store.transact(|tx| {
            for (place, key) in keys.into_iter().enumerate() {
                tx.get(key)?.iter().for_each(|value| found(place, value));
            }
            let puts = values.iter().flat_map(|values| keys.iter().zip(values));
            { puts }.try_for_each(|(key, value)| tx.put(key, value))
        })?)
    }

    fn take_first(&self) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.store.transact(|tx| {
            let first = tx.first()?.map(|(key, _)| key);
            first.iter().try_for_each(|key| tx.delete(key))?;
            Ok::<_, hikv::Error>(first)
        })?)
    }

    fn queued_count(&self) -> Option<u64> {
        self.ordered.get().map(|_| self.store.stats().queued_count)
    }

    fn step(&self) -> Result<u64, hikv::Error> {
        self.store.background().step().map(|helped| helped.applied_count)
    }

    fn queue_stats(&self) -> QueueStats {
        self.store.background().queue_stats().unwrap_or_default()
    }

    fn persists(&self) -> Option<Persists> {
        let stats = self.store.stats();
        Some(Persists { flushed_line_count: stats.flushed_lines?, fence_count: stats.fences? })
    }

    fn close(self) -> Result<(), Error> {
        drop(self.ordered);
        Ok(self.store.close()?)
    }
}
