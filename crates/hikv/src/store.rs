//! The store as programs use it: opening, closing, and figures about it. Reads, writes and the rest have modules of their own.

use std::fmt;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

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
use crate::{EngineKind, OpenError, Options, events};

/// An open store. Clones share it; the last one to go closes it.
pub struct Store {
    inner: Arc<Inner>,
    handle: Handle,
}

impl Clone for Store {
    fn clone(&self) -> Store {
        self.held_by(Kind::Store)
    }
}

/// Dropped in this order: nobody works in the background any more when the clean image is written and the region unmapped,
/// and nobody else gets the lock before it is. Where the background itself drops the store, in a callback, that is the
/// last thing that the background does.
struct Inner {
    workers: Vec<Worker>,
    is_closed: bool,
    engine: Arc<dyn Engine>,
    /// [`Engine::supports_lookup`]
    supports_lookup: bool,
    guard: ForkGuard,
    files: Arc<Files>,
    path: PathBuf,
    identity: Identity,
    journal: Option<Acknowledger<OsFile>>,
    sync_interval: Duration,
    is_read_only: bool,
    walks: Walks,
}

/// A write that the engine is at. Only a panic drops it.
struct UnderWay<'s>(&'s Inner);

impl Drop for UnderWay<'_> {
    /// The engine's locks are let go of while the panic unwinds, whatever they guard is half way, and the caller may catch the panic. So
    /// nothing is written on top of that: neither by callers nor by the background.
    #[cold]
    fn drop(&mut self) {
        self.0.guard.close_to_writes(Closed::HalfWay);
        self.0.workers.iter().for_each(Worker::quit);
        events::write_panicked(&self.0.path);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Inner {
    /// Stops the background and leaves a clean image, once. What a write may have left half way is left as after a crash.
    fn shut(&mut self) -> Result<(), Error> {
        if mem::replace(&mut self.is_closed, true) || self.guard.closed_to_writes() == Some(Closed::HalfWay) {
            return Ok(());
        }
        let mut workers = mem::take(&mut self.workers);
        let Some(own) = workers.iter().position(Worker::is_current) else {
            drop(workers);
            return self.engine.close();
        };
        let (own, engine, files) = (workers.swap_remove(own), Arc::clone(&self.engine), Arc::clone(&self.files));
        let path = self.path.clone();
        own.end_with(move || {
            drop(workers);
            if let Err(error) = engine.close() {
                events::close_failed(&path, &error);
            }
            drop(engine);
            drop(files);
        });
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.guard.in_owner() {
            // The workers' threads stayed in the parent: there is nothing to stop or to wait for.
            mem::forget(mem::take(&mut self.workers));
        } else if !thread::panicking() {
            let closed = self.shut();
            if let Err(error) = closed {
                events::close_failed(&self.path, &error);
            }
        }
    }
}

impl Store {
    /// Opens the store at `path`, a directory or a DAX device, and creates it if there is none.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Options::new().open(path)
    }

    /// Opens an existing store for reading. Several processes can, while nobody has it open for writing.
    ///
    /// # Errors
    /// See [`OpenError`].
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

    /// Another handle, which something of this kind keeps.
    pub(crate) fn held_by(&self, kind: Kind) -> Store {
        Store { inner: Arc::clone(&self.inner), handle: self.handle.another(kind) }
    }

    /// The directory or device, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The file or device that holds the region.
    #[must_use]
    pub fn region_path(&self) -> PathBuf {
        files::region_path(&self.inner.path)
    }

    /// The store's identity: random, and kept for life.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.identity.uuid()
    }

    /// How many keys there are; those that expired count until their room is taken back, within a second or so. Just after
    /// open this waits until they are counted. What others have deferred counts once it is durable, as for any read.
    ///
    /// # Errors
    /// See [`Error`]. After a failed sync it is not told how many there are: some that count may be lost, and were never acknowledged.
    pub fn len(&self) -> Result<u64, Error> {
        let count = self.engine()?.len()?;
        self.journal().map_or(Ok(()), |journal| journal.acknowledge_met())?;
        Ok(count)
    }

    /// True if there is no key.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Makes every write that has returned as durable as the medium can. That is nothing to do but with durability `buffered`
    /// or `process` on a journal.
    ///
    /// # Errors
    /// See [`Error`]; [`crate::MediumError::Removed`] if the store's files are gone.
    pub fn sync(&self) -> Result<(), Error> {
        let engine = self.engine()?;
        // Before the sync: a journal whose files are gone would fail, and could not be saved elsewhere.
        if self.is_removed() {
            return Err(MediumError::Removed.into());
        }
        engine.sync()
    }

    /// Looks where the store's files are. If they were removed the store takes no more writes from now on. Writers look by themselves, at
    /// most once a second; without a background thread ([`Options::background`]) this is for the caller to do.
    pub fn check_files(&self) -> FilesStatus {
        self.inner.files.check()
    }

    /// What is free on the file system that the store lies on; none is known of a device. A system call.
    #[must_use]
    pub fn disk_free_bytes(&self) -> Option<u64> {
        self.inner.files.disk_free_bytes()
    }

    fn is_removed(&self) -> bool {
        !self.inner.is_read_only && self.check_files() == FilesStatus::Removed
    }

    /// The reason why writes fail, where the journal only knows that they do.
    #[cold]
    pub(crate) fn explained(&self, error: Error) -> Error {
        let is_poisoned = matches!(error, Error::Medium(MediumError::Poisoned { .. }));
        if is_poisoned && self.is_removed() { MediumError::Removed.into() } else { error }
    }

    /// The store's figures. Just after open this waits until keys are counted.
    ///
    /// # Panics
    /// In a child of the process that opened the store.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // A sweep that fails leaves figures that are too small; whoever reads or writes gets the error. Nothing is waited for that
        // is not durable yet: figures acknowledge nothing.
        let _ = self.engine().and_then(Engine::len);
        self.stats_now().expect("stats are for the process that opened the store")
    }

    /// The figures as far as they are known now, without waiting; [`Stats::counted`] tells whether they are complete.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn stats_now(&self) -> Result<Stats, Error> {
        let journal = self.journal().map(|journal| JournalStats::of(journal.figures(), self.inner.sync_interval));
        let files = self.inner.files.last_seen();
        Ok(Stats::gather(self.engine()?, &self.inner.identity, journal, &self.inner.workers, files))
    }

    /// Returns the error that blocks writes, though the store was opened for them: a journal's disk failed, or the store's files
    /// were found to be gone ([`Store::check_files`]). Costs two loads while all is well.
    ///
    /// # Errors
    /// [`Error::Medium`] with [`crate::MediumError::Poisoned`] or [`crate::MediumError::Removed`]; [`Error::HalfWay`]; [`Error::Forked`].
    pub fn health(&self) -> Result<(), Error> {
        self.engine()?.health().map_err(|error| self.explained(error))?;
        self.writable_engine().map(drop)
    }

    /// Closes the store: this handle must be the last one. Then a journal's writes are on the disk, whatever they were acknowledged with, the
    /// store's lock is released, and a clean image is left, where there is room for it: the next opening then need not look for free space,
    /// count keys, or sort them if they were in order.
    ///
    /// Other handles, snapshots, ordered views, ranges and readers keep the store open. This handle is gone in that case as well, and the last one of
    /// the others closes the store, by this call or by being dropped.
    ///
    /// Dropping the last handle does the same; an error is then an event of the level `ERROR` for programs that collect those of `tracing`
    /// (feature `tracing`), and nothing else. So does either within a callback that the background calls ([`Store::on_expired`]): the store is closed soon after that has
    /// returned.
    ///
    /// # Errors
    /// [`Error::StillOpen`] names what else keeps the store open. [`Error::Forked`]. [`crate::MediumError::Removed`] if the store's files are
    /// gone, and all that was written to them. The medium's, if it fails meanwhile: the store is closed and whole; writes that were acknowledged
    /// with less than `power` may be lost with the power, and are there until then.
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
        // The medium goes with it, which makes the end of a log durable.
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

    /// As [`Store::engine`], for what changes the store. One load, too.
    #[inline(always)]
    pub(crate) fn writable_engine(&self) -> Result<&dyn Engine, Error> {
        if self.inner.guard.takes_writes() { Ok(&*self.inner.engine) } else { self.engine_after_check() }
    }

    /// The writer that was expected to looks at the store's files ([`crate::files_status`]).
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

    /// [`Engine::supports_lookup`]
    #[inline(always)]
    pub(crate) fn supports_lookup(&self) -> bool {
        self.inner.supports_lookup
    }

    #[inline(always)]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&dyn Engine) -> Result<R, Error>) -> Result<R, Error> {
        let engine = self.writable_engine()?;
        let under_way = UnderWay(&self.inner);
        // The answer stays where it is: it is moved only with an error in it.
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
            // A step that fails is the background's to try again: this write is done.
            let _ = self.inner.engine.assist_background();
        }
    }

    /// The engine that keeps the store.
    ///
    /// # Panics
    /// Never: a store is opened by a kind of engine.
    #[must_use]
    pub fn engine_kind(&self) -> EngineKind {
        self.inner.engine.name().parse().expect("a store is opened by a kind of engine")
    }

    /// What the store's engine offers beyond single keys.
    #[must_use]
    pub fn features(&self) -> Features {
        self.inner.engine.features()
    }

    /// How long keys, values and batches of this store may be.
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
