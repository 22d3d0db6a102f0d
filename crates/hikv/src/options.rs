//! Options for opening a store.

mod check;

use std::num::NonZero;
use std::thread;
use std::time::Duration;

use engine::{Clock, Verify};
use pmem::Durability;

use crate::{EngineKind, OpenError};

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
    pub(crate) huge_pages: bool,
    pub(crate) background: bool,
    pub(crate) background_threads: Option<usize>,
    pub(crate) ordered: bool,
    pub(crate) order_queues: Option<(usize, usize)>,
    pub(crate) count_persists: bool,
    pub(crate) verify: Verify,
    pub(crate) compact_above: Option<f64>,
    pub(crate) region_bytes_max: Option<u64>,
    pub(crate) partition_count: u32,
    pub(crate) persist_delay: Duration,
    pub(crate) read_delay: Duration,
    pub(crate) block_delays: BlockDelays,
    pub(crate) durability: Option<Durability>,
    pub(crate) sync_interval: Duration,
    pub(crate) log_bytes_max: u64,
    pub(crate) sync_on_request: bool,
    pub(crate) clock: Clock,
    pub(crate) read_cache_bytes: u64,
    pub(crate) read_cache_threads: usize,
    pub(crate) pre_evict: bool,
    pub(crate) tree_order: Option<usize>,
    pub(crate) past_damage: bool,
}

/// The values of [`Options::block_delays`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BlockDelays {
    pub(crate) block_bytes: u64,
    pub(crate) read: Duration,
    pub(crate) persist: Duration,
}

/// The values of [`Options::region_bytes_max`].
pub(crate) struct Addresses {
    pub(crate) limit_bytes: u64,
    pub(crate) kept_bytes: u64,
}

/// The longest possible region, in bytes; also the default.
const REGION_BYTES_MAX: u64 = 1 << 40;
/// Large enough that splits of many writers rarely wait for each other, small enough that an empty store is small.
const PARTITION_COUNT: u32 = 32;

/// Slots are on average 5 % longer than their items. With these, and the remainder that each request for space leaves,
/// a file stays within 1.3x its keys and values. A lower ratio would move many bytes for each byte gained.
const COMPACT_ABOVE: f64 = 1.15;

/// Enough threads to keep up with all writers that one machine's memory can serve.
const BACKGROUND_THREADS_MAX: usize = 8;

/// Bounds the loss for users who can afford some: the writes of 100 ms, and those made during the sync.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// About one second of replay.
const LOG_BYTES_MAX: u64 = 256 << 20;

impl Default for Options {
    fn default() -> Options {
        Options {
            engine: None,
            create: true,
            read_only: false,
            huge_pages: true,
            background: true,
            background_threads: None,
            ordered: true,
            order_queues: None,
            count_persists: false,
            verify: Verify::default(),
            compact_above: Some(COMPACT_ABOVE),
            region_bytes_max: None,
            partition_count: PARTITION_COUNT,
            persist_delay: Duration::ZERO,
            read_delay: Duration::ZERO,
            block_delays: BlockDelays::default(),
            durability: None,
            sync_interval: SYNC_INTERVAL,
            log_bytes_max: LOG_BYTES_MAX,
            sync_on_request: false,
            clock: Clock::default(),
            read_cache_bytes: 0,
            read_cache_threads: 0,
            pre_evict: false,
            tree_order: None,
            past_damage: false,
        }
    }
}

impl Options {
    /// Opens a read-only store despite damaged items (default: no), for engines that read all items at open (PMEKV).
    /// Damaged items are then absent, and [`crate::ReadView::for_each_skipping_damage`] reports them. Without it, such
    /// a store does not open.
    #[must_use]
    pub fn skip_damaged(self, past_damage: bool) -> Options {
        Options { past_damage, ..self }
    }

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
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Options {
        Options { read_only, ..self }
    }

    /// Requests huge pages from the kernel for a region in tmpfs (default: yes). A refusal costs only speed.
    #[must_use]
    pub fn huge_pages(self, huge_pages: bool) -> Options {
        Options { huge_pages, ..self }
    }

    /// Starts background threads, which grow the region, free space ahead of writers and maintain the ordered index
    /// (default: yes). Without them, writers and scans do this work.
    #[must_use]
    pub fn background(self, background: bool) -> Options {
        Options { background, ..self }
    }

    /// Sets the number of background threads (default: one per core, at most 8; limit: 256). All of them build the
    /// ordered index. Afterwards all but one sleep, or fewer under many writers.
    #[must_use]
    pub fn background_threads(self, background_threads: usize) -> Options {
        Options { background_threads: Some(background_threads), ..self }
    }

    /// Sets the number of queues for changes to the ordered index, and the changes that each holds, a power of two
    /// (default: one queue per background thread, of 4,096 changes; limit: 4,194,304 changes in total). Ignored by
    /// engines with an ordered index.
    #[must_use]
    pub fn order_queues(self, queue_count: usize, queue_bound: usize) -> Options {
        Options { order_queues: Some((queue_count, queue_bound)), ..self }
    }

    /// Allows ordered operations (default: yes). They cost nothing before the first call of
    /// [`Tree::ordered`](crate::Tree::ordered). A store opened without order has no ordered index.
    #[must_use]
    pub fn ordered(self, ordered: bool) -> Options {
        Options { ordered, ..self }
    }

