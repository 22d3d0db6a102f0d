//! The systems, and how each is opened at a durability level. An open system is measured as a `bench::Subject`.

mod disk;
mod fjall;
mod hikv;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use ::hikv::EngineKind;
#[cfg(feature = "rocksdb")]
use bench::Need;
use bench::{Records, Subject};

use crate::cell::{Cell, Level};
use crate::error::Error;

/// Block cache of the systems that have one, without a limit of memory: more than any of them can use for a million
/// items, so that no get waits for the disk.
const CACHE_BYTES: u64 = 2 << 30;

/// A limit of a store's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Memory {
    pub(crate) bytes: u64,
    /// The part of it that is hikv's read cache.
    pub(crate) read_cache_bytes: u64,
}

/// A system's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum System {
    /// An engine of hikv, journaled on the disk.
    Ours(EngineKind),
    /// An engine of hikv in tmpfs: memory that survives the process but not the machine.
    OursTmpfs(EngineKind),
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    Lmdb,
    /// LMDB's file in tmpfs.
    LmdbTmpfs,
    Redb,
    Fjall,
    /// The bare disk, no store: a write to a preallocated file and, at `power`, a sync.
    Disk,
}

/// The parameters for opening a system's store. When a put returns, it is as durable as the level requires.
pub(crate) struct Opening<'a> {
    /// The store's directory, which may not exist yet.
    pub(crate) directory: &'a Path,
    pub(crate) level: Level,
    /// The records that the store holds or will hold.
    pub(crate) records: Records,
    /// Requests that keys are kept in order, for systems with a choice.
    pub(crate) is_ordered: bool,
    pub(crate) memory: Option<Memory>,
}

impl Opening<'_> {
    /// Returns the block cache of a system that has one: half of the memory, because tables in memory and the page
    /// cache need the other half.
    fn cache_bytes(&self) -> u64 {
        self.memory.map_or(CACHE_BYTES, |memory| memory.bytes / 2)
    }
}

/// An action on any system.
pub(crate) trait Measure {
    /// The action's result.
    type Found;

    /// Runs the action.
    fn measure(self, subject: &impl Subject) -> Result<Self::Found, Error>;
}

impl System {
    /// The systems compared by default, in the order of their turns.
    pub(crate) const USUAL: &[System] = &[
        System::Ours(EngineKind::HiKv),
        System::OursTmpfs(EngineKind::HiKv),
        #[cfg(feature = "rocksdb")]
        System::Rocksdb,
        System::Lmdb,
        System::Redb,
        System::Fjall,
        System::Disk,
    ];

    /// Returns all systems that can be selected.
    pub(crate) fn all() -> impl Iterator<Item = System> {
        let engines = [EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];
        let ours = engines.into_iter().flat_map(|engine| [System::Ours(engine), System::OursTmpfs(engine)]);
        System::USUAL.iter().copied().chain([System::LmdbTmpfs]).chain(ours)
    }

    /// Returns true if the system's store is in tmpfs.
    pub(crate) fn is_in_memory(self) -> bool {
        matches!(self, System::OursTmpfs(_) | System::LmdbTmpfs)
    }

    /// Opens or creates the system's store, measures it, and closes it.
    pub(crate) fn open<M: Measure>(self, opening: &Opening<'_>, measure: M) -> Result<M::Found, Error> {
        match self {
            System::Ours(engine) => closed(hikv::open(opening, engine, Some(opening.level))?, measure),
            System::OursTmpfs(engine) => closed(hikv::open(opening, engine, None)?, measure),
            #[cfg(feature = "rocksdb")]
            System::Rocksdb => closed(rocksdb::open(opening)?, measure),
            System::Lmdb | System::LmdbTmpfs => closed(lmdb::open(opening)?, measure),
            System::Redb => closed(redb::open(opening)?, measure),
            System::Fjall => closed(fjall::open(opening)?, measure),
            System::Disk => closed(disk::open(opening)?, measure),
        }
    }

    /// Returns true if the system can run the cell.
    pub(crate) fn has(self, cell: Cell) -> bool {
        let lacks_order = matches!(self, System::Ours(EngineKind::RewoHash) | System::OursTmpfs(EngineKind::RewoHash));
        match self {
            System::Disk => cell.workload.needs().is_empty(),
            #[cfg(feature = "rocksdb")]
            System::Rocksdb if cell.workload.needs().contains(&Need::Transactions) => false,
            _ if lacks_order && cell.workload.is_ordered() => false,
            _ => cell.level != Level::Power || !self.is_in_memory(),
        }
    }
}

fn closed<M: Measure>(subject: impl Subject, measure: M) -> Result<M::Found, Error> {
    let found = measure.measure(&subject)?;
    subject.close()?;
    Ok(found)
}

/// Copies a value out if there is one.
fn copy_out(found: Option<impl AsRef<[u8]>>, value: &mut Vec<u8>) -> bool {
    let Some(found) = found else { return false };
    value.clear();
    value.extend_from_slice(found.as_ref());
    true
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            System::Ours(engine) => return write!(f, "{engine}"),
            System::OursTmpfs(engine) => return write!(f, "{engine}-tmpfs"),
            #[cfg(feature = "rocksdb")]
            System::Rocksdb => "rocksdb",
            System::Lmdb => "lmdb",
            System::LmdbTmpfs => "lmdb-tmpfs",
            System::Redb => "redb",
            System::Fjall => "fjall",
            System::Disk => "disk",
        };
        f.write_str(name)
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(name: &str) -> Result<System, String> {
        System::all().find(|system| system.to_string() == name).ok_or_else(|| format!("unknown system '{name}'"))
    }
}
