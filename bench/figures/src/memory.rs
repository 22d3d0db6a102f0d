//! The memory of the systems: a file that is mapped, slowed down as wanted, and whose accesses are counted.

use pmem::{Delays, Latency, Medium, PersistCounts, Probed};
use pmem_os::{HostDram, Mapped};

use crate::Error;
use crate::point::Accesses;

/// Memory that is slowed down and counted.
pub(crate) type Memory = Probed<Mapped, (Delays, PersistCounts)>;

/// Returns a mapped file as memory with this latency.
pub(crate) fn slowed(mapped: Mapped, latency: Latency) -> Result<Memory, Error> {
    let delays = Delays::new(latency, &HostDram).ok_or("no memory for the tags of the emulated cache")?;
    Ok(Probed::with_probe(mapped, (delays, PersistCounts::default())))
}

/// The accesses since a system was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counted {
    /// Blocks read from the device's memory. Only slow reads are counted.
    pub(crate) block_reads: u64,
    /// Cache lines that were written back, or written past the cache.
    pub(crate) lines_written: u64,
    pub(crate) fences: u64,
}

impl Counted {
    /// Returns the accesses to this memory.
    pub(crate) fn of(memory: &Memory) -> Counted {
        let (counts, (delays, _)) = (memory.counts().unwrap_or_default(), memory.probe());
        Counted {
            block_reads: delays.block_read_count(),
            lines_written: counts.flushed_line_count,
            fences: counts.fence_count,
        }
    }

    /// Returns the accesses of each of the operations since `before`.
    pub(crate) fn per_operation(self, before: Counted, operations: u64) -> Accesses {
        let of_one = |after: u64, before: u64| (after - before) as f64 / operations.max(1) as f64;
        Accesses {
            block_reads: of_one(self.block_reads, before.block_reads),
            lines_written: of_one(self.lines_written, before.lines_written),
            fences: of_one(self.fences, before.fences),
        }
    }
}
