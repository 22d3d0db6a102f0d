//! The HiKV engine (Xia et al., USENIX ATC 2017): a hash index in persistent memory serves single keys. If the store
//! keeps order, a B+tree in DRAM serves ranges (`order`).
//!
//! A write costs two persists, the item's and the entry's; a delete costs one (paper, section 3.4.2). The commit point
//! is the store of the entry's position word (`index::partitioned_hash::ops`).
//!
//! # Put and update
//! | after | a crash leaves |
//! |---|---|
//! | 1 space reserved (only in DRAM) | nothing |
//! | 2 item written and flushed | bytes that no entry names: free space |
//! | 3a bucket locked, key looked up; ticket of the ordered index taken, in DRAM | the same |
//! | 3b a new key's home line is full: overflow bit stored, flushed | perhaps the bit: lookups read on, find nothing |
//! | 4a order | the same, durable |
//! | 4b signature and position stored, with FRESH | old or new state; no position without its signature (one line) |
//! | 4c commit (a fence) | the new state |
//! | 5 FRESH cleared, not flushed | the new state, with or without the mark: opening accepts both |
//! | 6 ticket filled, replaced item retired | the new state; the old item's space is free after opening |
//!
//! For several keys in one step see `batch`.
//!
//! # Delete
//! | after | a crash leaves |
//! |---|---|
//! | the old position stored with DELETED and FRESH | the item, or a mark that reads as absent |
//! | commit | the mark: the key is deleted |
//! | position 0 stored (the overflow bit stays), not flushed | the mark or the 0; both read as absent |
//! | the item retired | the same; its space is free after opening |
//!
//! # Lock order
//! background, compaction -> partition -> pairs -> stash -> allocator; the order's build -> known image -> allocator.
//! Operations are pinned throughout. Exception: an operation that waits for readers (`clear`) is not pinned.

mod broken;
mod cache;
pub mod canary;
mod check;
pub mod image;
mod item;
mod memory;
mod open;
mod ops;
mod order;
mod read;
pub mod salvage;
mod snapshots;
mod space;
#[cfg(test)]
mod tests;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};

use epoch::Limbo;
use heap::Heap;
use index::cached_table::CacheStats;
use index::partitioned_hash::{Cleared, Context, Cursor, Garbage, SplitStats, layout::SEGMENT_ENTRY_COUNT};
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use cache::ReadCache;
use engine::{Compacting, Compaction, EngineStats, ExpiredHook, Figure, WriteThrottle};
use image::CleanImage;
use read::Reader;
use snapshots::Snapshots;
use space::background::Background;
use space::reaper::Reaper;

pub use heap::Parameters;
pub use memory::Memory;
pub use order::Ordered;

/// A HiKV store on a medium.
pub struct HiKv<M, D: Dram> {
    reader: Reader<M>,
    heap: Heap<D>,
    limbo: Limbo<Garbage>,
    garbage: WriteThrottle,
    cleared: Limbo<Cleared>,
    background: Mutex<Background>,
    /// Every entry is counted, and free space is known unless the store is damaged or read-only.
    swept: AtomicBool,
    image: CleanImage,
    snapshots: Snapshots,
    reaper: Reaper,
    expired_hook: ExpiredHook,
    compaction: Compaction<Cursor>,
    cache: ReadCache,
    order: Ordered<D>,
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    #[inline(always)]
    fn cx(&self) -> Context<'_, M, D> {
        Context { medium: self.reader.medium(), heap: &self.heap, limbo: &self.limbo }
    }

    /// Returns the medium.
    pub fn medium(&self) -> &M {
        self.reader.medium()
    }

    fn gather_stats(&self) -> EngineStats {
        let (space, cache) = (self.heap.stats(), self.cache.stats());
        let snapshots = self.snapshots.stats();
        EngineStats {
            items: self.reader.index().len(),
            dram_bytes: space.dram_bytes
                + self.reader.index().dram_bytes()
                + snapshots.dram_bytes
                + cache.map_or(0, |cache| cache.dram_bytes),
            swept: self.swept.load(Ordering::Acquire),
            garbage_count: self.limbo.len() + self.cleared.len(),
            garbage_bytes: self.limbo.bytes(),
            held_up_count: self.garbage.count(),
            reaped_count: self.reaper.reaped_count(),
            taken_bytes: self.taken_bytes(),
            compaction: self.compaction.stats(),
            counts: self.reader.medium().counts(),
            order: self.order.stats(),
            snapshots,
            figures: self.figures().into_iter().chain(cache.iter().flat_map(cache_figures)).collect(),
            ..EngineStats::of_space(space)
        }
    }

    /// Returns the figures that only the hash index has.
    fn figures(&self) -> [Figure; 5] {
        let (splits, segment_count) = (self.reader.index().split_stats(), self.reader.index().segment_count());
        let load = self.reader.index().len() as f64 / (segment_count.max(1) * SEGMENT_ENTRY_COUNT) as f64;
        [
            Figure::gauge("segment_count", "Segments of the hash index", segment_count as f64),
            Figure::ratio("load", "Share of used entries in all segments, 0 to 1", load),
            Figure::counter("split_count", "Segments split since open", splits.split_count as f64),
            Figure::ratio(
                "split_load",
                "Mean share of used entries in segments when they were split, 0 to 1",
                split_load(splits),
            ),
            Figure::counter(
                "chained_count",
                "Segments chained since open, because hashes of keys are unevenly distributed",
                splits.chained_count as f64,
            ),
        ]
    }
}

fn split_load(splits: SplitStats) -> f64 {
    let capacity = splits.split_count * SEGMENT_ENTRY_COUNT;
    if capacity == 0 { 0.0 } else { splits.split_entry_count as f64 / capacity as f64 }
}

fn cache_figures(cache: &CacheStats) -> [Figure; 5] {
    let hit_count = cache.hit_count + cache.absent_count;
    Figure::of_cache(cache.hit_ratio(), hit_count, cache.miss_count, cache.evicted_count, cache.live_bytes)
}
