//! The latency of the slower memory that a benchmark emulates.

use std::time::Duration;

use clap::Args;
use hikv::Options;
use pmem::Latency;
use pmem_os::ticks;

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
    /// Nanoseconds added to each block read, unless it is among the last 64 blocks used
    #[arg(long, default_value_t = 0)]
    read_block_ns: u64,
    /// Length of a block, a power of two
    #[arg(long, default_value_t = 256)]
    block_bytes: u64,
}

impl Latencies {
    /// Adds the latencies to the options of a store.
    pub(super) fn options(&self, options: Options) -> Options {
        let ns = Duration::from_nanos;
        options.emulation(|emulation| emulation.persist_delay(ns(self.persist_ns()))).emulation(|emulation| {
            emulation.read_delay(ns(self.read_ns)).block_delays(
                self.block_bytes,
                ns(self.read_block_ns),
                ns(self.persist_block_ns),
            )
        })
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
            block_bytes: self.block_bytes,
        }
    }
}
