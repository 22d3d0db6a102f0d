//! The systems, each in its own directory, where written data survives the process but not the machine.

use std::path::Path;
use std::time::Duration;

use engine::prelude::*;
use engine_ink::{Ink, Options};
use heap::Parameters;
use hikv::{Durability, EngineKind};
use pmem::{Latency, Medium};
use pmem_os::{HostDram, MapOptions, Mapped, ticks};
use tempfile::TempDir;

use crate::Error;
use crate::memory::{Counted, Memory, slowed};
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
    /// Slows down the memory of `ink` and `ink-in-place`, and counts its accesses. Without it, it is as fast as it is.
    pub(super) read_block_ns: Option<u64>,
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
        let options = Options { order: self.order, in_place };
        let Some(read_block_ns) = self.read_block_ns else {
            return Ok(Box::new(InkStore { store: format(mapped, options)?, counted: |_| None, _home: home }));
        };
        let latency = Latency {
            read_block_ticks: ticks(Duration::from_nanos(read_block_ns)),
            block_bytes: Latency::BLOCK_BYTES_PRINTED,
            ..Latency::default()
        };
        let store = format(slowed(mapped, latency)?, options)?;
        let counted = |store: &Ink<Memory, HostDram>| Some(Counted::of(store.tree().medium()));
        Ok(Box::new(InkStore { store, counted, _home: home }))
    }

    fn library(&self) -> Result<Box<dyn System>, Error> {
        let home = tempfile::tempdir_in(self.dir)?;
        let options = hikv::Options::new().engine(EngineKind::Ink).durability(Durability::Process);
        let store = options.region_bytes_max(LIBRARY_BYTES_MAX).open(home.path())?;
        Ok(Box::new(Library { store, _home: home }))
    }
}

fn format<M: Medium>(medium: M, options: Options) -> Result<Ink<M, HostDram>, Error> {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: LANES, region_bytes: 1 << 20 };
    Ok(Ink::format(medium, HostDram, &parameters, options)?)
}

struct InkStore<M: Medium> {
    store: Ink<M, HostDram>,
    counted: fn(&Ink<M, HostDram>) -> Option<Counted>,
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

impl<M: Medium> Shared for InkStore<M> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put(key, value)?)
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.store.get(key, &mut |_, _, value| found(value))?)
    }

    fn counted(&self) -> Option<Counted> {
        (self.counted)(&self.store)
    }
}