    /// Counts flushes and fences for [`crate::Stats::fences`] (default: no). Costs a few nanoseconds per operation.
    /// Needs the feature `probes`.
    #[must_use]
    pub fn count_persists(self, count_persists: bool) -> Options {
        Options { count_persists, ..self }
    }

    /// Sets the checks that reads make before they return a value (default: the value's checksum).
    /// [`Store::verify`](crate::Store::verify) makes all checks. Walks and backups verify every checksum, whatever is
    /// set here.
    #[must_use]
    pub fn verify_reads(self, verify: Verify) -> Options {
        Options { verify, ..self }
    }

    /// Compacts in the background while the store occupies more than `ratio` times its items and index, and several
    /// MiB can be gained (default: 1.15). With `None` only [`Store::compact`](crate::Store::compact) frees space.
    /// Background compaction uses at most 25 % of one thread's time, and none if nothing can be gained.
    #[must_use]
    pub fn compact_above(self, ratio: impl Into<Option<f64>>) -> Options {
        Options { compact_above: ratio.into(), ..self }
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

    /// Sets the partitions of a new store's hash index, a power of two up to 256 (default: 32). An existing store
    /// keeps its number.
    #[must_use]
    pub fn partition_count(self, partition_count: u32) -> Options {
        Options { partition_count, ..self }
    }

    /// Delays every persist by this time, to emulate slower memory (HiKV paper, section 4.1: 600 ns; limit: 1 s).
    /// Needs the feature `probes`.
    #[must_use]
    pub fn persist_delay(self, persist_delay: Duration) -> Options {
        Options { persist_delay, ..self }
    }

    /// Delays every access to an item by this time, to emulate slower memory (HiKV paper, section 4.6; limit: 1 s).
    /// Needs the feature `probes`.
    #[must_use]
    pub fn read_delay(self, read_delay: Duration) -> Options {
        Options { read_delay, ..self }
    }

    /// Delays every read and write-back of a block of `block_bytes`, a power of two, that the emulated device has not
    /// buffered. This emulates memory whose access unit is longer than a cache line (Rewo-Hash paper, section 2: 256
    /// bytes; limit of each delay: 1 s). Needs the feature `probes`.
    #[must_use]
    pub fn block_delays(self, block_bytes: u64, read: Duration, persist: Duration) -> Options {
        Options { block_delays: BlockDelays { block_bytes, read, persist }, ..self }
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
    #[must_use]
    pub fn sync_interval(self, sync_interval: Duration) -> Options {
        Options { sync_interval, ..self }
    }

    /// Acknowledges the writes of a journal before they are synced, and leaves syncs to
    /// [`Store::sync`](crate::Store::sync) (default: no). For bulk loads, where the writes between two syncs can be
    /// repeated.
    #[must_use]
    pub fn sync_on_request(self, sync_on_request: bool) -> Options {
        Options { sync_on_request, ..self }
    }

    /// Sets the maximum size of a journal's log on the disk, in bytes (default: 256 MiB; at least 8 MiB). It bounds
    /// the log that opening replays. Writers wait if they fill the log faster than it is applied.
    #[must_use]
    pub fn log_bytes_max(self, log_bytes_max: u64) -> Options {
        Options { log_bytes_max, ..self }
    }

    /// Caches hot items in that many bytes of DRAM, for a region in slower memory (default: 0, no cache; otherwise at
    /// least 64 KiB). Values up to 4 KiB are cached. The engine `hikv` uses a read cache, `rewo-hash` its cached
    /// table. Stores of other engines do not open with it.
    #[must_use]
    pub fn read_cache_bytes(self, read_cache_bytes: u64) -> Options {
        Options { read_cache_bytes, ..self }
    }

    /// Sets the number of threads that write copies to the cached table of the engine `rewo-hash`, in addition to the
    /// writers (default: 0, only the writers; at most 16). The threads sleep while there are no writes. A writer makes
    /// the copies that no thread has begun. Stores of other engines do not open with it, nor without
    /// [`Options::read_cache_bytes`].
    #[must_use]
    pub fn read_cache_threads(self, read_cache_threads: usize) -> Options {
        Options { read_cache_threads, ..self }
    }

    /// Frees slots in full buckets ahead of inserts, in the background of a store of the engine `rewo-hash` (default:
    /// no). Stores of other engines do not open with it.
    #[must_use]
    pub fn pre_evict(self, pre_evict: bool) -> Options {
        Options { pre_evict, ..self }
    }

    /// Sets the pairs per tree node of a new store of the engine `ink`: 7, 15, 31, 63, 127 or 255 (default: 63). An
    /// existing store keeps its number. Stores of other engines do not open with it.
    #[must_use]
    pub fn tree_order(self, tree_order: usize) -> Options {
        Options { tree_order: Some(tree_order), ..self }
    }

    /// Sets the clock by which keys expire (default: the system's clock). Other clocks are for tests: background
    /// threads still sleep by the system's time.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Options {
        Options { clock, ..self }
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
            (self.read_cache_threads > 0, engine.has_read_cache_threads(), "threads for a read cache"),
            (self.read_cache_bytes > 0, engine.has_read_cache(), "read cache"),
            (self.pre_evict, engine.has_pre_eviction(), "pre-eviction"),
            (self.tree_order.is_some(), engine.has_tree_order(), "order of a tree"),
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
        self.background_threads.unwrap_or_else(if self.ordered { core_count } else { || 1 })
    }
}
