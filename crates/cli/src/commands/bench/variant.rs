//! HiKV as it ships, and its variants for comparison.

use std::path::Path;
use std::thread;
use std::time::Duration;

use bench::variants::{BlockedQueues, Par, Synchronous, Varied, Wal};
use bench::{Candidate, Subject};
use clap::ValueEnum;
use hikv::{Options, Store};
use pmem::Latency;

use crate::failure::Failure;

/// What HiKV's paper compares it with (`bench::variants`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(super) enum Variant {
    /// HiKV as it ships
    #[default]
    Hikv,
    /// Without order
    HashOnly,
    /// The writer updates the tree
    Sync,
    /// Several trees, by ranges of keys that migrate
    Par,
    /// A log before each write
    Wal,
    /// Scans lock the queues
    BlockedQueues,
}

/// Does something with a subject, whichever it is.
pub(super) trait Measure {
    fn measure(self, subject: &impl Subject) -> Result<u64, Failure>;
}

impl Variant {
    /// What its store is opened with.
    pub(super) fn options(self, options: Options, is_ordered: bool) -> Options {
        match self {
            Variant::HashOnly | Variant::Par => options.ordered(false),
            Variant::Sync => options.ordered(is_ordered).background(false),
            Variant::Hikv | Variant::Wal | Variant::BlockedQueues => options.ordered(is_ordered),
        }
    }

    /// Measures `store`, this way. `home` is where it lies, `range_count` how many trees `par` has, and `is_pool` that calling threads apply.
    pub(super) fn measure(
        self,
        store: &Store,
        home: &Path,
        latency: Latency,
        range_count: usize,
        is_pool: bool,
        measure: impl Measure,
    ) -> Result<u64, Failure> {
        let store = Candidate::new(store.clone());
        match self {
            Variant::Hikv | Variant::HashOnly => measure.measure(&store),
            Variant::Sync => measure.measure(&Varied::new(store, Synchronous)),
            Variant::BlockedQueues => measure.measure(&Varied::new(store, BlockedQueues::default())),
            Variant::Par => {
                let backend_count = if is_pool { 0 } else { thread::available_parallelism().map_or(1, usize::from) };
                measure.measure(&Varied::new(store, Par::new(range_count, backend_count)))
            }
            Variant::Wal => {
                let log = home.join("write-ahead-log");
                let wal = Wal::create(&log, latency)
                    .map_err(|error| Failure::Error(format!("{}: {error}", log.display())))?;
                measure.measure(&Varied::new(store, wal))
            }
        }
    }
}

/// A duration that is spun, in the clock's ticks.
pub(super) fn ticks(ns: u64) -> u64 {
    pmem_os::ticks(Duration::from_nanos(ns))
}
