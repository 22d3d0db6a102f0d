//! The table of engines. A new engine needs a variant of [`EngineKind`], an arm in each `match` here, and a module
//! that creates and opens its stores. Every engine except the default one is a feature of this crate.

mod hikv;
#[cfg(feature = "ink")]
mod ink;
#[cfg(feature = "pmekv")]
mod pmekv;
#[cfg(feature = "rewo-hash")]
mod rewo_hash;
#[cfg(feature = "toy")]
mod toy;

use std::sync::Arc;

use engine::{Engine, OpenError};
use heap::{HeapError, Parameters};
use pmem::Medium;

use crate::opening::Progress;
use crate::{EngineKind, Options};

/// Creates a store in an empty region.
pub(crate) fn format<M: Medium>(
    medium: M,
    options: &Options,
    parameters: &Parameters,
) -> Result<Arc<dyn Engine>, OpenError> {
    match options.engine.unwrap_or_default() {
        EngineKind::HiKv => hikv::format(medium, options, parameters),
        #[cfg(feature = "rewo-hash")]
        EngineKind::RewoHash => rewo_hash::format(medium, options, parameters),
        #[cfg(feature = "ink")]
        EngineKind::Ink => ink::format(medium, options, parameters),
        #[cfg(feature = "pmekv")]
        EngineKind::Pmekv => pmekv::format(medium, options, parameters),
        #[cfg(feature = "toy")]
        EngineKind::Toy => toy::format(medium, parameters),
        #[allow(unreachable_patterns, reason = "a build with all engines knows no other kind")]
        left_out => Err(not_built(left_out)),
    }
}

/// Opens the store in a region with its own engine.
pub(crate) fn open<M: Medium>(
    medium: M,
    options: &Options,
    #[cfg_attr(not(feature = "pmekv"), allow(unused_variables, reason = "only PMEKV reports progress"))]
    progress: &Progress<'_>,
) -> Result<Arc<dyn Engine>, OpenError> {
    match EngineKind::of(&medium, options.engine)? {
        EngineKind::HiKv => hikv::open(medium, options),
        #[cfg(feature = "rewo-hash")]
        EngineKind::RewoHash => rewo_hash::open(medium, options),
        #[cfg(feature = "ink")]
        EngineKind::Ink => ink::open(medium, options),
        #[cfg(feature = "pmekv")]
        EngineKind::Pmekv => pmekv::open(medium, options, progress),
        #[cfg(feature = "toy")]
        EngineKind::Toy => toy::open(medium),
        #[allow(unreachable_patterns, reason = "a build with all engines knows no other kind")]
        left_out => Err(not_built(left_out)),
    }
}

/// Returns the error that [`crate::OpenError::unusable`] turns into [`crate::OpenError::EngineNotBuilt`].
fn not_built(kind: EngineKind) -> OpenError {
    OpenError::Heap(HeapError::WrongEngine { found: kind.number(), wanted: EngineKind::default().number() })
}

/// Returns parameters with at most `lane_count_max` lanes.
#[cfg(any(feature = "ink", feature = "pmekv"))]
fn with_lanes(parameters: &Parameters, lane_count_max: u32) -> Parameters {
    Parameters { partition_count: parameters.partition_count.min(lane_count_max), ..*parameters }
}
