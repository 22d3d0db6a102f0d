//! The latency of the slower memory that a benchmark emulates.

use std::time::Duration;

use clap::Args;
use hikv::Options;
use pmem::Latency;
use pmem_os::{last_level_cache_bytes, ticks};

/// The options of the emulation.
#[derive(Args)]
pub(super) struct Latencies {
    /// Emulate slower memory: nanoseconds added to each persist; without a number 600, as in the HiKV paper's figures
    /// (50 to 1400 where they vary it)
    #[arg(long, value_name = "NS")]
    persist_ns: Option<Option<u64>>,
    /// Emulate slower memory: nanoseconds added to each access to an item
    #[arg(long, default_value_t = 0)]
    read_ns: u64,
    /// Nanoseconds added to each block written back, unless it is among the last 64 blocks used
    #[arg(long, default_value_t = 0)]
    persist_block_ns: u64,
    /// Nanoseconds added to each block read, unless its line is cached or it is among the last 64 blocks used; reads of
    /// prefetched blocks overlap
    #[arg(long, default_value_t = 0)]
    read_block_ns: u64,
    /// Length of a block, a power of two
    #[arg(long, default_value_t = 256)]
    block_bytes: u64,
    /// Bytes of the emulated processor cache before the blocks; 0 for none [default: this machine's last-level cache]
    #[arg(long)]
    cache_bytes: Option<u64>,
    /// Nanoseconds of a read of this machine's own memory, which a prefetched block takes in addition
    #[arg(long, default_value_t = 0)]
    memory_read_ns: u64,
}

impl Latencies {
    /// Adds the latencies to the options of a store.
    pub(super) fn options(&self, options: Options) -> Options {
        let ns = Duration::from_nanos;
        options
            .emulation(|emulation| emulation.persist_delay(ns(self.persist_ns())))
            .emulation(|emulation| {
                emulation.read_delay(ns(self.read_ns)).block_delays(
                    self.block_bytes,
                    ns(self.read_block_ns),
                    ns(self.persist_block_ns),
                )
            })
            .emulation(|emulation| emulation.processor_cache(self.cache_bytes(), ns(self.memory_read_ns)))
    }

    fn cache_bytes(&self) -> u64 {
        self.cache_bytes.unwrap_or_else(|| last_level_cache_bytes().unwrap_or_default())
    }

    fn persist_ns(&self) -> u64 {
        self.persist_ns.map_or(0, |asked| asked.unwrap_or(Latency::PERSIST_NS_PRINTED))
    }

    /// Returns the latencies for a medium.
    pub(super) fn latency(&self) -> Latency {
        let ticks = |ns| ticks(Duration::from_nanos(ns));
        Latency {
            persist_ticks: ticks(self.persist_ns()),
            read_ticks: ticks(self.read_ns),
            persist_block_ticks: ticks(self.persist_block_ns),
            read_block_ticks: ticks(self.read_block_ns),
            memory_read_ticks: ticks(self.memory_read_ns),
            block_bytes: self.block_bytes,
            cache_bytes: self.cache_bytes(),
        }
    }
}
