//! Options that emulate slower memory and count accesses.

use std::time::Duration;

/// The values of [`Emulation::block_delays`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BlockDelays {
    pub(crate) block_bytes: u64,
    pub(crate) read: Duration,
    pub(crate) persist: Duration,
    pub(crate) cache_bytes: u64,
    pub(crate) memory_read: Duration,
}

/// Emulation of slower memory, and counts of persists, for measurements. All but [`Emulation::non_temporal`] need the
/// feature `probes`. See [`crate::Options::emulation`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// let ns = Duration::from_nanos;
/// let slow = |memory: hikv::Emulation| memory.persist_delay(ns(600)).read_delay(ns(300));
/// let blocks = |memory: hikv::Emulation| memory.block_delays(256, ns(200), ns(400)).count_persists(true);
/// let cached = |memory: hikv::Emulation| blocks(memory).processor_cache(32 << 20, ns(90));
/// let options = (hikv::Options::new().emulation(slow), hikv::Options::new().emulation(cached));
/// let repeatable = hikv::Options::new().emulation(|memory| memory.non_temporal(true));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Emulation {
    pub(crate) count_persists: bool,
    pub(crate) persist_delay: Duration,
    pub(crate) read_delay: Duration,
    pub(crate) block_delays: BlockDelays,
    pub(crate) non_temporal: bool,
}

impl Emulation {
    /// Counts flushes and fences for [`crate::Stats::fences`] (default: no). Costs a few nanoseconds per operation.
    /// Needs the feature `probes`.
    pub fn count_persists(self, count_persists: bool) -> Emulation {
        Emulation { count_persists, ..self }
    }

    /// Delays every persist by this time, to emulate slower memory (HiKV paper, section 4.1: 600 ns; limit: 1 s).
    /// Needs the feature `probes`.
    pub fn persist_delay(self, persist_delay: Duration) -> Emulation {
        Emulation { persist_delay, ..self }
    }

    /// Delays every access to an item by this time, to emulate slower memory (HiKV paper, section 4.6; limit: 1 s).
    /// Needs the feature `probes`.
    pub fn read_delay(self, read_delay: Duration) -> Emulation {
        Emulation { read_delay, ..self }
    }

    /// Delays every read and write-back of a block of `block_bytes`, a power of two, that the emulated device has not
    /// buffered. This emulates memory whose access unit is longer than a cache line (Rewo-Hash paper, section 2: 256
    /// bytes; limit of each delay: 1 s). Needs the feature `probes`.
    pub fn block_delays(self, block_bytes: u64, read: Duration, persist: Duration) -> Emulation {
        Emulation { block_delays: BlockDelays { block_bytes, read, persist, ..self.block_delays }, ..self }
    }

    /// Emulates a processor's cache of `cache_bytes` before the blocks of [`Self::block_delays`] (default: none). Lines
    /// in the cache cost nothing. A prefetched block arrives after the block's delay and `memory_read`, the time that a
    /// read of the machine's own memory takes. The cache needs an eighth of its size in DRAM (limit: 16 GiB; 1 s).
    /// Needs the feature `probes`.
    pub fn processor_cache(self, cache_bytes: u64, memory_read: Duration) -> Emulation {
        Emulation { block_delays: BlockDelays { cache_bytes, memory_read, ..self.block_delays }, ..self }
    }

    /// Writes items of a store without a journal with non-temporal stores, as on persistent memory (default: no; on
    /// other memory, the first open of a process times which way is faster). So counts of instructions do not depend on
    /// the machine's load.
    pub fn non_temporal(self, non_temporal: bool) -> Emulation {
        Emulation { non_temporal, ..self }
    }
}
