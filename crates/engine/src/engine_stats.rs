//! The statistics of an engine.

use heap::HeapStats;
use pmem::Counts;

use crate::{CompactionStats, Figure, OrderStats, SnapshotStats};

/// An engine's statistics at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EngineStats {
    /// Keys.
    pub items: u64,
    /// Bytes of the region.
    pub region_bytes: u64,
    /// Bytes of the region below the high-water mark: space that was used at least once.
    pub used_bytes: u64,
    /// Bytes of items and index. Exact once the sweep is over.
    pub live_bytes: u64,
    /// Free bytes below the mark. Zero until the sweep is over.
    pub free_bytes: u64,
    /// Storage allocated to the region, without holes.
    pub taken_bytes: u64,
    /// The work of compaction since open.
    pub compaction: CompactionStats,
    /// DRAM of the index and the allocator.
    pub dram_bytes: u64,
    /// True once free space is known; see [`crate::Maintenance::step`].
    pub swept: bool,
    /// Replaced items and cleared indexes that wait for readers before they are freed.
    pub garbage_count: u64,
    /// Bytes of the region that these items and replaced parts of the index occupy.
    pub garbage_bytes: u64,
    /// Writes since open that were slowed because garbage exceeded its bound.
    pub held_up_count: u64,
    /// Expired keys deleted since open.
    pub reaped_count: u64,
    /// Flushes and fences, if they are counted.
    pub counts: Option<Counts>,
    /// The ordered index, if the engine can keep one.
    pub order: Option<OrderStats>,
    /// Snapshots, if the engine has them.
    pub snapshots: SnapshotStats,
    /// Figures that only this engine has.
    pub figures: Vec<Figure>,
}

impl EngineStats {
    /// Returns statistics with the heap's figures of space.
    #[must_use]
    pub fn of_space(space: HeapStats) -> EngineStats {
        EngineStats {
            region_bytes: space.region_bytes,
            used_bytes: space.mark_bytes,
            live_bytes: space.live_bytes,
            free_bytes: space.free_bytes,
            dram_bytes: space.dram_bytes,
            ..EngineStats::default()
        }
    }

    /// Returns the engine's own figure of this name, if it has one.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}
