//! fjall: each put a record of its journal, which is in the kernel's hands then; at `power` it is synced.

use std::path::Path;

use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{CACHE_BYTES, Opened};
use crate::cell::Level;
use crate::error::Error;

struct Fjall {
    store: Database,
    items: Keyspace,
    level: Level,
}

pub(super) fn open(directory: &Path, level: Level) -> Result<Box<dyn Opened>, Error> {
    let store = Database::builder(directory.join("store")).cache_size(CACHE_BYTES as u64).open()?;
    let items = store.keyspace("items", KeyspaceCreateOptions::default)?;
    Ok(Box::new(Fjall { store, items, level }))
}

impl Opened for Fjall {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.items.insert(key, value)?;
        match self.level {
            Level::Power => Ok(self.store.persist(PersistMode::SyncData)?),
            Level::Buffered => Ok(()),
        }
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(found) = self.items.get(key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Ok(self.store.persist(PersistMode::SyncAll)?)
    }
}
