//! The Rewo-Hash engine (Huang et al., DATE 2020): a persistent hash table of buckets of one block each. Small items
//! are in the buckets themselves, and are written without a log.
//!
//! `index::block_hash` does everything durable, and orders its writes: a put of a new or present key costs two fences,
//! a delete one. Larger items, and items that expire, are outside the table (`items`), and are written before their
//! slots.
//!
//! # Keys that expire
//! An expired key is absent to every caller. The item stays until overwritten or reaped. The reaper walks the
//! table, one segment per step, while the table may have an item that expires. See `background/reap.rs`.
//!
//! # Conditional writes
//! A write that depends on the key's state takes place if the key's slot is unchanged, under the locks of the key's
//! buckets. An unchanged slot that holds its item has the same value; one that names an item names the same item,
//! because the pin keeps the item. See `writer/conditional.rs`.
//!
//! # The cached table
//! Copies of hot items in DRAM, up to a limit. Reads look there first. See `cached.rs`.
//!
//! # Pre-eviction
//! If enabled, the background moves items out of buckets that have no slot left for an insert (`index::block_hash`'s
//! moves), one segment per step. It walks the table again when keys were added. See `background/mod.rs`.
//!
//! # Lock order
//! background -> the table's -> the cached table's. Operations are pinned throughout. Exception: an operation that
//! waits for readers (`clear`) is not.
//!
//! # Modules
//! Each type owns its fields, and uses only those after it: [`RewoHash`] -> `Background`, `Writer` -> `Space`,
//! `Expiring`, `Reader` -> `Cache` -> `Keys` -> `SlotContents`. The background's steps, a check (`CheckState`) and
//! compaction are given the writer, or the parts of it that they read. An attempt of the writer that finds the region
//! full is repeated here (`ops.rs`), after the sweep and the readers have freed space.

mod background;
mod cached;
mod check;
mod compact;
mod contents;
mod expiring;
mod keys;
mod ops;
mod reader;
mod space;
mod writer;

use engine::{Clock, Compacting, Compaction, EngineStats, Figure, Hasher, OpenError, Verify};
use epoch::Limbo;
use heap::{EngineNumber, Heap, HeapError, Parameters};
use index::block_hash::{SEGMENT_SLOT_COUNT, Sign};
use index::segmented::layout::Geometry;
use index::segmented::{Context, Cursor};
use index::{BlockHash, CachedTable};
use pmem::{Dram, Medium};

use background::Background;
use cached::Cache;
use keys::Keys;
use reader::Reader;
use space::Space;
use writer::{Growth, Writer};

/// The name in stats and options.
pub const NAME: &str = "rewo-hash";

/// The Rewo-Hash engine over a medium.
pub struct RewoHash<M, D: Dram> {
    writer: Writer<M, D>,
    background: Background,
    compaction: Compaction<Cursor>,
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Creates a store in an empty region. A crash before it is complete leaves a region that is formatted again.
    ///
    /// # Errors
    /// [`OpenError`] if there is not enough space, or the number of partitions is not a power of two up to 256.
    pub fn format(medium: M, dram: D, parameters: &Parameters) -> Result<RewoHash<M, D>, OpenError> {
        let heap = Heap::format(&medium, EngineNumber::REWO_HASH, parameters, dram)?;
        let count = parameters.partition_count;
        let refused = HeapError::Parameter { what: "the partition count", value: count.into() };
        let table = BlockHash::format(&medium, &heap, Geometry::new(count).ok_or(refused)?, sign(&heap))?;
        heap.region().finish_format(&medium)?;
        Ok(RewoHash::of(medium, heap, table))
    }

    /// Opens the store of a region, after a clean close or a crash. Finishes an interrupted split or batch, and builds
    /// the directories; then keys are served. Counting and the search for free space follow in the background
    /// ([`engine::Maintenance::step`]).
    ///
    /// # Errors
    /// [`OpenError`] with the damage or mismatch, and its offset.
    pub fn open(medium: M, dram: D) -> Result<RewoHash<M, D>, OpenError> {
        let opened = open_parts(&medium, dram);
        // Catches checks that went by the zeros that stand for unreadable ranges.
        medium.check_lost_ranges().map_err(HeapError::from)?;
        let (heap, table) = opened?;
        Ok(RewoHash::of(medium, heap, table))
    }

    fn of(medium: M, heap: Heap<D>, table: BlockHash) -> RewoHash<M, D> {
        engine::relax_by_threads();
        let background = Background::new(heap.is_swept());
        let keys = Keys::new(medium, Hasher::new(heap.region().superblock().hash_seed), table);
        let writer = Writer::new(Reader::new(keys), Space::new(heap));
        RewoHash { writer, background, compaction: Compaction::above(None) }
    }

    /// Returns the medium.
    pub fn medium(&self) -> &M {
        self.writer.medium()
    }

