//! Options that few programs set.

use engine::Verify;

/// Large enough that splits of many writers rarely wait for each other, small enough that an empty store is small.
const PARTITION_COUNT: u32 = 32;

/// Slots are on average 5 % longer than their items. With these, and the remainder that each request for space leaves,
/// a file stays within 1.3x its keys and values. A lower ratio would move many bytes for each byte gained.
const COMPACT_ABOVE: f64 = 1.15;

/// About one second of replay.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// Options that few programs set: sizes, threads, checks. See [`crate::Options::tuning`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use hikv::{EngineKind, Options, Verify};
///
/// // A bulk load: the log is synced when the program asks for it.
/// let loading = Options::new().tuning(|tuning| tuning.sync_on_request(true).huge_pages(false).partition_count(64));
/// let store = loading.open(dir.path())?;
/// store.put("key", "value")?;
/// store.sync()?;
/// store.close()?;
///
/// let serving = |tuning: hikv::Tuning| tuning.order_queues(4, 8_192).verify_reads(Verify::Nothing);
/// assert!(Options::new().tuning(serving).open(dir.path())?.contains("key")?);
///
/// // Options of one engine, and of a store that is damaged.
/// let ink = Options::new().engine(EngineKind::HiKv).tuning(|tuning| tuning.tree_order(31));
/// assert!(ink.open(dir.path()).is_err(), "the store is not of the engine ink");
/// let rewo_hash = Options::new().tuning(|tuning| tuning.read_cache_threads(1).pre_evict(true));
/// assert!(rewo_hash.open(dir.path()).is_err(), "nor of the engine rewo-hash");
/// let damaged = Options::new().read_only(true).tuning(|tuning| tuning.skip_damaged(true));
/// assert!(damaged.open(dir.path())?.contains("key")?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Tuning {
    pub(crate) background_threads: Option<usize>,
    pub(crate) order_queues: Option<(usize, usize)>,
    pub(crate) verify: Verify,
    pub(crate) compact_above: Option<f64>,
    pub(crate) partition_count: u32,
    pub(crate) huge_pages: bool,
    pub(crate) sync_on_request: bool,
    pub(crate) log_bytes_max: u64,
    pub(crate) read_cache_threads: usize,
    pub(crate) pre_evict: bool,
    pub(crate) tree_order: Option<usize>,
    pub(crate) skip_damaged: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            background_threads: None,
            order_queues: None,
            verify: Verify::default(),
            compact_above: Some(COMPACT_ABOVE),
            partition_count: PARTITION_COUNT,
            huge_pages: true,
            sync_on_request: false,
            log_bytes_max: LOG_BYTES_MAX,
            read_cache_threads: 0,
            pre_evict: false,
            tree_order: None,
            skip_damaged: false,
        }
    }
}

impl Tuning {
    /// Sets the number of background threads (default: one per core, at most 8; limit: 256). All of them build the
    /// ordered index. Afterwards all but one sleep, or fewer under many writers.
    pub fn background_threads(self, background_threads: usize) -> Tuning {
        Tuning { background_threads: Some(background_threads), ..self }
    }

    /// Sets the number of queues for changes to the ordered index, and the changes that each holds, a power of two
    /// (default: one queue per background thread, of 4,096 changes; limit: 4,194,304 changes in total). Ignored by
    /// engines with an ordered index.
    pub fn order_queues(self, queue_count: usize, queue_bound: usize) -> Tuning {
        Tuning { order_queues: Some((queue_count, queue_bound)), ..self }
    }

    /// Sets the checks that reads make before they return a value (default: the value's checksum).
    /// [`Store::verify`](crate::Store::verify) makes all checks. Walks and backups verify every checksum, whatever is
    /// set here.
    pub fn verify_reads(self, verify: Verify) -> Tuning {
        Tuning { verify, ..self }
    }

    /// Compacts in the background while the store occupies more than `ratio` times its items and index, and several
    /// MiB can be gained (default: 1.15). With `None` only [`Store::compact`](crate::Store::compact) frees space.
    /// Background compaction uses at most 25 % of one thread's time, and none if nothing can be gained.
    pub fn compact_above(self, ratio: impl Into<Option<f64>>) -> Tuning {
        Tuning { compact_above: ratio.into(), ..self }
    }

    /// Sets the partitions of a new store's hash index, a power of two up to 256 (default: 32). An existing store
    /// keeps its number.
    pub fn partition_count(self, partition_count: u32) -> Tuning {
        Tuning { partition_count, ..self }
    }

    /// Requests huge pages from the kernel for a region in tmpfs (default: yes). A refusal costs only speed.
    pub fn huge_pages(self, huge_pages: bool) -> Tuning {
        Tuning { huge_pages, ..self }
    }

    /// Acknowledges the writes of a journal before they are synced, and leaves syncs to
    /// [`Store::sync`](crate::Store::sync) (default: no). For bulk loads, where the writes between two syncs can be
    /// repeated.
    pub fn sync_on_request(self, sync_on_request: bool) -> Tuning {
        Tuning { sync_on_request, ..self }
    }

    /// Sets the maximum size of a journal's log on the disk, in bytes (default: 256 MiB; at least 8 MiB). It bounds
    /// the log that opening replays. Writers wait if they fill the log faster than it is applied.
    pub fn log_bytes_max(self, log_bytes_max: u64) -> Tuning {
        Tuning { log_bytes_max, ..self }
    }

    /// Sets the number of threads that write copies to the cached table of the engine `rewo-hash`, in addition to the
    /// writers (default: 0, only the writers; at most 16). The threads sleep while there are no writes. A writer makes
    /// the copies that no thread has begun. Stores of other engines do not open with it, nor without
    /// [`crate::Options::read_cache_bytes`].
    pub fn read_cache_threads(self, read_cache_threads: usize) -> Tuning {
        Tuning { read_cache_threads, ..self }
    }

    /// Frees slots in full buckets ahead of inserts, in the background of a store of the engine `rewo-hash` (default:
    /// no). Stores of other engines do not open with it.
    pub fn pre_evict(self, pre_evict: bool) -> Tuning {
        Tuning { pre_evict, ..self }
    }

    /// Sets the pairs per tree node of a new store of the engine `ink`: 7, 15, 31, 63, 127 or 255 (default: 63). An
    /// existing store keeps its number. Stores of other engines do not open with it.
    pub fn tree_order(self, tree_order: usize) -> Tuning {
        Tuning { tree_order: Some(tree_order), ..self }
    }

    /// Opens a read-only store despite damaged items (default: no), for engines that read all items at open (PMEKV).
    /// Damaged items are then absent, and [`crate::ReadView::for_each_skipping_damage`] reports them. Without it, such
    /// a store does not open.
    pub fn skip_damaged(self, skip_damaged: bool) -> Tuning {
        Tuning { skip_damaged, ..self }
    }
}
