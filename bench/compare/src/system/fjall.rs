//! fjall: each put is a record of its journal, handed to the kernel; at `power` it is synced.

use std::ops::ControlFlow;

use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use bench::{Need, Subject};

use super::{Opening, copy_out};
use crate::cell::Level;
use crate::error::Error;

pub(super) struct Fjall {
    store: Database,
    items: Keyspace,
    level: Level,
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Fjall, Error> {
    let store = Database::builder(opening.directory.join("store")).cache_size(opening.cache_bytes()).open()?;
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
}

impl Subject for Fjall {
    fn name(&self) -> String {
        "fjall".into()
    }

    fn offers(&self, _need: Need) -> bool {
        true
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(copy_out(self.items.get(key)?, value))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.items.insert(key, value)?;
        self.persist()
    }

    /// fjall does not report whether the key existed. Workloads delete existing keys.
    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.items.remove(key)?;
        self.persist().map(|()| true)
    }

    fn scan(&self, from: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        for item in self.items.range(from..) {
            let (key, value) = item.into_inner()?;
            if each(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn close(self) -> Result<(), Error> {
        Ok(self.store.persist(PersistMode::SyncAll)?)
    }
}
