//! Options for opening a store.

mod check;
mod emulation;
mod tuning;

use std::num::NonZero;
use std::thread;
use std::time::Duration;

use engine::Clock;
use pmem::Durability;

use crate::{EngineKind, OpenError};
pub(crate) use emulation::BlockDelays;
pub use emulation::Emulation;
pub use tuning::Tuning;

/// Options for opening a store. By default a store is opened for reading and writing, and created if it is missing.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("store");
/// use hikv::{OpenError, Options};
///
/// let missing = Options::new().create(false).open(&path);
/// assert!(matches!(missing, Err(OpenError::Missing { .. })));
/// let store = Options::new().region_bytes_max(1 << 30).open(&path)?;
/// assert!(store.is_empty()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub(crate) engine: Option<EngineKind>,
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) background: bool,
    pub(crate) ordered: bool,
    pub(crate) region_bytes_max: Option<u64>,
    pub(crate) durability: Option<Durability>,
    pub(crate) sync_interval: Duration,
    pub(crate) clock: Clock,
    pub(crate) read_cache_bytes: u64,
    pub(crate) memory_bytes_max: Option<u64>,
    /// True if a store without a journal opens without the limit.
    pub(crate) is_memory_optional: bool,
    pub(crate) tuning: Tuning,
    pub(crate) emulation: Emulation,
}

/// The values of [`Options::region_bytes_max`].
pub(crate) struct Addresses {
    pub(crate) limit_bytes: u64,
    pub(crate) kept_bytes: u64,
}

/// The longest possible region, in bytes; also the default.
const REGION_BYTES_MAX: u64 = 1 << 40;
/// Enough threads to keep up with all writers that one machine's memory can serve.
const BACKGROUND_THREADS_MAX: usize = 8;

/// Bounds the loss for users who can afford some: the writes of 100 ms, and those made during the sync.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

impl Default for Options {
    fn default() -> Options {
        Options {
            engine: None,
            create: true,
            read_only: false,
            background: true,
            ordered: true,
            region_bytes_max: None,
            durability: None,
            sync_interval: SYNC_INTERVAL,
            clock: Clock::default(),
            read_cache_bytes: 0,
            memory_bytes_max: None,
            is_memory_optional: false,
            tuning: Tuning::default(),
            emulation: Emulation::default(),
        }
    }
}

impl Options {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets the engine of a new store (default: HiKV). An existing store keeps its engine, and does not open if
    /// another one is set.
    #[must_use]
    pub fn engine(self, engine: EngineKind) -> Options {
        Options { engine: Some(engine), ..self }
    }

    /// Creates the store if it is missing (default: yes).
    #[must_use]
    pub fn create(self, create: bool) -> Options {
        Options { create, ..self }
    }

