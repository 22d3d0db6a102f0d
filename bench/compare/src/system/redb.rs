//! redb: each put is a transaction; at `buffered` with durability `None`.

use std::ops::ControlFlow;

use ::redb::{Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition};
use bench::{Need, Subject};

use super::{Opening, copy_out};
use crate::cell::Level;
use crate::error::Error;

const ITEMS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("items");

pub(super) struct Redb {
    store: Database,
    durability: Durability,
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Redb, Error> {
    let mut builder = Database::builder();
    builder.set_cache_size(opening.cache_bytes() as usize);
    let store = builder.create(opening.directory.join("store.redb"))?;
    let durability = match opening.level {
        Level::Power => Durability::Immediate,
        Level::Buffered => Durability::None,
    };
    let opened = Redb { store, durability };
    opened.write(Durability::Immediate, |_| Ok(()))?;
    Ok(opened)
}

impl Redb {
    fn write<R>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut Table<'_, &'static [u8], &'static [u8]>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut transaction = self.store.begin_write()?;
        transaction.set_durability(durability)?;
        let done = change(&mut transaction.open_table(ITEMS)?)?;
        transaction.commit()?;
        Ok(done)
    }

    fn insert(&self, durability: Durability, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.write(durability, |table| {
            items.iter().try_for_each(|(key, value)| table.insert(*key, *value).map(drop))?;
            Ok(())
        })
    }
}

impl Subject for Redb {
    fn name(&self) -> String {
        "redb".into()
    }

    fn offers(&self, _need: Need) -> bool {
        true
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let found = self.store.begin_read()?.open_table(ITEMS)?.get(key)?;
        Ok(copy_out(found.as_ref().map(|found| found.value()), value))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.insert(self.durability, &[(key, value)])
    }

    /// Puts all items in one transaction, durably: data that is not durable yet stays in memory.
    fn load(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.insert(Durability::Immediate, items)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.write(self.durability, |table| Ok(table.remove(key)?.is_some()))
    }

    fn scan(&self, from: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        for item in self.store.begin_read()?.open_table(ITEMS)?.range(from..)? {
            let (key, value) = item?;
            if each(key.value(), value.value()).is_break() {
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
        fn read(
            table: &impl ReadableTable<&'static [u8], &'static [u8]>,
            keys: [&[u8]; 2],
            found: &mut impl FnMut(usize, &[u8]),
        ) -> Result<(), Error> {
            for (place, key) in keys.into_iter().enumerate() {
                table.get(key)?.iter().for_each(|value| found(place, value.value()));
            }
            Ok(())
        }
        let Some(values) = values else {
            return read(&self.store.begin_read()?.open_table(ITEMS)?, keys, &mut found);
        };
        self.write(self.durability, |table| {
            read(table, keys, &mut found)?;
            keys.iter().zip(values).try_for_each(|(key, value)| Ok(table.insert(*key, value).map(drop)?))
        })
    }

    fn take_first(&self) -> Result<Option<Vec<u8>>, Error> {
        self.write(self.durability, |table| Ok(table.pop_first()?.map(|(key, _)| key.value().to_vec())))
    }

    fn close(self) -> Result<(), Error> {
        self.write(Durability::Immediate, |_| Ok(()))
    }
}
