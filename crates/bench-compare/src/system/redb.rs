//! redb: each put a transaction; at `buffered` of the durability `None`.

use std::path::Path;

use ::redb::{Database, Durability, ReadableDatabase, TableDefinition};

use super::{CACHE_BYTES, Opened};
use crate::cell::Level;
use crate::error::Error;
use crate::shape::Shape;

const ITEMS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("items");
/// What is loaded at once: a transaction's dirty pages stay in memory.
const LOAD_RECORDS: u64 = 10_000;

struct Redb {
    store: Database,
    durability: Durability,
}

pub(super) fn open(directory: &Path, level: Level) -> Result<Box<dyn Opened>, Error> {
    let store = Database::builder().set_cache_size(CACHE_BYTES).create(directory.join("store.redb"))?;
    let durability = match level {
        Level::Power => Durability::Immediate,
        Level::Buffered => Durability::None,
    };
    let opened = Redb { store, durability };
    opened.write(Durability::Immediate, |_| Ok(()))?;
    Ok(Box::new(opened))
}

impl Redb {
    fn write(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut ::redb::Table<'_, &'static [u8], &'static [u8]>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut transaction = self.store.begin_write()?;
        transaction.set_durability(durability)?;
        change(&mut transaction.open_table(ITEMS)?)?;
        Ok(transaction.commit()?)
    }
}

impl Opened for Redb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(self.durability, |items| {
            items.insert(key, value)?;
            Ok(())
        })
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(found) = self.store.begin_read()?.open_table(ITEMS)?.get(key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found.value());
        Ok(true)
    }

    fn load(&self, shape: Shape) -> Result<(), Error> {
        let mut item = shape.item();
        (0..shape.records).step_by(LOAD_RECORDS as usize).try_for_each(|start| {
            self.write(Durability::Immediate, |items| {
                for record in start..shape.records.min(start + LOAD_RECORDS) {
                    item.renew(record);
                    items.insert(item.key.as_slice(), item.value.as_slice())?;
                }
                Ok(())
            })
        })
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        self.write(Durability::Immediate, |_| Ok(()))
    }
}
