//! The shared part of a store's handles: the background threads, the engine and the files, and their closing.

use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::{BatchOp, Engine, Error, Expiry, Limits, WantedThreads, Worker};
use journal::{Acknowledger, OsFile};
use pmem::{Durability, MediumError};
use pmem_os::{Closed, ForkGuard};
use transact::{Gate, GateLock, Inside, Window};

use crate::files_status::{Files, FilesStatus};
use crate::stats::{Identity, JournalStats, Stats};
use crate::tree::Mapping;
use crate::trees::Trees;
use crate::walk::Walks;
use crate::{Expires, events};

/// An open store, which all its handles share.
///
/// Fields are dropped in this order: background threads have ended before the clean image is written and the region
/// unmapped, and the store's lock is released last. Exception: when a callback on a background thread drops the store,
/// that thread closes it as its last action.
pub(crate) struct Inner {
    pub(crate) workers: Vec<Worker>,
    pub(crate) is_closed: bool,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) guard: ForkGuard,
    pub(crate) files: Arc<Files>,
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) journal: Option<Acknowledger<OsFile>>,
    pub(crate) sync_interval: Duration,
    pub(crate) memory_bytes_max: Option<u64>,
    pub(crate) is_read_only: bool,
    pub(crate) walks: Walks,
    pub(crate) gate_lock: GateLock,
    /// The gate of the keys of the tree without a name.
    pub(crate) gate: Arc<Gate>,
    pub(crate) trees: Trees,
}

/// A running write of the engine. It is dropped only if the write panics.
struct UnderWay<'s>(&'s Inner);

impl Drop for UnderWay<'_> {
    /// Closes the store to writes. The panic releases the engine's locks while it unwinds, although the data they
    /// guard may be half changed, and the caller may catch the panic. So neither callers nor the background may write
    /// after it.
    #[cold]
    fn drop(&mut self) {
        self.0.guard.close_to_writes(Closed::HalfWay);
        self.0.workers.iter().for_each(Worker::quit);
        events::write_panicked(&self.0.path);
    }
}

impl Inner {
    /// Returns the engine for an operation, once there is memory for it. Costs one load if memory has no limit.
    #[inline(always)]
    pub(crate) fn engine(&self) -> Result<&dyn Engine, Error> {
        if self.guard.is_free() { Ok(&*self.engine) } else { self.engine_after_admission() }
    }

    #[cold]
    fn engine_after_admission(&self) -> Result<&dyn Engine, Error> {
        if !self.guard.in_owner() {
            return Err(Error::Forked);
        }
        self.journal.iter().for_each(Acknowledger::admit);
        Ok(&*self.engine)
    }

    /// Like [`Inner::engine`], for operations that change the store. Also costs one load.
    #[inline(always)]
    pub(crate) fn writable_engine(&self) -> Result<&dyn Engine, Error> {
        if self.guard.takes_writes() { Ok(&*self.engine) } else { self.engine_after_check() }
    }

