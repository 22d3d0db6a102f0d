//! fjall: each put is a record of its journal, handed to the kernel; at `power` it is synced.

use std::ops::ControlFlow;

use ::fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx, PersistMode, Readable,
};
use bench::{Need, Subject};

use super::{Opening, copy_out};
use crate::cell::Level;
use crate::error::Error;

pub(super) struct Fjall {
    store: OptimisticTxDatabase,
    items: OptimisticTxKeyspace,
    level: Level,
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Fjall, Error> {
    let directory = opening.directory.join("store");
    let store = OptimisticTxDatabase::builder(directory).cache_size(opening.cache_bytes()).open()?;
    let items = store.keyspace("items", KeyspaceCreateOptions::default)?;
    Ok(Fjall { store, items, level: opening.level })
}

impl Fjall {
    /// Makes earlier writes as durable as the level requires.
    fn persist(&self) -> Result<(), Error> {
        match self.level {
            Level::Power => Ok(self.store.persist(PersistMode::SyncData)?),
            Level::Buffered => Ok(()),
        }
    }

    /// Runs a transaction until it meets no conflict.
    fn write<R>(&self, mut body: impl FnMut(&mut OptimisticWriteTx) -> Result<R, Error>) -> Result<R, Error> {
        loop {
            let mut transaction = self.store.write_tx()?;
            let done = body(&mut transaction)?;
            if transaction.commit()?.is_ok() {
                self.persist()?;
                return Ok(done);
            }
        }
    }

    fn read(
        &self,
        transaction: &impl Readable,
        keys: [&[u8]; 2],
        found: &mut impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        for (place, key) in keys.into_iter().enumerate() {
            transaction.get(&self.items, key)?.iter().for_each(|value| found(place, value));
        }
        Ok(())
    }
}

impl Subject for Fjall {
    fn name(&self) -> String {
        "fjall".into()
    }

    fn offers(&self, _need: Need) -> bool {
        true
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(copy_out(self.items.inner().get(key)?, value))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.items.inner().insert(key, value)?;
        self.persist()
    }

    /// fjall does not report whether the key existed. Workloads delete existing keys.
    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.items.inner().remove(key)?;
        self.persist().map(|()| true)
    }

    fn scan(&self, from: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        for item in self.items.inner().range(from..) {
            let (key, value) = item.into_inner()?;
            if each(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn transact(
        &self,
        keys: [&[u8]; 2],
        values: Option<[&[u8]; 2]>,
        mut found: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        let Some(values) = values else { return self.read(&self.store.read_tx(), keys, &mut found) };
        self.write(|transaction| {
            self.read(transaction, keys, &mut found)?;
            keys.iter().zip(values).for_each(|(key, value)| transaction.insert(&self.items, *key, value));
            Ok(())
        })
    }

    fn take_first(&self) -> Result<Option<Vec<u8>>, Error> {
        self.write(|transaction| {
            let Some(first) = transaction.first_key_value(&self.items) else { return Ok(None) };
            let (key, _) = first.into_inner()?;
            transaction.remove(&self.items, key.clone());
            Ok(Some(key.to_vec()))
        })
    }

    fn close(self) -> Result<(), Error> {
        Ok(self.store.persist(PersistMode::SyncAll)?)
    }
}
