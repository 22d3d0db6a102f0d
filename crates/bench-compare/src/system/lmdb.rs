//! LMDB: each put a transaction; at `buffered` without a sync.

use std::fs;
use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

use super::Opened;
use crate::cell::Level;
use crate::error::Error;
use crate::shape::Shape;

/// Room for pages that are half full, and those of transactions that readers still see.
const MAP_BYTES_PER_ITEM_BYTE: u64 = 4;
const MAP_BYTES_MIN: u64 = 1 << 30;
/// What is loaded at once: a transaction's dirty pages stay in memory.
const LOAD_RECORDS: u64 = 10_000;

struct Lmdb {
    environment: Env,
    items: Database<Bytes, Bytes>,
}

pub(super) fn open(directory: &Path, level: Level, shape: Shape) -> Result<Box<dyn Opened>, Error> {
    let directory = directory.join("store");
    fs::create_dir_all(&directory)?;
    let map_bytes = (shape.records * shape.item_bytes() * MAP_BYTES_PER_ITEM_BYTE).max(MAP_BYTES_MIN);
    let mut options = EnvOpenOptions::new();
    options.map_size(map_bytes.next_multiple_of(1 << 20) as usize);
    if level == Level::Buffered {
        // SAFETY: after a crash of the machine the store is not used again.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: the directory is this program's alone.
    let environment = unsafe { options.open(directory) }?;
    let mut making = environment.write_txn()?;
    let items = environment.create_database(&mut making, None)?;
    making.commit()?;
    Ok(Box::new(Lmdb { environment, items }))
}

impl Opened for Lmdb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut transaction = self.environment.write_txn()?;
        self.items.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let transaction = self.environment.read_txn()?;
        let Some(found) = self.items.get(&transaction, key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found);
        Ok(true)
    }

    fn load(&self, shape: Shape) -> Result<(), Error> {
        let mut item = shape.item();
        for start in (0..shape.records).step_by(LOAD_RECORDS as usize) {
            let mut transaction = self.environment.write_txn()?;
            for record in start..shape.records.min(start + LOAD_RECORDS) {
                item.renew(record);
                self.items.put(&mut transaction, &item.key, &item.value)?;
            }
            transaction.commit()?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        self.environment.force_sync()?;
        self.environment.prepare_for_closing().wait();
        Ok(())
    }
}
