//! Opening and closing a store, and figures about it. Reads, writes and other operations have modules of their own.

mod inner;

use std::fmt;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Engine, Error, Features, Limits, Order, OrderedEngine, WantedThreads, Worker};
use journal::{Acknowledger, OsFile};
use pmem::MediumError;
use pmem_os::{Closed, ForkGuard};

use crate::files::{self, Opened};
use crate::files_status::{Files, FilesStatus};
use crate::handles::{Handle, Kind};
use crate::opening::Progress;
use crate::stats::{Identity, JournalStats, Stats};
use crate::walk::Walks;
use crate::{EngineKind, OpenError, Options};
use inner::{Inner, UnderWay};

/// An open store. Clones share it. Dropping the last clone closes it.
pub struct Store {
    inner: Arc<Inner>,
    handle: Handle,
}

impl Clone for Store {
    fn clone(&self) -> Store {
        self.held_by(Kind::Store)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at `path`, a directory or a DAX device, and creates it if there is none.
    ///
    /// # Errors
    /// [`OpenError::Locked`] if another process has the store open; [`OpenError::Unusable`] or [`OpenError::Journal`]
    /// if it is damaged; [`OpenError::Io`] if the operating system refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Options::new().open(path)
    }

    /// Opens an existing store for reading. Several processes can do so while none has it open for writing.
    ///
    /// # Errors
    /// As for [`Store::open`]; [`OpenError::Missing`] if there is no store.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Options::new().read_only(true).open(path)
    }

    pub(crate) fn with_options(path: &Path, options: &Options, progress: &Progress<'_>) -> Result<Store, OpenError> {
        Store::of_opened(path, options, |path, options| files::open(path, options, progress))
    }

    pub(crate) fn of_opened(
        path: &Path,
        options: &Options,
        open: impl FnOnce(&Path, &Options) -> Result<Opened, OpenError>,
    ) -> Result<Store, OpenError> {
        let guard = ForkGuard::new().map_err(OpenError::io(path, "watch for forks of"))?;
        let Opened { engine, identity, journal, locks } = open(path, options)?;
        let files = Arc::new(Files::new(path, &guard, locks).map_err(OpenError::io(path, "watch"))?);
        let watch = || {
            let guard = guard.clone();
            Box::new(move || guard.expect_check())
        };
        let start =
            |i, engine| if i == 0 { Worker::start_watching_time(engine, watch()) } else { Worker::start(engine) };
        let workers = (0..options.worker_count())
            .map(|i| start(i, Arc::downgrade(&engine)))
            .collect::<Result<_, _>>()
            .map_err(OpenError::io(path, "start a background thread of"))?;
        Ok(Store {
            handle: Handle::first(path),
            inner: Arc::new(Inner {
                workers,
                is_closed: false,
                supports_lookup: engine.supports_lookup(),
                engine,
                guard,
                files,
                path: path.to_owned(),
                identity,
                journal,
                sync_interval: options.sync_interval,
                is_read_only: options.read_only,
                walks: Walks::default(),
            }),
        })
    }

    /// Returns another handle, counted as one of this kind.
    pub(crate) fn held_by(&self, kind: Kind) -> Store {
        Store { inner: Arc::clone(&self.inner), handle: self.handle.another(kind) }
    }

    /// Returns the directory or device, as the caller gave it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns the path of the file or device that holds the region.
    #[must_use]
    pub fn region_path(&self) -> PathBuf {
        files::region_path(&self.inner.path)
    }

    /// Returns the store's identity: a random number that never changes.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.identity.uuid()
    }

    /// Returns the number of keys. Expired keys count until their space is freed, within about a second. Just after
    /// open, this waits until all keys are counted. It also waits until deferred writes of other threads are durable,
    /// as every read does.
    ///
    /// # Errors
    /// [`Error::Medium`] after a failed sync: the count could include writes that are lost. [`Error::Corrupt`] if the
    /// store is damaged.
    pub fn len(&self) -> Result<u64, Error> {
        let count = self.engine()?.len()?;
        self.journal().map_or(Ok(()), |journal| journal.acknowledge_met())?;
        Ok(count)
    }

    /// Returns true if there is no key.
    ///
    /// # Errors
    /// As for [`Store::len`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Makes every write that has returned as durable as the storage allows. Only a journal opened with durability
    /// `buffered` or `process` has anything to do.
    ///
    /// # Errors
    /// [`Error::Medium`] if the sync fails, with [`crate::MediumError::Removed`] if the store's files are gone.
    pub fn sync(&self) -> Result<(), Error> {
        let engine = self.engine()?;
        // This comes before the sync: with its files gone, a journal would fail, and the store could not be saved
        // elsewhere.
        if self.is_removed() {
            return Err(MediumError::Removed.into());
        }
        engine.sync()
    }

    /// Checks whether the store's files still exist. If they were removed, all later writes fail. Writers check at
    /// most once a second. Without background threads ([`Options::background`]) the caller has to call this.
    pub fn check_files(&self) -> FilesStatus {
        self.inner.files.check()
    }

    /// Returns the free bytes of the store's file system, or `None` for a device. Costs a system call.
    #[must_use]
    pub fn disk_free_bytes(&self) -> Option<u64> {
        self.inner.files.disk_free_bytes()
    }

    fn is_removed(&self) -> bool {
        !self.inner.is_read_only && self.check_files() == FilesStatus::Removed
    }

    /// Replaces the error of a failed journal by [`MediumError::Removed`] if the store's files are gone.
    #[cold]
    pub(crate) fn explained(&self, error: Error) -> Error {
        let is_poisoned = matches!(error, Error::Medium(MediumError::Poisoned { .. }));
        if is_poisoned && self.is_removed() { MediumError::Removed.into() } else { error }
    }

    /// Returns the store's figures. Just after open, this waits until all keys are counted.
    ///
    /// # Panics
    /// In a child of the process that opened the store.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // If counting fails, figures stay too small; the next read or write returns the error. This does not wait for
        // durability, because figures acknowledge nothing.
        let _ = self.engine().and_then(Engine::len);
        self.stats_now().expect("stats are for the process that opened the store")
    }

    /// Returns the present figures without waiting. [`Stats::counted`] is false while they are incomplete.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn stats_now(&self) -> Result<Stats, Error> {
        let journal = self.journal().map(|journal| JournalStats::of(journal.figures(), self.inner.sync_interval));
        let files = self.inner.files.last_seen();
        Ok(Stats::gather(self.engine()?, &self.inner.identity, journal, &self.inner.workers, files))
    }

    /// Returns the error that blocks writes to a store opened for writing: a journal's disk failed, the store's files
    /// were found missing ([`Store::check_files`]), or a write panicked. Costs two loads while the store is healthy.
    ///
    /// # Errors
    /// [`Error::Medium`] with [`crate::MediumError::Poisoned`] or [`crate::MediumError::Removed`]; [`Error::HalfWay`];
    /// [`Error::Forked`].
    pub fn health(&self) -> Result<(), Error> {
        self.engine()?.health().map_err(|error| self.explained(error))?;
        self.writable_engine().map(drop)
    }

    /// Closes the store if this handle is the last one. All writes of a journal are then on the disk, at any
    /// durability. The lock is released, and a clean image is written if there is space for it: the next opening then
    /// need not search for free space, count keys, or sort keys that were in order.
    ///
    /// Other handles, snapshots, ordered views, ranges and readers keep the store open. This call then returns
    /// [`Error::StillOpen`] and drops only its own handle; the last handle closes the store.
    ///
    /// Dropping the last handle closes the store as well, but its error is only recorded: as a `tracing` event of
    /// level `ERROR` (feature `tracing`). Within a callback of the background ([`Store::on_expired`]), closing happens
    /// soon after the callback has returned.
    ///
    /// # Errors
    /// [`Error::StillOpen`] names the handles that keep the store open. [`Error::Medium`] if the storage fails: the
    /// store is closed and intact, but writes acknowledged below `power` may be lost in a power failure. With
    /// [`crate::MediumError::Removed`] the store's files, and everything written to them, are gone. [`Error::Forked`].
    pub fn close(self) -> Result<(), Error> {
        self.engine()?;
        let Store { inner, handle } = self;
        let Some(mut inner) = Arc::into_inner(inner) else {
            return match handle.others() {
                Some(kept_by) => Err(Error::StillOpen { kept_by: kept_by.into() }),
                None => Ok(()),
            };
        };
        let is_removed = !inner.is_read_only && inner.files.check() == FilesStatus::Removed;
        let (image, journal) = (inner.shut(), inner.journal.clone());
        // Dropping the medium makes the end of the log durable.
        drop(inner);
        if is_removed {
            return Err(MediumError::Removed.into());
        }
        image?;
        Ok(journal.map_or(Ok(()), |journal| journal.closed())?)
    }

    #[inline(always)]
    pub(crate) fn engine(&self) -> Result<&dyn Engine, Error> {
        if self.inner.guard.in_owner() { Ok(&*self.inner.engine) } else { Err(Error::Forked) }
    }

    /// Like [`Store::engine`], for operations that change the store. Also costs one load.
    #[inline(always)]
    pub(crate) fn writable_engine(&self) -> Result<&dyn Engine, Error> {
        if self.inner.guard.takes_writes() { Ok(&*self.inner.engine) } else { self.engine_after_check() }
    }

    /// Checks the store's files if this writer's turn has come ([`crate::files_status`]), then returns the engine or
    /// the error that blocks writes.
    #[cold]
    fn engine_after_check(&self) -> Result<&dyn Engine, Error> {
        let Inner { guard, files, workers, engine, .. } = &*self.inner;
        if guard.begin_check() {
            files.check();
            workers.iter().take(1).for_each(Worker::wake);
        }
        match guard.closed_to_writes() {
            Some(Closed::Removed) => Err(MediumError::Removed.into()),
            Some(Closed::HalfWay) => Err(Error::HalfWay),
            None if guard.in_owner() => Ok(&**engine),
            None => Err(Error::Forked),
        }
    }

    pub(crate) fn files(&self) -> &Files {
        &self.inner.files
    }

    /// The result of [`Engine::supports_lookup`].
    #[inline(always)]
    pub(crate) fn supports_lookup(&self) -> bool {
        self.inner.supports_lookup
    }

    #[inline(always)]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&dyn Engine) -> Result<R, Error>) -> Result<R, Error> {
        let engine = self.writable_engine()?;
        let under_way = UnderWay(&self.inner);
        // The result stays in place, and is moved only if it holds an error.
        let changed = change(engine);
        mem::forget(under_way);
        match changed {
            Ok(done) => {
                self.ask_wanted(engine.wanted_threads());
                Ok(done)
            }
            Err(error) => {
                self.ask_wanted(engine.wanted_threads());
                Err(self.explained(error))
            }
        }
    }

    #[inline(always)]
    pub(crate) fn ask_wanted(&self, wanted: WantedThreads) {
        if wanted != WantedThreads::None {
            self.ask_some(wanted);
        }
    }

    #[cold]
    #[inline(never)]
    fn ask_some(&self, wanted: WantedThreads) {
        match wanted {
            WantedThreads::None => {}
            WantedThreads::One => self.inner.workers.iter().take(1).for_each(Worker::wake),
            WantedThreads::All => self.ask_workers(),
        }
        if !engine::in_expired_callback() {
            // The write is done. If this step fails, the background repeats it.
            let _ = self.inner.engine.assist_background();
        }
    }

    /// Returns the kind of the store's engine.
    ///
    /// # Panics
    /// Never: only a known kind of engine opens a store.
    #[must_use]
    pub fn engine_kind(&self) -> EngineKind {
        self.inner.engine.name().parse().expect("a store is opened by a kind of engine")
    }

    /// Returns the engine's features beyond operations on single keys.
    #[must_use]
    pub fn features(&self) -> Features {
        self.inner.engine.features()
    }

    /// Returns the longest key, value and batch that this store accepts.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.inner.engine.limits()
    }

    pub(crate) fn walks(&self) -> &Walks {
        &self.inner.walks
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.inner.is_read_only
    }

    pub(crate) fn journal(&self) -> Option<&Acknowledger<OsFile>> {
        self.inner.journal.as_ref()
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    pub(crate) fn ask_workers(&self) {
        self.inner.workers.iter().for_each(Worker::wake);
    }

    pub(crate) fn ordered_engine(&self) -> Result<&dyn OrderedEngine, Error> {
        let engine = self.engine()?;
        engine.ordered().ok_or_else(|| match engine.features().order {
            Order::No => Error::Unsupported { engine: engine.name(), what: "order" },
            Order::Asked | Order::Native => Error::NoOrder,
        })
    }
}
