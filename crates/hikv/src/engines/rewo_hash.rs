//! Opens and creates stores of the engine Rewo-Hash.

use std::sync::Arc;

use engine::{Engine, OpenError};
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem::Medium;
use pmem_os::HostDram;

use crate::Options;

pub(super) fn format<M: Medium>(
    medium: M,
    options: &Options,
    parameters: &Parameters,
) -> Result<Arc<dyn Engine>, OpenError> {
    set_up(RewoHash::format(medium, HostDram, parameters)?, options)
}

pub(super) fn open<M: Medium>(medium: M, options: &Options) -> Result<Arc<dyn Engine>, OpenError> {
    set_up(RewoHash::open(medium, HostDram)?, options)
}

fn set_up<M: Medium>(store: RewoHash<M, HostDram>, options: &Options) -> Result<Arc<dyn Engine>, OpenError> {
    let store =
        store.verifying(options.tuning.verify).by_clock(options.clock.clone()).pre_evicting(options.tuning.pre_evict);
    let store = store.compacting_above(options.tuning.compact_above);
    Ok(Arc::new(store.caching(options.read_cache_bytes, HostDram)?.copying_by(options.tuning.read_cache_threads)?))
}
