//! RocksDB with its log, as in the papers: when a put returns, it is in the log's file but not synced. Everything else
//! is the default, except filters of ten bits per key and a cache that holds everything.

use std::path::Path;

use ::rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options};
use tempfile::TempDir;

use crate::Error;
use crate::work::Shared;

const CACHE_BYTES: usize = 2 << 30;
const BLOOM_BITS_PER_KEY: f64 = 10.0;

pub(crate) struct RocksDb {
    store: DB,
    _home: TempDir,
}

impl RocksDb {
    pub(crate) fn create(dir: &Path) -> Result<RocksDb, Error> {
        let home = tempfile::tempdir_in(dir)?;
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
        table.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_compression_type(DBCompressionType::None);
        options.set_block_based_table_factory(&table);
        options.increase_parallelism(std::thread::available_parallelism()?.get() as i32);
        Ok(RocksDb { store: DB::open(&options, home.path().join("store"))?, _home: home })
    }
}

impl Shared for RocksDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put(key, value)?)
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let value = self.store.get_pinned(key)?;
        value.iter().for_each(|value| found(value));
        Ok(value.is_some())
    }
}
