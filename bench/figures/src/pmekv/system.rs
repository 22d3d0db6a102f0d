//! The systems, each in its own directory.

use std::path::Path;

use hikv::{Durability, EngineKind, Options, Store};
use tempfile::TempDir;

use super::device::Nvm;
use super::host_tree::HostTree;
use super::servers;
use crate::Error;
use crate::work::{Shared, System};

/// A system: its name, and the function that creates it in a directory.
pub(super) type Built = (&'static str, fn(&Path) -> Result<Box<dyn System>, Error>);

/// The systems that this program was built with, by name: the paper's variants, the programs that it compares with, and
/// stores of the library.
pub(super) const BUILT: &[Built] = &[
    ("pmekv-nvm", |dir| Ok(Box::new(Nvm::start(dir)?))),
    ("pmekv-m", |_| Ok(Box::new(HostTree::in_memory()))),
    ("pmekv-fs", |dir| Ok(Box::new(HostTree::in_a_file(dir)?))),
    ("redis", |dir| Ok(Box::new(servers::redis(dir)?))),
    ("memcached", |dir| Ok(Box::new(servers::memcached(dir)?))),
    #[cfg(feature = "rocksdb")]
    ("rocksdb", |dir| Ok(Box::new(crate::rocksdb::RocksDb::create(dir)?))),
    ("pmekv", |dir| Library::open(dir, EngineKind::Pmekv)),
    ("hikv", |dir| Library::open(dir, EngineKind::HiKv)),
    ("rewo-hash", |dir| Library::open(dir, EngineKind::RewoHash)),
    ("ink", |dir| Library::open(dir, EngineKind::Ink)),
];

/// Creates a store of the library whose acknowledged writes survive the process.
pub(super) fn store(home: &TempDir, engine: EngineKind) -> Result<Store, Error> {
    Ok(Options::new().engine(engine).durability(Durability::Process).open(home.path().join("store"))?)
}

/// An engine in this process, used like in a program that is linked with the library.
struct Library {
    store: Store,
    _home: TempDir,
}

impl Library {
    fn open(dir: &Path, engine: EngineKind) -> Result<Box<dyn System>, Error> {
        let home = tempfile::tempdir_in(dir)?;
        Ok(Box::new(Library { store: store(&home, engine)?, _home: home }))
    }
}

impl Shared for Library {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.store.put(key, value)?)
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.store.in_place().get(key, found)?.is_some())
    }
}
