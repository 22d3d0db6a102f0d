//! The shared part of a store's handles: the background threads, the engine and the files, and their closing.

use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::{Engine, Error, Worker};
use journal::{Acknowledger, OsFile};
use pmem_os::{Closed, ForkGuard};

use crate::events;
use crate::files_status::Files;
use crate::stats::Identity;
use crate::walk::Walks;

/// An open store, which all its handles share.
///
/// Fields are dropped in this order: background threads have ended before the clean image is written and the region
/// unmapped, and the store's lock is released last. Exception: when a callback on a background thread drops the store,
/// that thread closes it as its last action.
pub(super) struct Inner {
    pub(super) workers: Vec<Worker>,
    pub(super) is_closed: bool,
    pub(super) engine: Arc<dyn Engine>,
    /// The result of [`Engine::supports_lookup`].
    pub(super) supports_lookup: bool,
    pub(super) guard: ForkGuard,
    pub(super) files: Arc<Files>,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) journal: Option<Acknowledger<OsFile>>,
    pub(super) sync_interval: Duration,
    pub(super) is_read_only: bool,
    pub(super) walks: Walks,
}

/// A running write of the engine. It is dropped only if the write panics.
pub(super) struct UnderWay<'s>(pub(super) &'s Inner);

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
    /// Stops the background and writes a clean image, once. Exception: after a panicked write there is no image, and
    /// the next opening recovers the store as after a crash.
    pub(super) fn shut(&mut self) -> Result<(), Error> {
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