    /// Returns the table.
    pub fn table(&self) -> &BlockHash {
        self.writer.table()
    }

    /// Returns the cached table, if there is one.
    pub fn cached_table(&self) -> Option<&CachedTable> {
        self.writer.reader().cache().table()
    }

    /// Returns the store with this clock.
    #[must_use]
    pub fn by_clock(mut self, clock: Clock) -> RewoHash<M, D> {
        self.writer.reader_mut().keys_mut().set_clock(clock);
        self
    }

    /// Returns the store with reads that verify this much.
    #[must_use]
    pub fn verifying(mut self, verify: Verify) -> RewoHash<M, D> {
        self.writer.reader_mut().keys_mut().set_verify(verify);
        self
    }

    /// Returns the store with background compaction ([`engine::Maintenance::step`]) while it takes more than `above`
    /// times the bytes of items and table. `None` turns compaction off.
    #[must_use]
    pub fn compacting_above(self, above: Option<f64>) -> RewoHash<M, D> {
        RewoHash { compaction: Compaction::above(above), ..self }
    }

    /// Returns the store with a fixed number of segments: a key that finds no slot is refused, as by a full region.
    #[must_use]
    pub fn of_fixed_size(mut self) -> RewoHash<M, D> {
        self.writer.set_growth(Growth::Refused);
        self
    }

    /// Returns the store with background moves that free slots in full buckets ahead of inserts.
    #[must_use]
    pub fn pre_evicting(mut self, pre_evicts: bool) -> RewoHash<M, D> {
        self.background.set_pre_evicts(pre_evicts);
        self
    }

    /// Returns the store with a cached table of `limit_bytes` of `dram`; without one if that is 0.
    ///
    /// # Errors
    /// The memory cannot be allocated.
    pub fn caching(mut self, limit_bytes: u64, dram: impl Dram + 'static) -> Result<RewoHash<M, D>, OpenError> {
        *self.writer.reader_mut().cache_mut() = Cache::new(limit_bytes, dram)?;
        self.background.expect_filling(&self.writer);
        Ok(self)
    }

    /// Returns the store with `thread_count` threads that write the cached table's copies for the writers, if there is
    /// a table and the store is writable.
    ///
    /// # Errors
    /// A thread cannot be started, or memory cannot be allocated.
    pub fn copying_by(mut self, thread_count: usize) -> Result<RewoHash<M, D>, OpenError> {
        if self.medium().is_writable() {
            self.writer.reader_mut().cache_mut().start_threads(thread_count)?;
        }
        Ok(self)
    }

    fn gather_stats(&self) -> EngineStats {
        let (space, cache) = (self.writer.space().stats(), self.writer.reader().cache());
        let copies = cache.stats();
        EngineStats {
            items: self.table().len(),
            taken_bytes: self.taken_bytes(),
            dram_bytes: space.dram_bytes + self.table().dram_bytes() + copies.map_or(0, |copies| copies.dram_bytes),
            swept: self.background.is_swept(),
            reaped_count: self.writer.expiring().reaped_count(),
            compaction: self.compaction.stats(),
            counts: self.medium().counts(),
            figures: table_figures(self.table())
                .into_iter()
                .chain(copies.iter().flat_map(|copies| cache.figures(copies)))
                .collect(),
            ..space
        }
    }
}

fn open_parts<M: Medium, D: Dram>(medium: &M, dram: D) -> Result<(Heap<D>, BlockHash), OpenError> {
    let heap = Heap::open(medium, EngineNumber::REWO_HASH, dram)?;
    let damaged = HeapError::Damaged { offset: 40, what: "the number of partitions is impossible" };
    let geometry = Geometry::new(heap.region().superblock().partition_count).ok_or(damaged)?;
    let limbo = Limbo::default();
    let table = BlockHash::open(Context { medium, heap: &heap, limbo: &limbo }, geometry, sign(&heap))?;
    Ok((heap, table))
}

fn sign<D: Dram>(heap: &Heap<D>) -> Box<Sign> {
    let hasher = Hasher::new(heap.region().superblock().hash_seed);
    Box::new(move |key| hasher.signature(key))
}

/// Returns the table's figures.
fn table_figures(table: &BlockHash) -> [Figure; 5] {
    let segment_count = table.segment_count();
    let load = table.len() as f64 / (segment_count.max(1) * SEGMENT_SLOT_COUNT) as f64;
    let (split_count, chained_count) = table.split_counts();
    [
        Figure::gauge("segment_count", "Segments of the hash table", segment_count as f64),
        Figure::ratio("load", "How full segments are, 0 to 1", load),
        Figure::counter("move_count", "Items moved into their other bucket since open", table.move_count() as f64),
        Figure::counter("split_count", "Segments split since open", split_count as f64),
        Figure::counter(
            "chained_count",
            "Segments chained since open: keys whose hashes do not spread",
            chained_count as f64,
        ),
    ]
}
