//! RocksDB: each put a record of its log, synced in groups at `power`; the log files are used again, so that a sync changes
//! no metadata of the file system. The rest as its makers leave it, but for a cache that holds everything.

use std::path::Path;

use ::rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WriteOptions};

use super::{CACHE_BYTES, Opened};
use crate::cell::Level;
use crate::error::Error;

/// Log files that wait to be used again: one is written while the memory tables of the others are flushed.
const RECYCLED_LOG_COUNT: usize = 4;

/// What RocksDB's own tuning guide gives as good for point lookups.
const BLOOM_BITS_PER_KEY: f64 = 10.0;

struct RocksDb {
    store: DB,
    write: WriteOptions,
}

pub(super) fn open(directory: &Path, level: Level) -> Result<Box<dyn Opened>, Error> {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
    table.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_recycle_log_file_num(RECYCLED_LOG_COUNT);
    options.set_block_based_table_factory(&table);
    options.increase_parallelism(std::thread::available_parallelism().map_or(2, |count| count.get() as i32));
    let mut write = WriteOptions::default();
    write.set_sync(level == Level::Power);
    Ok(Box::new(RocksDb { store: DB::open(&options, directory.join("store"))?, write }))
}

impl Opened for RocksDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put_opt(key, value, &self.write)?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(found) = self.store.get_pinned(key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Ok(self.store.flush()?)
    }
}
