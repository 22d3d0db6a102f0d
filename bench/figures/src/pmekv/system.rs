//! The systems, each in its own directory.

use std::path::Path;

use hikv::{Durability, EngineKind, Options, Store};
use tempfile::TempDir;

use super::device::Nvm;
use super::host_tree::HostTree;
use super::servers;
use crate::Error;
use crate::memory::Counted;
use crate::work::{Shared, System};

/// A place for a new system.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) dir: &'a Path,
    /// The library's stores count their accesses.
    pub(super) is_counting: bool,
}

/// A system: its name, and the function that creates it.
pub(super) type Built = (&'static str, fn(Place<'_>) -> Result<Box<dyn System>, Error>);

/// The systems that this program was built with, by name: the paper's variants, the programs that it compares with, and
/// stores of the library.
pub(super) const BUILT: &[Built] = &[
    ("pmekv-nvm", |place| Ok(Box::new(Nvm::start(place)?))),
    ("pmekv-m", |_| Ok(Box::new(HostTree::in_memory()))),
    ("pmekv-fs", |place| Ok(Box::new(HostTree::in_a_file(place.dir)?))),
    ("redis", |place| Ok(Box::new(servers::redis(place.dir)?))),
    ("memcached", |place| Ok(Box::new(servers::memcached(place.dir)?))),
    #[cfg(feature = "rocksdb")]
    ("rocksdb", |place| Ok(Box::new(crate::rocksdb::RocksDb::create(place.dir)?))),
    ("pmekv", |place| Library::open(place, EngineKind::Pmekv)),
    ("hikv", |place| Library::open(place, EngineKind::HiKv)),
    ("rewo-hash", |place| Library::open(place, EngineKind::RewoHash)),
    ("ink", |place| Library::open(place, EngineKind::Ink)),
];

impl Place<'_> {
    /// Creates a store of the library whose acknowledged writes survive the process.
    pub(super) fn store(self, home: &TempDir, engine: EngineKind) -> Result<Store, Error> {
        let options = Options::new().engine(engine).durability(Durability::Process);
        let options = options.emulation(|memory| memory.count_persists(self.is_counting));
        Ok(options.open(home.path().join("store"))?)
    }
}

/// Returns the accesses of a store that counts them. It does not count reads.
pub(super) fn counted(store: &Store) -> Option<Counted> {
    let stats = store.stats();
    let (lines_written, fences) = stats.flushed_lines.zip(stats.fences)?;
    Some(Counted { block_reads: 0, lines_written, fences })
}

/// An engine in this process, used like in a program that is linked with the library.
struct Library {
    store: Store,
    _home: TempDir,
}

impl Library {
    fn open(place: Place<'_>, engine: EngineKind) -> Result<Box<dyn System>, Error> {
        let home = tempfile::tempdir_in(place.dir)?;
        Ok(Box::new(Library { store: place.store(&home, engine)?, _home: home }))
    }
}

impl Shared for Library {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put(key, value)?)
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.store.in_place().get(key, found)?.is_some())
    }

    fn counted(&self) -> Option<Counted> {
        counted(&self.store)
    }
}
