//! Opens and creates stores of the engine HiKV.

use std::sync::Arc;

use engine::{Engine, OpenError};
use engine_hikv::{HiKv, Ordered};
use heap::Parameters;
use pmem::Medium;
use pmem_os::HostDram;

use crate::Options;

pub(super) fn format<M: Medium>(
    medium: M,
    options: &Options,
    parameters: &Parameters,
) -> Result<Arc<dyn Engine>, OpenError> {
    set_up(HiKv::format(medium, HostDram, parameters)?, options)
}

pub(super) fn open<M: Medium>(medium: M, options: &Options) -> Result<Arc<dyn Engine>, OpenError> {
    set_up(HiKv::open(medium, HostDram)?, options)
}

fn set_up<M: Medium>(store: HiKv<M, HostDram>, options: &Options) -> Result<Arc<dyn Engine>, OpenError> {
    let store = store
        .verifying(options.tuning.verify)
        .compacting_above(options.tuning.compact_above)
        .caching(options.read_cache_bytes, HostDram)?;
    let order = match options.tuning.order_queues {
        _ if !options.ordered => Ordered::never(HostDram),
        Some((queue_count, queue_bound)) => Ordered::bounded(queue_count, queue_bound, HostDram),
        None => Ordered::new(options.worker_count().max(1), HostDram),
    };
    Ok(Arc::new(store.by_clock(options.clock.clone()).keeping_order(order)))
}
