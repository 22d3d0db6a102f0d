//! LMDB: each put is a transaction; without a sync at `buffered`.

use std::fs;
use std::ops::{Bound, ControlFlow};

use bench::{Need, Subject};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn};

use super::{Opening, copy_out};
use crate::cell::Level;
use crate::error::Error;

/// Space for half-full pages, for pages of transactions that readers still see, and for as many records again.
const MAP_BYTES_PER_ITEM_BYTE: u64 = 12;
const MAP_BYTES_MIN: u64 = 1 << 30;

pub(super) struct Lmdb {
    environment: Env,
    items: Database<Bytes, Bytes>,
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Lmdb, Error> {
    let directory = opening.directory.join("store");
    fs::create_dir_all(&directory)?;
    let item_bytes = opening.records.count * opening.records.item_bytes();
    let map_bytes = (item_bytes * MAP_BYTES_PER_ITEM_BYTE).max(MAP_BYTES_MIN);
    let mut options = EnvOpenOptions::new();
    options.map_size(map_bytes.next_multiple_of(1 << 20) as usize);
    let mut flags = EnvFlags::empty();
    flags.set(EnvFlags::NO_SYNC, opening.level == Level::Buffered);
    // Reading ahead fills little memory with items that no operation needs.
    flags.set(EnvFlags::NO_READ_AHEAD, opening.memory.is_some());
    // SAFETY: after a crash of the machine the store is not used again.
    unsafe { options.flags(flags) };
    // SAFETY: only this program uses the directory.
    let environment = unsafe { options.open(directory) }?;
    let mut making = environment.write_txn()?;
    let items = environment.create_database(&mut making, None)?;
    making.commit()?;
    Ok(Lmdb { environment, items })
}

impl Lmdb {
    fn read(
        &self,
        transaction: &RoTxn<'_>,
        keys: [&[u8]; 2],
        mut found: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        for (place, key) in keys.into_iter().enumerate() {
            self.items.get(transaction, key)?.into_iter().for_each(|value| found(place, value));
        }
        Ok(())
    }
}

impl Subject for Lmdb {
    fn name(&self) -> String {
        "lmdb".into()
    }

    fn offers(&self, _need: Need) -> bool {
        true
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let transaction = self.environment.read_txn()?;
        Ok(copy_out(self.items.get(&transaction, key)?, value))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.load(&[(key, value)])
    }

    /// Puts all items in one transaction.
    fn load(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let mut transaction = self.environment.write_txn()?;
        items.iter().try_for_each(|(key, value)| self.items.put(&mut transaction, key, value))?;
        Ok(transaction.commit()?)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let mut transaction = self.environment.write_txn()?;
        let was_there = self.items.delete(&mut transaction, key)?;
        transaction.commit()?;
        Ok(was_there)
    }

    fn scan(&self, from: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let transaction = self.environment.read_txn()?;
        for item in self.items.range(&transaction, &(Bound::Included(from), Bound::Unbounded))? {
            let (key, value) = item?;
            if each(key, value).is_break() {
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
        let Some(values) = values else { return self.read(&*self.environment.read_txn()?, keys, found) };
        let mut transaction = self.environment.write_txn()?;
        self.read(&transaction, keys, &mut found)?;
        keys.iter().zip(values).try_for_each(|(key, value)| self.items.put(&mut transaction, key, value))?;
        Ok(transaction.commit()?)
    }

    fn take_first(&self) -> Result<Option<Vec<u8>>, Error> {
        let mut transaction = self.environment.write_txn()?;
        let first = self.items.first(&transaction)?.map(|(key, _)| key.to_vec());
        let Some(key) = first else { return Ok(None) };
        self.items.delete(&mut transaction, &key)?;
        transaction.commit()?;
        Ok(Some(key))
    }

    fn close(self) -> Result<(), Error> {
        self.environment.force_sync()?;
        self.environment.prepare_for_closing().wait();
        Ok(())
    }
}
