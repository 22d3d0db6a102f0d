//! How a store is opened.

mod check;

use std::num::NonZero;
use std::thread;
use std::time::Duration;

use engine::{Clock, Verify};
use pmem::Durability;

use crate::{EngineKind, OpenError};

/// How a store is opened. The defaults suit most: created if it is not there, read and written.
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

/// See [`Options::block_delays`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BlockDelays {
    pub(crate) block_bytes: u64,
    pub(crate) read: Duration,
    pub(crate) persist: Duration,
}

/// See [`Options::region_bytes_max`].
pub(crate) struct Addresses {
    pub(crate) limit_bytes: u64,
    pub(crate) kept_bytes: u64,
}

/// The most a region can have, and the default.
const REGION_BYTES_MAX: u64 = 1 << 40;
/// Enough that splits of many writers rarely wait for one another, few enough that an empty store is small.
const PARTITION_COUNT: u32 = 32;

/// Slots are a twentieth longer than their items on average, so with these and with what a request for space leaves behind a
/// file stays within 1.3 times its keys and values; below, each byte gained would cost many moved.
const COMPACT_ABOVE: f64 = 1.15;

/// Enough to keep up with any number of writers that one memory serves.
const BACKGROUND_THREADS_MAX: usize = 8;

/// What a user loses who can bear to lose some: a tenth of a second, and what comes while the disk syncs.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// About a second of replay.
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
    /// Whether a store that is opened to be read alone is opened past damaged items, where an engine reads all when it opens a store (PMEKV).
    /// Damaged items are not there then, and [`crate::ReadView::for_each_skipping_damage`] tells of them. By default such a store does not open.
    #[must_use]
    pub fn skip_damaged(self, past_damage: bool) -> Options {
        Options { past_damage, ..self }
    }

    /// The defaults.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    /// The engine that keeps a new store (default: HiKV). A store that is there keeps its own: if another one is asked for, it
    /// is not opened.
    #[must_use]
    pub fn engine(self, engine: EngineKind) -> Options {
        Options { engine: Some(engine), ..self }
    }

    /// Create the store if it is not there (default: yes).
    #[must_use]
    pub fn create(self, create: bool) -> Options {
        Options { create, ..self }
    }

    /// Open for reading only: nothing is created, recovered or changed (default: no).
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Options {
        Options { read_only, ..self }
    }

    /// Ask the kernel for huge pages if the region lies in tmpfs (default: yes). A refusal costs speed only.
    #[must_use]
    pub fn huge_pages(self, huge_pages: bool) -> Options {
        Options { huge_pages, ..self }
    }

    /// Run background threads, which grow and free ahead of writers and keep the order (default: yes). Without them writers
    /// and scans do so themselves.
    #[must_use]
    pub fn background(self, background: bool) -> Options {
        Options { background, ..self }
    }

    /// How many background threads (default: one for each core, up to 8; limit: 256). All of them build the ordered index; then they
    /// sleep but for one, or more where many write.
    #[must_use]
    pub fn background_threads(self, background_threads: usize) -> Options {
        Options { background_threads: Some(background_threads), ..self }
    }

    /// How many queues changes wait in for the ordered index, and how many changes each holds, a power of two (default: a queue for
    /// each background thread, of 4,096; limit: 4,194,304 changes in all). Of no account for engines whose index is ordered.
    #[must_use]
    pub fn order_queues(self, queue_count: usize, queue_bound: usize) -> Options {
        Options { order_queues: Some((queue_count, queue_bound)), ..self }
    }

    /// Able to keep keys in order (default: yes), which costs nothing until [`Store::ordered`](crate::Store::ordered) is asked for. A store without
    /// order has nothing of it.
    #[must_use]
    pub fn ordered(self, ordered: bool) -> Options {
        Options { ordered, ..self }
    }

    /// Count flushes and fences, for [`crate::Stats::fences`]; a few nanoseconds an operation (default: no). It needs the feature
    /// `probes`.
    #[must_use]
    pub fn count_persists(self, count_persists: bool) -> Options {
        Options { count_persists, ..self }
    }

    /// What reads compare before they believe it (default: the checksum of each value that they show). What they do not,
    /// [`Store::verify`](crate::Store::verify) does. Walks and backups compare every checksum, whatever is said here.
    #[must_use]
    pub fn verify_reads(self, verify: Verify) -> Options {
        Options { verify, ..self }
    }

    /// Gather items and give space back in the background while the store takes more than `ratio` times what items and index
    /// occupy, and some MiB can be gained (default: 1.15); with `None` only [`Store::compact`](crate::Store::compact) does. It takes a quarter of
    /// one background thread's time at most, and none where nothing can be gained.
    #[must_use]
    pub fn compact_above(self, ratio: impl Into<Option<f64>>) -> Options {
        Options { compact_above: ratio.into(), ..self }
    }

    /// The most that the region may grow to while the store is open, in bytes (default and limit: 1 TiB). A process has some 128 TiB of addresses for
    /// all its stores. The store keeps `region_bytes_max` of them for itself. By default it keeps 32 GiB, and takes the addresses
    /// behind these when it grows further: they stay free in a process that has few stores. Where the process uses them for something else a write fails,
    /// as in a full region, until the store is opened again: so a process with hundreds of stores names a value for those that grow beyond 32 GiB.
    #[must_use]
    pub fn region_bytes_max(self, region_bytes_max: u64) -> Options {
        Options { region_bytes_max: Some(region_bytes_max), ..self }
    }

    /// Partitions of a new store's hash index, a power of two up to 256 (default: 32). An existing store keeps its own.
    #[must_use]
    pub fn partition_count(self, partition_count: u32) -> Options {
        Options { partition_count, ..self }
    }

    /// Slow every persist down by this much, to emulate slower memory (HiKV paper, section 4.1: 600 ns; limit: 1 s). It needs the feature
    /// `probes`.
    #[must_use]
    pub fn persist_delay(self, persist_delay: Duration) -> Options {
        Options { persist_delay, ..self }
    }

    /// Slow every access to an item down by this much, to emulate slower memory (HiKV paper, section 4.6; limit: 1 s). It needs the feature
    /// `probes`.
    #[must_use]
    pub fn read_delay(self, read_delay: Duration) -> Options {
        Options { read_delay, ..self }
    }

    /// Slow down every block of `block_bytes`, a power of two, that is read or written back while the emulated device does not hold
    /// it, as memory does whose unit is longer than a line (Rewo-Hash paper, section 2: 256 bytes; limit of each: 1 s). It needs the feature
    /// `probes`.
    #[must_use]
    pub fn block_delays(self, block_bytes: u64, read: Duration, persist: Duration) -> Options {
        Options { block_delays: BlockDelays { block_bytes, read, persist }, ..self }
    }

    /// What an acknowledged write is to survive (default: the most that the medium gives). On an ordinary disk a new store
    /// gets a journal, which gives `power`, unless `process` is asked for here. A journaled store can be opened at any level.
    /// Less than the medium gives at no cost is ignored; more is [`OpenError::Durability`].
    #[must_use]
    pub fn durability(self, durability: Durability) -> Options {
        Options { durability: Some(durability), ..self }
    }

    /// With durability `buffered`: how long after a write a sync of the log begins, at most, unless others are still running
    /// (default: 100 ms; limit: 30 days). A write that comes while an older one has waited for two intervals returns once it is synced: so loss of
    /// power takes the writes of two intervals at most.
    #[must_use]
    pub fn sync_interval(self, sync_interval: Duration) -> Options {
        Options { sync_interval, ..self }
    }

    /// On a journal: acknowledge writes before they are synced, and leave that to [`Store::sync`](crate::Store::sync) (default: no). For loading
    /// much at once, where what was written between two syncs can be written again.
    #[must_use]
    pub fn sync_on_request(self, sync_on_request: bool) -> Options {
        Options { sync_on_request, ..self }
    }

    /// The most that a journal's log takes on the disk, in bytes, which bounds what opening replays (default: 256 MiB; 8 MiB
    /// at least). Writers that fill the log faster than it is applied wait.
    #[must_use]
    pub fn log_bytes_max(self, log_bytes_max: u64) -> Options {
        Options { log_bytes_max, ..self }
    }

    /// Copies of items that are read often, in volatile memory of so many bytes (default: 0, none; 64 KiB at least, if any): for a region
    /// whose memory is slower than the host's. Values of up to 4 KiB are copied. The engine `hikv` has them as a read cache, `rewo-hash`
    /// as its cached table; a store of another engine is not opened with it.
    #[must_use]
    pub fn read_cache_bytes(self, read_cache_bytes: u64) -> Options {
        Options { read_cache_bytes, ..self }
    }

    /// So many threads write the copies of the engine `rewo-hash`'s cached table beside the items' writers (default: 0, the writers do), 16
    /// at most. They sleep while nobody writes; a copy that none of them has begun with is its writer's to write. A store of another
    /// engine is not opened with it, nor one without [`Options::read_cache_bytes`].
    #[must_use]
    pub fn read_cache_threads(self, read_cache_threads: usize) -> Options {
        Options { read_cache_threads, ..self }
    }

    /// Has the background of a store of the engine `rewo-hash` make room in full buckets ahead of inserts (default: no). A store of
    /// another engine is not opened with it.
    #[must_use]
    pub fn pre_evict(self, pre_evict: bool) -> Options {
        Options { pre_evict, ..self }
    }

    /// Pairs of a node of a new store of the engine `ink`: 7, 15, 31, 63, 127 or 255 (default: 63). A store that is there keeps its
    /// own; a store of another engine is not opened with it.
    #[must_use]
    pub fn tree_order(self, tree_order: usize) -> Options {
        Options { tree_order: Some(tree_order), ..self }
    }

    /// The clock by which keys expire (default: the system's). Another one is for tests: background threads sleep by the
    /// system's time whatever it says.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Options {
        Options { clock, ..self }
    }

    /// Comes before a new store is made.
    pub(crate) fn check_new(&self) -> Result<(), OpenError> {
        self.check_engine(self.engine.unwrap_or_default())
    }

    /// What an engine has no use for is not taken in silence.
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

    /// How long the region may get, and for how much of that addresses are kept from the start.
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
