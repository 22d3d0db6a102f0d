//! HiKV as it ships, and variants for comparison.

use std::path::Path;

use bench::variants::{BlockedQueues, HashOnly, Par, Synchronous, Varied, Wal};
use bench::{Candidate, Subject};
use clap::ValueEnum;
use hikv::{EngineKind, Options, Store};
use pmem::Latency;

use crate::failure::Failure;

/// What HiKV's paper compares it with (`bench::variants`): of HiKV, and of no other engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(super) enum Variant {
    /// The engine as it ships
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
    /// Sees that the engine which is asked for has such a variant.
    pub(super) fn check(self, engine: Option<EngineKind>) -> Result<(), Failure> {
        match engine.filter(|engine| *engine != EngineKind::HiKv && self != Variant::Hikv) {
            Some(engine) => {
                let name = self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
                Err(Failure::Error(format!(
                    "the variant {name} is one of engine hikv, and engine {} is asked for",
                    engine.name()
                )))
            }
            None => Ok(()),
        }
    }

    /// What its store is opened with.
    pub(super) fn options(self, options: Options, is_ordered: bool) -> Options {
        match self {
            Variant::HashOnly | Variant::Par => options.ordered(false),
            Variant::Sync => options.ordered(is_ordered).background(false),
            Variant::Hikv | Variant::Wal | Variant::BlockedQueues => options.ordered(is_ordered),
        }
    }

    /// Measures `store`, this way.
    pub(super) fn measure(self, store: &Store, setting: &Setting<'_>, measure: impl Measure) -> Result<u64, Failure> {
        let store = Candidate::new(store.clone());
        match self {
            Variant::Hikv => measure.measure(&store),
            Variant::HashOnly => measure.measure(&Varied::new(store, HashOnly)),
            Variant::Sync => measure.measure(&Varied::new(store, Synchronous)),
            Variant::BlockedQueues => measure.measure(&Varied::new(store, BlockedQueues::default())),
            Variant::Par => {
                let par = Par::new(setting.range_count, setting.queue_bound, setting.backend_count);
                measure.measure(&Varied::new(store, par))
            }
            Variant::Wal => {
                let log = setting.home.join("write-ahead-log");
                let wal = Wal::create(&log, setting.latency).map_err(|error| Failure::at(log.display(), error))?;
                measure.measure(&Varied::new(store, wal))
            }
        }
    }
}

/// What variants have beside the store.
pub(super) struct Setting<'a> {
    /// Where the store lies, and the log of `wal`.
    pub(super) home: &'a Path,
    /// How slow that log is.
    pub(super) latency: Latency,
    /// Trees of `par`.
    pub(super) range_count: usize,
    /// Changes that wait for each at most.
    pub(super) queue_bound: usize,
    /// Threads that keep those up.
    pub(super) backend_count: usize,
}
