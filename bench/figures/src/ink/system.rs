//! The systems, each in its own directory, where written data survives the process but not the machine.

use std::path::Path;

use engine::prelude::*;
use engine_ink::{Ink, Options};
use heap::Parameters;
use hikv::{Durability, EngineKind};
use pmem_os::{HostDram, MapOptions, Mapped};
use tempfile::TempDir;

use crate::Error;
use crate::work::{Shared, System};

/// Concurrent writers, as in a store of the library.
const LANES: u32 = 16;

/// The maximum size of the library's store.
const LIBRARY_BYTES_MAX: u64 = 4 << 30;

/// The parameters of a system.
pub(super) struct Made<'a> {
    pub(super) dir: &'a Path,
    /// The order of InK's tree.
    pub(super) order: usize,
}

type Make = fn(&Made<'_>) -> Result<Box<dyn System>, Error>;

/// The systems that this program was built with, by name. `ink-in-place` overwrites values of the same length, as in
/// the paper. `ink-library` is the engine behind the library, with durability against the end of the process, as the
/// other systems have; it maps the file also on a disk without DAX.
pub(super) const BUILT: &[(&str, Make)] = &[
    ("ink", |made| made.ink(false)),
    ("ink-in-place", |made| made.ink(true)),
    ("ink-library", |made| made.library()),
    #[cfg(feature = "rocksdb")]
    ("rocksdb", |made| Ok(Box::new(crate::rocksdb::RocksDb::create(made.dir)?))),
];

impl Made<'_> {
    fn ink(&self, in_place: bool) -> Result<Box<dyn System>, Error> {
        let home = tempfile::tempdir_in(self.dir)?;
        let mapped = Mapped::create(&home.path().join("region"), 1 << 20, MapOptions::default())?;
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: LANES, region_bytes: 1 << 20 };
        let options = Options { order: self.order, in_place };
        let store = Ink::format(mapped, HostDram, &parameters, options)?;
        Ok(Box::new(InkStore { store, _home: home }))
    }

    fn library(&self) -> Result<Box<dyn System>, Error> {
        let home = tempfile::tempdir_in(self.dir)?;
        let options = hikv::Options::new().engine(EngineKind::Ink).durability(Durability::Process);
        let store = options.region_bytes_max(LIBRARY_BYTES_MAX).open(home.path())?;
        Ok(Box::new(Library { store, _home: home }))
    }
}

struct InkStore {
    store: Ink<Mapped, HostDram>,
    _home: TempDir,
}

struct Library {
    store: hikv::Store,
    _home: TempDir,
}

impl Shared for Library {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put(key, value)?)
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.store.in_place().get(key, found)?.is_some())
    }
}

impl Shared for InkStore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put(key, value)?)
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.store.get(key, &mut |_, _, value| found(value))?)
    }
}
