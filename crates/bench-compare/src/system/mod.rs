//! The systems: how each is opened at a level. What it does is measured as a `bench::Subject`.

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
use bench::{Records, Subject};

use crate::cell::{Cell, Level};
use crate::error::Error;

/// Memory for blocks of the store, of the systems that have such a cache: more than any of them can use of a million items,
/// so that no get waits for the disk.
const CACHE_BYTES: usize = 2 << 30;

/// A system's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum System {
    /// One of our engines, journaled on the disk.
    Ours(EngineKind),
    /// One of our engines, in memory that outlives the process and not the machine.
    OursTmpfs(EngineKind),
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    Lmdb,
    /// LMDB's file in such memory.
    LmdbTmpfs,
    Redb,
    Fjall,
    /// What the disk gives: a write to a file that has all its blocks, and, at `power`, one sync of it; no store at all.
    Disk,
}

/// How a system's store is opened. Every put is as durable as the level says when it returns.
pub(crate) struct Opening<'a> {
    /// Where it is, or is made.
    pub(crate) directory: &'a Path,
    pub(crate) level: Level,
    /// What it holds, or shall hold.
    pub(crate) records: Records,
    /// Whether keys are kept in order, where a system can do without.
    pub(crate) is_ordered: bool,
}

/// Does something with a system, whichever it is.
pub(crate) trait Measure {
    /// What comes of it.
    type Found;

    /// Does it.
    fn measure(self, subject: &impl Subject) -> Result<Self::Found, Error>;
}

impl System {
    /// Those that are compared unless others are asked for, in the order of their turns.
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

    /// All that may be asked for.
    pub(crate) fn all() -> impl Iterator<Item = System> {
        let engines = [EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];
        let ours = engines.into_iter().flat_map(|engine| [System::Ours(engine), System::OursTmpfs(engine)]);
        System::USUAL.iter().copied().chain([System::LmdbTmpfs]).chain(ours)
    }

    /// Whether its store lies in memory that outlives the process and not the machine.
    pub(crate) fn is_in_memory(self) -> bool {
        matches!(self, System::OursTmpfs(_) | System::LmdbTmpfs)
    }

    /// Opens or makes the system's store, has it measured, and closes the store.
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

    /// Whether it can do that.
    pub(crate) fn has(self, cell: Cell) -> bool {
        let lacks_order = matches!(self, System::Ours(EngineKind::RewoHash) | System::OursTmpfs(EngineKind::RewoHash));
        match self {
            System::Disk => cell.workload.needs().is_empty(),
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

/// Copies a value out, if there is one.
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
        System::all().find(|system| system.to_string() == name).ok_or_else(|| format!("there is no system '{name}'"))
    }
}