    /// Opens the store for reading: nothing is created, recovered or changed (default: no).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::Options;
    ///
    /// hikv::Store::open(dir.path())?.put("key", "value")?;
    /// let store = Options::new().read_only(true).open(dir.path())?;
    /// assert!(store.put("key", "other").is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Options {
        Options { read_only, ..self }
    }

    /// Starts background threads, which grow the region, free space ahead of writers and maintain the ordered index
    /// (default: yes). Without them, writers and scans do this work.
    #[must_use]
    pub fn background(self, background: bool) -> Options {
        Options { background, ..self }
    }

    /// Allows ordered operations (default: yes). They cost nothing before the first call of
    /// [`Tree::ordered`](crate::Tree::ordered). A store opened without order has no ordered index.
    #[must_use]
    pub fn ordered(self, ordered: bool) -> Options {
        Options { ordered, ..self }
    }

    /// Sets the longest region while the store is open, in bytes (default and limit: 1 TiB). A process has about 128
    /// TiB of addresses for all its stores, and each store reserves `region_bytes_max` of them.
    ///
    /// By default, a store reserves 32 GiB, and uses the addresses behind these when it grows further. In a process
    /// with few stores these addresses stay free. If the process uses them for something else, writes fail as in a
    /// full region until the store is opened again. So a process with hundreds of stores should set a value for each
    /// store that grows beyond 32 GiB.
    #[must_use]
    pub fn region_bytes_max(self, region_bytes_max: u64) -> Options {
        Options { region_bytes_max: Some(region_bytes_max), ..self }
    }

    /// Sets the durability of acknowledged writes (default: the highest level of the storage). On an ordinary disk a
    /// new store gets a journal, which provides `power`; with `process` it gets none. A journaled store can be opened
    /// at any level. A level below one that the storage provides at no cost is ignored; a level above it is
    /// [`OpenError::Durability`].
    #[must_use]
    pub fn durability(self, durability: Durability) -> Options {
        Options { durability: Some(durability), ..self }
    }

    /// Sets the longest time between a write and the sync of the log that covers it, with durability `buffered`
    /// (default: 100 ms; limit: 30 days). A sync may begin later while earlier syncs still run. Once a write has
    /// waited for two intervals, later writes return only after they are synced. So a power failure loses at most the
    /// writes of two intervals.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{Durability, Options};
    /// use std::time::Duration;
    ///
    /// // A power failure may cost the last writes, but none that is older than 20 ms.
    /// let options = Options::new().durability(Durability::Buffered).sync_interval(Duration::from_millis(10));
    /// options.open(dir.path())?.put("click", "1")?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn sync_interval(self, sync_interval: Duration) -> Options {
        Options { sync_interval, ..self }
    }

    /// Caches hot items in that many bytes of DRAM, for a region in slower memory (default: 0, no cache; otherwise at
    /// least 64 KiB). Values up to 4 KiB are cached. The engine `hikv` uses a read cache, `rewo-hash` its cached
    /// table. Stores of other engines do not open with it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// let store = hikv::Options::new().read_cache_bytes(1 << 20).open(dir.path())?;
    /// store.put("key", "value")?;
    /// assert_eq!(store.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn read_cache_bytes(self, read_cache_bytes: u64) -> Options {
        Options { read_cache_bytes, ..self }
    }

    /// Limits the memory of a journaled store, in bytes, so that it may be larger than memory (default: no limit, the
    /// whole store is kept in memory; at least 64 MiB). The limit counts the pages of the store that are in memory, the
    /// engine's own tables, the read cache and the log's buffers. Pages are read from the disk when they are needed,
    /// and the pages that were used least recently are dropped.
    ///
    /// Operations under way may exceed the limit by the pages that they use. So may a callback that keeps a value in
    /// place, and the entries of a long log after a crash, until the first checkpoint. A batch that needs more than
    /// half of the limit is refused. Stores on tmpfs, DAX or without a journal do not open with a limit: their memory
    /// is the storage itself.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let refused = hikv::Options::new().memory_bytes_max(1 << 20).open(dir.path()).unwrap_err();
    /// assert!(refused.to_string().contains("memory_bytes_max"));
    /// ```
    #[must_use]
    pub fn memory_bytes_max(self, memory_bytes_max: u64) -> Options {
        Options { memory_bytes_max: Some(memory_bytes_max), ..self }
    }

    /// Limits the memory if the store has a journal.
    pub(crate) fn memory_if_journaled(self, memory_bytes_max: Option<u64>) -> Options {
        Options { memory_bytes_max, is_memory_optional: true, ..self }
    }

    /// Sets the clock by which keys expire (default: the system's clock). Other clocks are for tests: background
    /// threads still sleep by the system's time.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Options {
        Options { clock, ..self }
    }

    /// Changes options that few programs set.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::Options;
    ///
    /// let options = Options::new().tuning(|tuning| tuning.background_threads(1).log_bytes_max(64 << 20));
    /// let store = options.open(dir.path())?;
    /// assert_eq!(store.stats().worker_count, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tuning(self, change: impl FnOnce(Tuning) -> Tuning) -> Options {
        Options { tuning: change(self.tuning), ..self }
    }

    /// Emulates slower memory, or counts persists. Needs the feature `probes`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::Options;
    ///
    /// let store = Options::new().emulation(|emulation| emulation.count_persists(true)).open(dir.path())?;
    /// store.put("key", "value")?;
    /// assert!(store.stats().fences > Some(0));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn emulation(self, change: impl FnOnce(Emulation) -> Emulation) -> Options {
        Options { emulation: change(self.emulation), ..self }
    }

    /// Checks the options for a new store, before it is created.
    pub(crate) fn check_new(&self) -> Result<(), OpenError> {
        self.check_engine(self.engine.unwrap_or_default())
    }

    /// Refuses options that the engine does not use.
    pub(crate) fn check_engine(&self, engine: EngineKind) -> Result<(), OpenError> {
        if !engine.is_built() {
            return Err(OpenError::EngineNotBuilt { engine });
        }
        let asked = [
            (self.tuning.read_cache_threads > 0, engine.has_read_cache_threads(), "threads for a read cache"),
            (self.read_cache_bytes > 0, engine.has_read_cache(), "read cache"),
            (self.tuning.pre_evict, engine.has_pre_eviction(), "pre-eviction"),
            (self.tuning.tree_order.is_some(), engine.has_tree_order(), "order of a tree"),
        ];
        match asked.into_iter().find(|(is_asked, is_there, _)| *is_asked && !is_there) {
            Some((_, _, what)) => Err(OpenError::Option { what: format!("engine {engine} has no {what}") }),
            None => Ok(()),
        }
    }

    /// Returns the longest region, and the bytes of addresses that are reserved at open.
    pub(crate) fn addresses(&self) -> Addresses {
        match self.region_bytes_max {
            Some(limit_bytes) => Addresses { limit_bytes, kept_bytes: limit_bytes },
            None => Addresses { limit_bytes: REGION_BYTES_MAX, kept_bytes: pmem_os::KEPT_BYTES },
        }
    }

    pub(crate) fn worker_count(&self) -> usize {
        if !self.background || self.read_only && !self.ordered {
            return 0;
        }
        let core_count = || thread::available_parallelism().map_or(1, NonZero::get).min(BACKGROUND_THREADS_MAX);
        self.tuning.background_threads.unwrap_or_else(if self.ordered { core_count } else { || 1 })
    }
}
