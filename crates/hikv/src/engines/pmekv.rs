//! Opens and creates stores of the engine PMEKV.

use std::sync::Arc;

use engine::{Engine, OpenError};
use engine_pmekv::Pmekv;
use heap::Parameters;
use pmem::Medium;
use pmem_os::HostDram;

use super::with_lanes;
use crate::opening::Progress;
use crate::{OpenProgress, Options};

/// The number of lanes. Each has a log of at least two segments of 64 KiB.
const LANE_COUNT_MAX: u32 = 16;

pub(super) fn format<M: Medium>(
    medium: M,
    options: &Options,
    parameters: &Parameters,
) -> Result<Arc<dyn Engine>, OpenError> {
    let parameters = with_lanes(parameters, LANE_COUNT_MAX);
    Ok(set_up(Pmekv::format(medium, HostDram, &parameters, engine_pmekv::Options::default())?, options))
}

pub(super) fn open<M: Medium>(
    medium: M,
    options: &Options,
    progress: &Progress<'_>,
) -> Result<Arc<dyn Engine>, OpenError> {
    let indexing = |done, total| progress(OpenProgress::Indexing { done, total });
    let is_past = options.tuning.skip_damaged && options.read_only;
    let open = if is_past { Pmekv::open_skipping_damage } else { Pmekv::open_with_progress };
    Ok(set_up(open(medium, HostDram, engine_pmekv::Options::default(), &indexing)?, options))
}

fn set_up<M: Medium>(store: Pmekv<M, HostDram>, options: &Options) -> Arc<dyn Engine> {
    Arc::new(
        store
            .verifying(options.tuning.verify)
            .by_clock(options.clock.clone())
            .compacting_above(options.tuning.compact_above),
    )
}