    /// Checks the store's files if this writer's turn has come ([`crate::files_status`]), then returns the engine or
    /// the error that blocks writes.
    #[cold]
    fn engine_after_check(&self) -> Result<&dyn Engine, Error> {
        let Inner { guard, files, workers, engine, .. } = self;
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

    /// Returns the gate that writers of these keys pass.
    #[inline(always)]
    pub(crate) fn gate_of<'s>(&'s self, keys: &'s Mapping) -> &'s Arc<Gate> {
        match keys {
            Mapping::Nameless => &self.gate,
            Mapping::Named(named) => named.gate(),
            Mapping::Stored => self.gate_lock.all(),
        }
    }

    /// Makes a change within a window of the calling thread (crate `transact`). Then waits for the disk, and reports
    /// keys that had expired before the change.
    #[inline(always)]
    pub(crate) fn change<R>(
        &self,
        gate: &Gate,
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let engine = self.writable_engine()?;
        match &self.journal {
            None => {
                let window = self.gate_lock.enter(gate)?;
                self.carry_out(engine, window, change)
            }
            Some(_) => self.change_on_journal(engine, || self.gate_lock.enter(gate), change),
        }
    }

    /// Like [`Inner::change`], for several trees.
    pub(crate) fn change_all<R>(
        &self,
        gates: &[&Arc<Gate>],
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let enter = || match gates {
            [gate] => self.gate_lock.enter(gate),
            _ => self.gate_lock.enter_all(gates.iter().map(|gate| &***gate)),
        };
        self.change_on_journal(self.writable_engine()?, enter, change)
    }

    #[inline(never)]
    fn change_on_journal<R>(
        &self,
        engine: &dyn Engine,
        enter: impl FnOnce() -> Result<Window, Inside>,
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.settled(|| self.carry_out(engine, enter()?, change))
    }

    /// Like [`Inner::change`], for a caller that opens the window itself, or has closed the gate.
    pub(crate) fn change_without_window<R>(
        &self,
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let engine = self.writable_engine()?;
        self.settled(|| self.carry_out(engine, (), change))
    }

    /// Runs `operate`, waits for the journal, if there is one, and reports expired keys.
    pub(crate) fn settled<R>(&self, operate: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        let result = match &self.journal {
            None => operate(),
            Some(journal) => match journal.together(operate) {
                (Ok(_), Err(error)) => Err(self.explained(error.into())),
                (result, _) => result,
            },
        };
        engine::report_late();
        result
    }

    /// Makes a change, and drops `window` when it is made.
    #[inline(always)]
    fn carry_out<W, R>(
        &self,
        engine: &dyn Engine,
        window: W,
        change: impl FnOnce(&dyn Engine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let under_way = UnderWay(self);
        // The result stays in place, and is moved only if it holds an error.
        let changed = change(engine);
        mem::forget(under_way);
        drop(window);
        if self.journal.is_none() {
            engine::report_late();
        }
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
            WantedThreads::One => self.workers.iter().take(1).for_each(Worker::wake),
            WantedThreads::All => self.ask_workers(),
        }
        // With the gate lock, other writers would wait for the step as well.
        if !engine::in_expired_callback() && !transact::is_writing() {
            // The write is done. If this step fails, the background repeats it.
            let _ = self.engine.assist_background();
        }
    }

    /// Returns the expiry by the store's clock.
    pub(crate) fn expiry(&self, expires: Expires) -> Result<Expiry, Error> {
        expires.by(self.engine()?.clock())
    }

    /// Runs `operate`, and returns when everything that it wrote and read is durable at `level`.
    pub(crate) fn at<R, E: From<Error>>(
        &self,
        level: Durability,
        operate: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        self.check_level(level)?;
        let Some(journal) = &self.journal else { return operate() };
        let (result, durable) = journal.at(level, operate);
        let result = result?;
        durable.map_err(|error| self.explained(error.into()))?;
        Ok(result)
    }

    /// Returns an error if the storage does not provide `level`.
    pub(crate) fn check_level(&self, level: Durability) -> Result<(), Error> {
        self.engine()?;
        let (given, medium) = (self.durability_max(), self.identity.medium);
        if level > given { Err(Error::Durability { wanted: level, given, medium }) } else { Ok(()) }
    }

    pub(crate) fn durability_max(&self) -> Durability {
        if self.journal.is_some() { Durability::Power } else { self.identity.durability }
    }

    /// Refuses a batch that would use more than half of the memory, if memory has a limit: its pages cannot be evicted
    /// before it ends.
    pub(crate) fn check_memory_for(&self, ops: &[BatchOp<'_>]) -> Result<(), Error> {
        let Some(memory_bytes_max) = self.memory_bytes_max else { return Ok(()) };
        match Limits::batch_bytes(ops) {
            len_bytes if len_bytes > memory_bytes_max / 2 => {
                Err(Error::BatchExceedsMemory { len_bytes, memory_bytes_max })
            }
            _ => Ok(()),
        }
    }

    /// Returns the present figures without waiting.
    pub(crate) fn stats_now(&self) -> Result<Stats, Error> {
        let journal = self.journal.as_ref().map(|journal| JournalStats::of(journal.figures(), self.sync_interval));
        let (files, reclaim) = (self.files.last_seen(), self.trees.reclaimer.figures());
        Ok(Stats::gather(self.engine()?, &self.identity, journal, &self.workers, files, reclaim))
    }

    pub(crate) fn ask_workers(&self) {
        self.workers.iter().for_each(Worker::wake);
    }

    pub(crate) fn is_removed(&self) -> bool {
        !self.is_read_only && self.files.check() == FilesStatus::Removed
    }

    /// Replaces the error of a failed journal by [`MediumError::Removed`] if the store's files are gone.
    #[cold]
    pub(crate) fn explained(&self, error: Error) -> Error {
        let is_poisoned = matches!(error, Error::Medium(MediumError::Poisoned { .. }));
        if is_poisoned && self.is_removed() { MediumError::Removed.into() } else { error }
    }

    /// Stops the background and writes a clean image, once. Exception: after a panicked write there is no image, and
    /// the next opening recovers the store as after a crash.
    pub(crate) fn shut(&mut self) -> Result<(), Error> {
        if mem::replace(&mut self.is_closed, true) || self.guard.closed_to_writes() == Some(Closed::HalfWay) {
            return Ok(());
        }
        let mut workers = mem::take(&mut self.workers);
        self.trees.reclaimer.stop();
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
            // The workers' threads exist only in the parent process: there is nothing to stop or to wait for.
            mem::forget(mem::take(&mut self.workers));
        } else if !thread::panicking() {
            let closed = self.shut();
            if let Err(error) = closed {
                events::close_failed(&self.path, &error);
            }
        }
    }
}
