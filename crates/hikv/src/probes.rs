//! Probes between an engine and its medium: counts of flushes and fences ([`crate::Emulation::count_persists`]), and
//! the delays of slower memory. Each type of medium compiles every engine again, so a build without the feature
//! `probes` is half as large.

use std::path::Path;
use std::sync::Arc;

use engine::Engine;
#[cfg(feature = "probes")]
use pmem::{Delays, Latency, PersistCounts, Probed};
use pmem::{LINE_BYTES, Medium};
#[cfg(feature = "probes")]
use pmem_os::{HostDram, ticks};

use crate::files::Begin;
use crate::options::BlockDelays;
use crate::{OpenError, Options, engines};

/// Creates or opens the store in `file`, on a medium with the probes that `options` name.
pub(crate) fn engine<M: Medium>(
    medium: M,
    options: &Options,
    begin: Begin<'_>,
    file: &Path,
) -> Result<Arc<dyn Engine>, OpenError> {
    let made = match are_wanted(options)? {
        false => start(medium, options, begin),
        #[cfg(feature = "probes")]
        true => {
            let counts = options.emulation.count_persists.then(PersistCounts::default);
            // One type covers every choice of probes, because each type compiles the engines again.
            start(Probed::with_probe(medium, (delays(options)?, counts)), options, begin)
        }
        #[cfg(not(feature = "probes"))]
        true => {
            let what = "counts of persists and delays need the feature 'probes' of the crate hikv".to_owned();
            return Err(OpenError::Option { what });
        }
    };
    made.map_err(OpenError::unusable(file))
}

fn start<M: Medium>(medium: M, options: &Options, begin: Begin<'_>) -> Result<Arc<dyn Engine>, engine::OpenError> {
    match begin {
        Begin::Format(parameters) => engines::format(medium, options, &parameters),
        Begin::Open(progress) => engines::open(medium, options, progress),
    }
}

/// Returns true if `options` request a probe.
fn are_wanted(options: &Options) -> Result<bool, OpenError> {
    let blocks = options.emulation.block_delays;
    let is_power = blocks.block_bytes.is_power_of_two() && blocks.block_bytes >= LINE_BYTES;
    if blocks != BlockDelays::default() && !is_power {
        let what = format!("delays by blocks of {} bytes: a power of two is wanted, at least 64", blocks.block_bytes);
        return Err(OpenError::Option { what });
    }
    let delays = [options.emulation.persist_delay, options.emulation.read_delay, blocks.persist, blocks.read];
    Ok(options.emulation.count_persists || delays.iter().any(|delay| !delay.is_zero()))
}

/// Returns the delays that `options` request.
#[cfg(feature = "probes")]
fn delays(options: &Options) -> Result<Option<Delays>, OpenError> {
    let blocks = options.emulation.block_delays;
    let latency = Latency {
        persist_ticks: ticks(options.emulation.persist_delay),
        read_ticks: ticks(options.emulation.read_delay),
        persist_block_ticks: ticks(blocks.persist),
        read_block_ticks: ticks(blocks.read),
        memory_read_ticks: ticks(blocks.memory_read),
        block_bytes: blocks.block_bytes,
        cache_bytes: blocks.cache_bytes,
    };
    let delays = [latency.persist_ticks, latency.read_ticks, latency.persist_block_ticks, latency.read_block_ticks];
    if delays == [0; 4] {
        return Ok(None);
    }
    let no_memory = || {
        let what = format!("no memory for the tags of an emulated cache of {} bytes", blocks.cache_bytes);
        OpenError::Option { what }
    };
    Delays::new(latency, &HostDram).map(Some).ok_or_else(no_memory)
}
