//! The HiKV engine, and the designs in its paper's comparison.

use std::path::Path;

use bench::variants::{BlockedQueues, HashOnly, Par, Synchronous, Varied, Wal};
use bench::{Candidate, Subject};
use clap::ValueEnum;
use hikv::{EngineKind, Options, Store};
use pmem::Latency;

use crate::failure::Failure;

/// A design from the comparison in the HiKV paper (`bench::variants`); only for the HiKV engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(super) enum Variant {
    /// The HiKV engine itself
    #[default]
    Hikv,
    /// No key order
    HashOnly,
    /// Writers update the tree themselves
    Sync,
    /// One tree per key range; keys migrate between ranges
    Par,
    /// A log record before each write
    Wal,
    /// Scans lock the queues
    BlockedQueues,
}

/// A measurement of any subject.
pub(super) trait Measure {
    fn measure(self, subject: &impl Subject) -> Result<u64, Failure>;
}

impl Variant {
    /// Checks that the requested engine has this variant.
    pub(super) fn check(self, engine: Option<EngineKind>) -> Result<(), Failure> {
        match engine.filter(|engine| *engine != EngineKind::HiKv && self != Variant::Hikv) {
            Some(engine) => {
                let name = self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
                Err(Failure::Error(format!(
                    "the variant {name} exists only for engine hikv, not for engine {}",
                    engine.name()
                )))
            }
            None => Ok(()),
        }
    }

    /// Returns true if writes queue changes that other threads apply.
    pub(super) fn leaves_changes(self) -> bool {
        !matches!(self, Variant::Sync | Variant::HashOnly)
    }

    /// Returns the options to open the variant's store with.
    pub(super) fn options(self, options: Options, is_ordered: bool) -> Options {
        match self {
            Variant::HashOnly | Variant::Par => options.ordered(false),
            Variant::Sync => options.ordered(is_ordered).background(false),
            Variant::Hikv | Variant::Wal | Variant::BlockedQueues => options.ordered(is_ordered),
        }
    }

    /// Measures `store` as this variant.
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

/// The settings of variants in addition to the store.
pub(super) struct Setting<'a> {
    /// The directory of the store and of the log of `wal`.
    pub(super) home: &'a Path,
    /// The latency of that log.
    pub(super) latency: Latency,
    /// The number of trees of `par`.
    pub(super) range_count: usize,
    /// The capacity of the queue of each tree, in changes.
    pub(super) queue_bound: usize,
    /// The number of threads that apply these changes.
    pub(super) backend_count: usize,
}
