//! The systems: how each is opened at a level, and does what is measured.

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

use crate::cell::{Cell, Level, Operation};
use crate::error::Error;
use crate::shape::Shape;

/// Memory for blocks of the store, of the systems that have such a cache: more than any of them can use of a million items,
/// so that no get waits for the disk.
const CACHE_BYTES: usize = 2 << 30;

/// A system's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum System {
    /// On the disk, journaled.
    Hikv,
    /// In memory that outlives the process and not the machine.
    HikvTmpfs,
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    Lmdb,
    Redb,
    Fjall,
    /// What the disk gives: a write to a file that has all its blocks, and, at `power`, one sync of it; no store at all.
    Disk,
}

/// A system's open store. Every put is as durable as the level says when it returns.
pub(crate) trait Opened: Sync {
    /// Inserts or replaces.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Replaces `value` by the value of `key`; false if there is none.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error>;

    /// Puts all records, in whatever way is fast.
    fn load(&self, shape: Shape) -> Result<(), Error> {
        let mut item = shape.item();
        (0..shape.records).try_for_each(|record| {
            item.renew(record);
            self.put(&item.key, &item.value)
        })
    }

    /// Leaves everything durable.
    fn close(self: Box<Self>) -> Result<(), Error>;
}

impl System {
    /// In the order of their turns.
    pub(crate) const ALL: &[System] = &[
        System::Hikv,
        System::HikvTmpfs,
        #[cfg(feature = "rocksdb")]
        System::Rocksdb,
        System::Lmdb,
        System::Redb,
        System::Fjall,
        System::Disk,
    ];

    /// Opens its store in `directory`, or makes it there.
    pub(crate) fn open(self, directory: &Path, level: Level, shape: Shape) -> Result<Box<dyn Opened>, Error> {
        match self {
            System::Hikv => hikv::open(directory, Some(level)),
            System::HikvTmpfs => hikv::open(directory, None),
            #[cfg(feature = "rocksdb")]
            System::Rocksdb => rocksdb::open(directory, level),
            System::Lmdb => lmdb::open(directory, level, shape),
            System::Redb => redb::open(directory, level),
            System::Fjall => fjall::open(directory, level),
            System::Disk => disk::open(directory, level),
        }
    }

    /// Whether it can do that.
    pub(crate) fn has(self, cell: Cell) -> bool {
        match self {
            System::HikvTmpfs => cell.level != Level::Power,
            System::Disk => cell.operation == Operation::Put,
            _ => true,
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            System::Hikv => "hikv",
            System::HikvTmpfs => "hikv-tmpfs",
            #[cfg(feature = "rocksdb")]
            System::Rocksdb => "rocksdb",
            System::Lmdb => "lmdb",
            System::Redb => "redb",
            System::Fjall => "fjall",
            System::Disk => "disk",
        })
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(name: &str) -> Result<System, String> {
        let known = System::ALL.iter().find(|system| system.to_string() == name);
        known.copied().ok_or_else(|| format!("there is no system '{name}'"))
    }
}
