//! The Rewo-Hash engine (Huang et al., DATE 2020): a persistent hash table of buckets of a block each, whose small items lie in
//! the buckets themselves, written without a log.
//!
//! Everything durable, and the order of its writes, is `index::block_hash`'s: a put of a new key or over an old one costs two
//! fences, a delete one. Larger items, and those that expire, lie beside the table (`items`), and are written before their slots.
//!
//! # Keys that expire
//! A key whose time has come is absent to every caller; its item stays until written over or reaped. The reaper walks the
//! table, a segment a step, while an item that expires may be there. `reaper.rs`.
//!
//! # Conditional writes
//! A write that depends on what it saw takes place if the key's slot is still the same, under the locks of the key's buckets: a slot
//! that holds its item is then the same value, and one that names an item names the same one, which the pin keeps. `conditional.rs`.
//!
//! # The cached table
//! Copies of hot items in volatile memory, up to a limit, which reads look into first. `cached.rs`.
//!
//! # Pre-eviction
//! Where it is asked for, the background relieves buckets that have no room for an insert (`index::block_hash`'s moves), a segment a
//! step, and walks the table again when keys were added since. `background.rs`.
//!
//! # Lock order
//! background -> the table's -> the cached table's. Operations are pinned throughout; one that waits for readers (`clear`) is not.

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
    /// Every item is counted, and free space is known unless the store is damaged or read-only.
    swept: AtomicBool,
    reaper: Reaper,
    compaction: Compaction<Cursor>,
    expired_hook: ExpiredHook,
    clock: Clock,
    verify: Verify,
    growth: Growth,
    pre_evicts: bool,
}

/// What becomes of a key whose segment is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Growth {
    /// The segment is split.
    #[default]
    Splits,
    /// The key is refused.
    Refused,
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    #[inline(always)]
    fn cx(&self) -> Context<'_, M, D> {
        Context { medium: &self.medium, heap: &self.heap, limbo: &self.limbo }
    }

    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// The table.
    pub fn table(&self) -> &BlockHash {
        &self.table
    }

    /// The same store, by this clock.
    #[must_use]
    pub fn by_clock(self, clock: Clock) -> RewoHash<M, D> {
        RewoHash { clock, ..self }
    }

    /// The same store, whose reads compare this much.
    #[must_use]
    pub fn verifying(self, verify: Verify) -> RewoHash<M, D> {
        RewoHash { verify, ..self }
    }

    /// The same store, which gives space back in the background ([`engine::Engine::step`]) while it takes more than `above` times what items
    /// and table occupy; never if there is no such limit.
    #[must_use]
    pub fn compacting_above(self, above: Option<f64>) -> RewoHash<M, D> {
        RewoHash { compaction: Compaction::above(above), ..self }
    }

    /// The same store, whose segments stay as many as they are: a key that finds no room is refused, as by a full region.
    #[must_use]
    pub fn of_fixed_size(self) -> RewoHash<M, D> {
        RewoHash { growth: Growth::Refused, ..self }
    }

    /// The same store, whose background makes room in full buckets ahead of inserts.
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

    /// What this engine alone has.
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
