//! Figures and properties of a store.

use std::path::{Path, PathBuf};

use engine::prelude::*;
use engine::{Error, Features, Limits};

use crate::files_status::FilesStatus;
use crate::stats::{JournalStats, Stats};
use crate::{EngineKind, Store, files};

impl Store {
    /// Returns the directory or device, as the caller gave it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner().path
    }

    /// Returns the path of the file or device that holds the region.
    #[must_use]
    pub fn region_path(&self) -> PathBuf {
        files::region_path(&self.inner().path)
    }

    /// Returns the store's identity: a random number that never changes.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner().identity.uuid()
    }

    /// Checks whether the store's files still exist. If they were removed, all later writes fail. Writers check at
    /// most once a second. Without background threads ([`crate::Options::background`]) the caller has to call this.
    pub fn check_files(&self) -> FilesStatus {
        self.inner().files.check()
    }

    /// Returns the free bytes of the store's file system, or `None` for a device. Costs a system call.
    #[must_use]
    pub fn disk_free_bytes(&self) -> Option<u64> {
        self.inner().files.disk_free_bytes()
    }

    /// Returns the store's figures. Just after open, this waits until all keys are counted.
    ///
    /// # Panics
    /// In a child of the process that opened the store.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // If counting fails, figures stay too small; the next read or write returns the error. This does not wait for
        // durability, because figures acknowledge nothing.
        let _ = self.inner().engine().and_then(Walks::len);
        self.stats_now().expect("stats are for the process that opened the store")
    }

    /// Returns the present figures without waiting. [`Stats::counted`] is false while they are incomplete.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn stats_now(&self) -> Result<Stats, Error> {
        let journal = self
            .inner()
            .journal
            .as_ref()
            .map(|journal| JournalStats::of(journal.figures(), self.inner().sync_interval));
        let files = self.inner().files.last_seen();
        Ok(Stats::gather(self.inner().engine()?, &self.inner().identity, journal, &self.inner().workers, files))
    }

    /// Returns the error that blocks writes to a store opened for writing: a journal's disk failed, the store's files
    /// were found missing ([`Store::check_files`]), or a write panicked. Costs two loads while the store is healthy.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.health()?;
    /// println!("{} of {} free", store.disk_free_bytes().unwrap_or(0), store.region_path().display());
    /// println!("files: {}; {} items", store.check_files().name(), store.stats_now()?.items);
    /// println!("store {:02x?}; up to {}", store.uuid(), store.durability_max());
    /// println!("nodes of the tree, for the engine ink: {:?}", store.stats().figure("ink_nodes"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Medium`] with [`crate::MediumError::Poisoned`] or [`crate::MediumError::Removed`]; [`Error::HalfWay`];
    /// [`Error::Forked`].
    pub fn health(&self) -> Result<(), Error> {
        self.inner().engine()?.health().map_err(|error| self.inner().explained(error))?;
        self.inner().writable_engine().map(drop)
    }

    /// Returns the kind of the store's engine.
    ///
    /// # Panics
    /// Never: only a known kind of engine opens a store.
    #[must_use]
    pub fn engine_kind(&self) -> EngineKind {
        self.inner().engine.name().parse().expect("a store is opened by a kind of engine")
    }

    /// Returns the engine's features beyond operations on single keys.
    #[must_use]
    pub fn features(&self) -> Features {
        self.inner().engine.features()
    }

    /// Returns the longest key, value and batch that this store accepts.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// assert_eq!(store.limits().value_bytes_max, 1 << 30);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.inner().engine.limits()
    }
}
