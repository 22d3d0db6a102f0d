//! The Rewo-Hash engine (Huang et al., DATE 2020): a persistent hash table of buckets of one block each. Small items
//! are in the buckets themselves, and are written without a log.
//!
//! `index::block_hash` does everything durable, and orders its writes: a put of a new or present key costs two fences,
//! a delete one. Larger items, and items that expire, are outside the table (`items`), and are written before their
//! slots.
//!
//! # Keys that expire
//! An expired key is absent to every caller. The item stays until overwritten or reaped. The reaper walks the
//! table, one segment per step, while the table may have an item that expires. See `reaper.rs`.
//!
//! # Conditional writes
//! A write that depends on the key's state takes place if the key's slot is unchanged, under the locks of the key's
//! buckets. An unchanged slot that holds its item has the same value; one that names an item names the same item,
//! because the pin keeps the item. See `conditional.rs`.
//!
//! # The cached table
//! Copies of hot items in DRAM, up to a limit. Reads look there first. See `cached.rs`.
//!
//! # Pre-eviction
//! If enabled, the background moves items out of buckets that have no slot left for an insert (`index::block_hash`'s
//! moves), one segment per step. It walks the table again when keys were added. See `background.rs`.
//!
//! # Lock order
//! background -> the table's -> the cached table's. Operations are pinned throughout. Exception: an operation that
//! waits for readers (`clear`) is not.

mod at_once;
mod background;
mod batch;
mod cached;
mod check;
mod compact;
mod conditional;
mod lookup;
mod many;
mod open;
mod ops;
mod read;
mod reaper;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Clock, Compacting, Compaction, EngineStats, ExpiredHook, Figure, Hasher, Verify, WriteThrottle};
use epoch::Limbo;
use heap::Heap;
use index::block_hash::{Cleared, SEGMENT_SLOT_COUNT};
use index::cached_table::CopyThreads;
use index::segmented::{Context, Cursor, Garbage};
use index::{BlockHash, CachedTable};
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use background::Background;
use reaper::Reaper;

/// The name in stats and options.
pub const NAME: &str = "rewo-hash";

/// The Rewo-Hash engine over a medium.
pub struct RewoHash<M, D: Dram> {
    medium: M,
    heap: Heap<D>,
    hasher: Hasher,
    table: BlockHash,
    cache: Option<Arc<CachedTable>>,
    copy_threads: Option<CopyThreads>,
    limbo: Limbo<Garbage>,
    held_up: WriteThrottle,
    cleared: Limbo<Cleared>,
    background: Mutex<Background>,
    /// True if every item is counted; then free space is known too, unless the store is damaged or read-only.
    swept: AtomicBool,
    reaper: Reaper,
    compaction: Compaction<Cursor>,
    expired_hook: ExpiredHook,
    clock: Clock,
    verify: Verify,
    growth: Growth,
    pre_evicts: bool,
}

/// The handling of a put whose segment is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Growth {
    /// The segment is split.
    #[default]
    Splits,
    /// The put is refused.
    Refused,
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    #[inline(always)]
    fn cx(&self) -> Context<'_, M, D> {
        Context { medium: &self.medium, heap: &self.heap, limbo: &self.limbo }
    }

    /// Returns the medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Returns the table.
    pub fn table(&self) -> &BlockHash {
        &self.table
    }

    /// Returns the store with this clock.
    #[must_use]
    pub fn by_clock(self, clock: Clock) -> RewoHash<M, D> {
        RewoHash { clock, ..self }
    }

    /// Returns the store with reads that verify this much.
    #[must_use]
    pub fn verifying(self, verify: Verify) -> RewoHash<M, D> {
        RewoHash { verify, ..self }
    }

    /// Returns the store with background compaction ([`engine::Engine::step`]) while it takes more than `above` times
    /// the bytes of items and table. `None` turns compaction off.
    #[must_use]
    pub fn compacting_above(self, above: Option<f64>) -> RewoHash<M, D> {
        RewoHash { compaction: Compaction::above(above), ..self }
    }

    /// Returns the store with a fixed number of segments: a key that finds no slot is refused, as by a full region.
    #[must_use]
    pub fn of_fixed_size(self) -> RewoHash<M, D> {
        RewoHash { growth: Growth::Refused, ..self }
    }

    /// Returns the store with background moves that free slots in full buckets ahead of inserts.
    #[must_use]
    pub fn pre_evicting(self, pre_evicts: bool) -> RewoHash<M, D> {
        RewoHash { pre_evicts, ..self }
    }

    fn gather_stats(&self) -> EngineStats {
        let (space, cache) = (self.heap.stats(), self.cached_table().map(CachedTable::stats));
        let of_cache = cache.iter().flat_map(|cache| cached::figures(cache, self.copy_threads.as_ref()));
        EngineStats {
            items: self.table.len(),
            taken_bytes: self.taken_bytes(),
            dram_bytes: space.dram_bytes + self.table.dram_bytes() + cache.map_or(0, |cache| cache.dram_bytes),
            swept: self.swept.load(Ordering::Acquire),
            garbage_count: self.limbo.len() + self.cleared.len(),
            garbage_bytes: self.limbo.bytes(),
            held_up_count: self.held_up.count(),
            reaped_count: self.reaper.reaped_count(),
            compaction: self.compaction.stats(),
            counts: self.medium.counts(),
            figures: self.figures().into_iter().chain(of_cache).collect(),
            ..EngineStats::of_space(space)
        }
    }

    /// Returns the figures that only this engine has.
    fn figures(&self) -> [Figure; 5] {
        let segment_count = self.table.segment_count();
        let load = self.table.len() as f64 / (segment_count.max(1) * SEGMENT_SLOT_COUNT) as f64;
        let (split_count, chained_count) = self.table.split_counts();
        [
            Figure::gauge("segment_count", "Segments of the hash table", segment_count as f64),
            Figure::ratio("load", "How full segments are, 0 to 1", load),
            Figure::counter(
                "move_count",
                "Items moved into their other bucket since open",
                self.table.move_count() as f64,
            ),
            Figure::counter("split_count", "Segments split since open", split_count as f64),
            Figure::counter(
                "chained_count",
                "Segments chained since open: keys whose hashes do not spread",
                chained_count as f64,
            ),
        ]
    }
}
