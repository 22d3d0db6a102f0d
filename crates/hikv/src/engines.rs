//! Which engine keeps a store: the one place that knows them all. A new engine is a kind here, and an arm of each `match`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use engine::{Engine, OpenError};
use engine_hikv::{HiKv, Ordered};
use engine_ink::Ink;
use engine_pmekv::Pmekv;
use engine_rewo_hash::RewoHash;
#[cfg(feature = "toy")]
use engine_toy::Toy;
use heap::{EngineNumber, HeapError, Parameters, Region};
use pmem::Medium;
use pmem_os::HostDram;

use crate::opening::Progress;
use crate::{OpenProgress, Options};

/// Writers of InK that can be under way at once: each has a log of 64 KiB in the region.
const INK_LANE_COUNT_MAX: u32 = 16;

/// Lanes of PMEKV: each has a log of two segments of 64 KiB at least.
const PMEKV_LANE_COUNT_MAX: u32 = 16;

/// An engine that can keep a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum EngineKind {
    /// A persistent hash index for single keys, and a B+tree in volatile memory for ranges (HiKV).
    #[default]
    HiKv,
    /// A persistent hash table of buckets of a block, written without a log: small items lie in it, and nothing has an order
    /// (Rewo-Hash).
    RewoHash,
    /// A persistent B+tree: keys in order at once, and of them in volatile memory no more than what some begin with (InK).
    Ink,
    /// An ordered index in volatile memory, and a log that acknowledges a write with one fence (PMEKV).
    Pmekv,
    /// The smallest engine that persists, which shows how one is added. No release has it.
    #[cfg(feature = "toy")]
    Toy,
}

impl EngineKind {
    /// All that this build has.
    pub const ALL: &[EngineKind] = &[
        EngineKind::HiKv,
        EngineKind::RewoHash,
        EngineKind::Ink,
        EngineKind::Pmekv,
        #[cfg(feature = "toy")]
        EngineKind::Toy,
    ];

    /// Whether it keeps copies of hot items in volatile memory: [`Options::read_cache_bytes`].
    pub(crate) fn has_read_cache(self) -> bool {
        matches!(self, EngineKind::HiKv | EngineKind::RewoHash)
    }

    /// Whether its background makes room in full buckets ahead of inserts: [`Options::pre_evict`].
    pub(crate) fn has_pre_eviction(self) -> bool {
        self == EngineKind::RewoHash
    }

    /// Whether threads of its own may write them: [`Options::read_cache_threads`].
    pub(crate) fn has_read_cache_threads(self) -> bool {
        self == EngineKind::RewoHash
    }

    /// Whether its tree's nodes may have other numbers of keys: [`Options::tree_order`].
    pub(crate) fn has_tree_order(self) -> bool {
        self == EngineKind::Ink
    }

    /// Its number in a store's first bytes.
    fn number(self) -> EngineNumber {
        match self {
            EngineKind::HiKv => EngineNumber::HIKV,
            EngineKind::RewoHash => EngineNumber::REWO_HASH,
            EngineKind::Ink => EngineNumber::INK,
            EngineKind::Pmekv => EngineNumber::PMEKV,
            #[cfg(feature = "toy")]
            EngineKind::Toy => EngineNumber::TOY,
        }
    }

    /// Its name in options and stats.
    ///
    /// # Panics
    /// Never: every kind has a name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.number().name().expect("an engine that has a number has a name")
    }

    /// The kind that keeps the region of `medium`, whichever was asked for.
    fn of<M: Medium>(medium: &M, wanted: Option<EngineKind>) -> Result<EngineKind, HeapError> {
        let found = Region::engine(medium)?;
        let kind = EngineKind::ALL.iter().copied().find(|kind| kind.number() == found);
        match (kind, wanted) {
            (Some(kind), None) => Ok(kind),
            (Some(kind), Some(wanted)) if kind == wanted => Ok(kind),
            (_, wanted) => Err(HeapError::WrongEngine { found, wanted: wanted.unwrap_or_default().number() }),
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no engine's of this build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownEngine {
    /// The name.
    pub name: String,
}

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = EngineKind::ALL.iter().map(|kind| kind.name()).collect();
        write!(f, "there is no engine '{}'; there is {}", self.name, names.join(", "))
    }
}

impl std::error::Error for UnknownEngine {}

