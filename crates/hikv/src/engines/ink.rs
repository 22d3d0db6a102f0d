//! Opens and creates stores of the engine InK.

use std::sync::Arc;

use engine::{Engine, OpenError};
use engine_ink::Ink;
use heap::Parameters;
use pmem::Medium;
use pmem_os::HostDram;

use super::with_lanes;
use crate::Options;

/// The number of concurrent writers. Each has a log of 64 KiB in the region.
const LANE_COUNT_MAX: u32 = 16;

pub(super) fn format<M: Medium>(
    medium: M,
    options: &Options,
    parameters: &Parameters,
) -> Result<Arc<dyn Engine>, OpenError> {
    let parameters = with_lanes(parameters, LANE_COUNT_MAX);
    let order = options.tuning.tree_order.unwrap_or(engine_ink::Options::default().order);
    let tree = engine_ink::Options { order, ..engine_ink::Options::default() };
    Ok(set_up(Ink::format(medium, HostDram, &parameters, tree)?, options))
}

pub(super) fn open<M: Medium>(medium: M, options: &Options) -> Result<Arc<dyn Engine>, OpenError> {
    Ok(set_up(Ink::open(medium, HostDram, engine_ink::Options::default())?, options))
}

fn set_up<M: Medium>(store: Ink<M, HostDram>, options: &Options) -> Arc<dyn Engine> {
    Arc::new(
        store
            .verifying(options.tuning.verify)
            .by_clock(options.clock.clone())
            .compacting_above(options.tuning.compact_above),
    )
}
