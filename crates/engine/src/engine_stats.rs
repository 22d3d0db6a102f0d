//! The figures of an engine.

use heap::HeapStats;
use pmem::Counts;

use crate::{CompactionStats, Figure, OrderStats, SnapshotStats};

/// An engine's figures at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EngineStats {
    /// Keys.
    pub items: u64,
    /// Bytes of the region.
    pub region_bytes: u64,
    /// Bytes of the region below the high-water mark: used once, at least.
    pub used_bytes: u64,
    /// Bytes that items and index occupy. Exact once the sweep is over.
    pub live_bytes: u64,
    /// Bytes below the mark that are free. Zero until the sweep is over.
    pub free_bytes: u64,
    /// Space that the region takes, holes not counted.
    pub taken_bytes: u64,
    /// What compaction has done since open.
    pub compaction: CompactionStats,
    /// Volatile memory of index and allocator.
    pub dram_bytes: u64,
    /// True once free space is known; see [`crate::Engine::step`].
    pub swept: bool,
    /// Replaced items, and what was cleared as a whole, that wait for readers to move on.
    pub garbage_count: u64,
    /// Bytes of the region that they and replaced parts of the index occupy.
    pub garbage_bytes: u64,
    /// Writes since open that were slowed, because garbage was above its bound.
    pub held_up_count: u64,
    /// Keys deleted since open because they had expired.
    pub reaped_count: u64,
    /// Flushes and fences, where they are counted.
    pub counts: Option<Counts>,
    /// The ordered index, where the engine can keep one.
    pub order: Option<OrderStats>,
    /// Snapshots, where the engine has them.
    pub snapshots: SnapshotStats,
    /// What only this engine has.
    pub figures: Vec<Figure>,
}

impl EngineStats {
    /// What the heap tells of the space.
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

    /// The engine's own figure of this name, if it has one.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}