impl FromStr for EngineKind {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<EngineKind, UnknownEngine> {
        let kind = EngineKind::ALL.iter().copied().find(|kind| kind.name() == name);
        kind.ok_or_else(|| UnknownEngine { name: name.to_owned() })
    }
}

/// Makes a store in an empty region.
pub(crate) fn format<M: Medium>(
    medium: M,
    options: &Options,
    parameters: &Parameters,
) -> Result<Arc<dyn Engine>, OpenError> {
    match options.engine.unwrap_or_default() {
        EngineKind::HiKv => hikv(HiKv::format(medium, HostDram, parameters)?, options),
        EngineKind::RewoHash => rewo_hash(RewoHash::format(medium, HostDram, parameters)?, options),
        EngineKind::Ink => {
            let parameters = with_lanes(parameters, INK_LANE_COUNT_MAX);
            let order = options.tree_order.unwrap_or(engine_ink::Options::default().order);
            let tree = engine_ink::Options { order, ..engine_ink::Options::default() };
            Ok(ink(Ink::format(medium, HostDram, &parameters, tree)?, options))
        }
        EngineKind::Pmekv => {
            let parameters = with_lanes(parameters, PMEKV_LANE_COUNT_MAX);
            Ok(pmekv(Pmekv::format(medium, HostDram, &parameters, engine_pmekv::Options::default())?, options))
        }
        #[cfg(feature = "toy")]
        EngineKind::Toy => Ok(Arc::new(Toy::format(medium, HostDram, parameters)?)),
    }
}

/// Opens the store in a region, by the engine that it belongs to.
pub(crate) fn open<M: Medium>(
    medium: M,
    options: &Options,
    progress: &Progress<'_>,
) -> Result<Arc<dyn Engine>, OpenError> {
    match EngineKind::of(&medium, options.engine)? {
        EngineKind::HiKv => hikv(HiKv::open(medium, HostDram)?, options),
        EngineKind::RewoHash => rewo_hash(RewoHash::open(medium, HostDram)?, options),
        EngineKind::Ink => Ok(ink(Ink::open(medium, HostDram, engine_ink::Options::default())?, options)),
        EngineKind::Pmekv => {
            let indexing = |done, total| progress(OpenProgress::Indexing { done, total });
            let is_past = options.past_damage && options.read_only;
            let open = if is_past { Pmekv::open_past_damage } else { Pmekv::open_watched };
            let store = open(medium, HostDram, engine_pmekv::Options::default(), &indexing)?;
            Ok(pmekv(store, options))
        }
        #[cfg(feature = "toy")]
        EngineKind::Toy => Ok(Arc::new(Toy::open(medium, HostDram)?)),
    }
}

fn with_lanes(parameters: &Parameters, lane_count_max: u32) -> Parameters {
    Parameters { partition_count: parameters.partition_count.min(lane_count_max), ..*parameters }
}

fn pmekv<M: Medium>(pmekv: Pmekv<M, HostDram>, options: &Options) -> Arc<dyn Engine> {
    Arc::new(pmekv.verifying(options.verify).by_clock(options.clock.clone()))
}

fn rewo_hash<M: Medium>(store: RewoHash<M, HostDram>, options: &Options) -> Result<Arc<dyn Engine>, OpenError> {
    let store = store.verifying(options.verify).by_clock(options.clock.clone()).pre_evicting(options.pre_evict);
    Ok(Arc::new(store.caching(options.read_cache_bytes, HostDram)?.copying_by(options.read_cache_threads)?))
}

fn ink<M: Medium>(ink: Ink<M, HostDram>, options: &Options) -> Arc<dyn Engine> {
    Arc::new(ink.verifying(options.verify).by_clock(options.clock.clone()))
}

fn hikv<M: Medium>(hikv: HiKv<M, HostDram>, options: &Options) -> Result<Arc<dyn Engine>, OpenError> {
    let hikv = hikv
        .verifying(options.verify)
        .compacting_above(options.compact_above)
        .caching(options.read_cache_bytes, HostDram)?;
    let order = match options.order_queues {
        _ if !options.ordered => Ordered::never(HostDram),
        Some((queue_count, queue_bound)) => Ordered::bounded(queue_count, queue_bound, HostDram),
        None => Ordered::new(options.worker_count().max(1), HostDram),
    };
    Ok(Arc::new(hikv.by_clock(options.clock.clone()).keeping_order(order)))
}
