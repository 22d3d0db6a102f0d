//! Opening a store: from a path and options to files, an engine and background threads.

use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::{Engine, Worker};
use pmem_os::ForkGuard;
use uuid::Uuid;

use crate::file_names::Locks;
use crate::files::{self, Opened};
use crate::files_status::Files;
use crate::handles::Handle;
use crate::memory::MemoryLimit;
use crate::opening::Progress;
use crate::stats::Identity;
use crate::store::Inner;
use crate::tree::Keyspace;
use crate::trees::Trees;
use crate::{OpenError, OpenProgress, Options, Store, Tree};

/// An opening of the store at a path.
pub(crate) struct Opener<'a> {
    path: &'a Path,
    options: &'a Options,
}

impl<'a> Opener<'a> {
    pub(crate) fn new(path: &'a Path, options: &'a Options) -> Opener<'a> {
        Opener { path, options }
    }

    /// Opens the store, or creates it, as the options request.
    fn open(&self, progress: &Progress<'_>) -> Result<Store, OpenError> {
        self.options.check()?;
        let store = self.start(|path, options| files::open(path, options, progress))?;
        // Only the open store says which engine it has.
        self.options.check_engine(store.engine_kind())?;
        Ok(store)
    }

    /// Calls `open` to open the files, and starts the store in them.
    pub(crate) fn start(
        &self,
        open: impl FnOnce(&Path, &Options) -> Result<Opened, OpenError>,
    ) -> Result<Store, OpenError> {
        let guard = ForkGuard::new().map_err(OpenError::io(self.path, "watch for forks of"))?;
        let Opened { engine, identity, journal, locks } = open(self.path, self.options)?;
        let memory = MemoryLimit::of(self.options, journal.as_ref(), Arc::downgrade(&engine));
        if let Some(memory) = &memory {
            memory.distribute();
            guard.require_admission();
        }
        let files = Files::new(self.path, &guard, locks).map_err(OpenError::io(self.path, "watch"))?;
        let reclaiming = !self.options.read_only && self.options.worker_count() > 0;
        let trees = Trees::of(&engine, reclaiming.then_some(&guard))
            .map_err(|error| OpenError::io(self.path, "read the trees of")(io::Error::other(error)))?;
        let workers = self.workers(&engine, &guard, memory)?;
        let inner = Inner {
            workers,
            is_closed: false,
            engine,
            guard,
            files: Arc::new(files),
            path: self.path.to_owned(),
            identity,
            memory_bytes_max: self.options.memory_bytes_max.filter(|_| journal.is_some()),
            journal,
            sync_interval: self.options.sync_interval,
            is_read_only: self.options.read_only,
            walks: Default::default(),
            gate_lock: Default::default(),
            gate: Arc::default(),
            trees,
        };
        Ok(Store::new(Tree::new(Keyspace::opened(inner), Handle::first(self.path))))
    }

    /// Starts the background threads. The first one watches time, reminds writers to check the store's files, and
    /// shares out memory again.
    fn workers(
        &self,
        engine: &Arc<dyn Engine>,
        guard: &ForkGuard,
        mut memory: Option<MemoryLimit>,
    ) -> Result<Vec<Worker>, OpenError> {
        let mut watch = || {
            let (guard, memory) = (guard.clone(), memory.take());
            Box::new(move || {
                memory.iter().for_each(MemoryLimit::distribute);
                guard.expect_check()
            })
        };
        let mut start =
            |i, engine| if i == 0 { Worker::start_watching_time(engine, watch()) } else { Worker::start(engine) };
        (0..self.options.worker_count())
            .map(|i| start(i, Arc::downgrade(engine)))
            .collect::<Result<_, _>>()
            .map_err(OpenError::io(self.path, "start a background thread of"))
    }
}

impl Options {
    /// Opens the store of an engine that the caller has made, on a simulated medium for example. The directory `dir`
    /// stands for its files; its clock is the engine's.
    #[doc(hidden)]
    pub fn open_engine(&self, dir: &Path, engine: Arc<dyn Engine>) -> Result<Store, OpenError> {
        let identity = Identity::of_simulation().with_uuid(Uuid::from_bytes(engine.uuid()));
        Opener::new(dir, self).start(|_, _| Ok(Opened { engine, identity, journal: None, locks: Locks::default() }))
    }

    /// Opens the store at `path`, a directory or a DAX device.
    ///
    /// # Errors
    /// As for [`Store::open`]. [`OpenError::Option`] if an option is out of range or unknown to the engine;
    /// [`OpenError::Durability`] if the storage provides less than requested.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store, OpenError> {
        self.open_with_progress(path, &|_| {})
    }

    /// Like [`Options::open`], and calls `progress` while opening reads a journal's log, or an engine sorts keys before
    /// it serves. A journal's region is read into memory afterwards: [`crate::JournalStats::loaded_bytes`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{OpenProgress, Options};
    ///
    /// let store = Options::new().open_with_progress(dir.path(), &|progress| match progress {
    ///     OpenProgress::Replaying { done, total } => println!("{done} of {total} parts of the log are read"),
    ///     OpenProgress::Indexing { done, total } => println!("{done} of {total} keys are in order"),
    ///     _ => {}
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Options::open`].
    pub fn open_with_progress(
        &self,
        path: impl AsRef<Path>,
        progress: &(dyn Fn(OpenProgress) + Sync),
    ) -> Result<Store, OpenError> {
        Opener::new(path.as_ref(), self).open(progress)
    }
}
