//! RocksDB: each put is a record of its log, synced in groups at `power`. Log files are recycled, so that a sync
//! changes no metadata of the file system. Everything else is the default, except the size of the cache.

use std::ops::ControlFlow;

use ::rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WriteOptions};
use bench::{Need, Subject};

use super::{Opening, copy_out};
use crate::cell::Level;
use crate::error::Error;

/// Log files waiting for reuse: one is written while the memory tables of the others are flushed.
const RECYCLED_LOG_COUNT: usize = 4;

/// The value that RocksDB's tuning guide recommends for point lookups.
const BLOOM_BITS_PER_KEY: f64 = 10.0;

pub(super) struct RocksDb {
    store: DB,
    write: WriteOptions,
}

pub(super) fn open(opening: &Opening<'_>) -> Result<RocksDb, Error> {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(opening.cache_bytes() as usize));
    table.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_recycle_log_file_num(RECYCLED_LOG_COUNT);
    options.set_block_based_table_factory(&table);
    options.increase_parallelism(std::thread::available_parallelism().map_or(2, |count| count.get() as i32));
    let mut write = WriteOptions::default();
    write.set_sync(opening.level == Level::Power);
    Ok(RocksDb { store: DB::open(&options, opening.directory.join("store"))?, write })
}

impl Subject for RocksDb {
    fn name(&self) -> String {
        "rocksdb".into()
    }

    /// A database of this kind has no transactions.
    fn offers(&self, need: Need) -> bool {
        need != Need::Transactions
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(copy_out(self.store.get_pinned(key)?, value))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put_opt(key, value, &self.write)?)
    }

    /// RocksDB does not report whether the key existed. Workloads delete existing keys.
    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.store.delete_opt(key, &self.write)?;
        Ok(true)
    }

    fn scan(&self, from: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let mut items = self.store.raw_iterator();
        items.seek(from);
        while let Some((key, value)) = items.item() {
            if each(key, value).is_break() {
                return Ok(());
            }
            items.next();
        }
        Ok(items.status()?)
    }

    fn close(self) -> Result<(), Error> {
        Ok(self.store.flush()?)
    }
}
