//! Creates a store in a region, and opens it.

use std::sync::atomic::AtomicBool;

use engine::garbage::GARBAGE_BYTES_MAX;
use engine::{Clock, Compaction, ExpiredHook, Hasher, OpenError, Verify, WriteThrottle};
use epoch::Limbo;
use heap::{EngineNumber, Heap, HeapError, Parameters};
use index::BlockHash;
use index::block_hash::Sign;
use index::segmented::Context;
use index::segmented::layout::Geometry;
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use crate::background::Background;
use crate::reaper::Reaper;
use crate::{Growth, RewoHash};

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
    /// ([`engine::Engine::step`]).
    ///
    /// # Errors
    /// [`OpenError`] with the damage or mismatch, and its offset.
    pub fn open(medium: M, dram: D) -> Result<RewoHash<M, D>, OpenError> {
        let opened = RewoHash::parts(&medium, dram);
        // Catches checks that went by the zeros that stand for unreadable ranges.
        medium.check_lost_ranges().map_err(HeapError::from)?;
        let (heap, table) = opened?;
        Ok(RewoHash::of(medium, heap, table))
    }

    fn parts(medium: &M, dram: D) -> Result<(Heap<D>, BlockHash), OpenError> {
        let heap = Heap::open(medium, EngineNumber::REWO_HASH, dram)?;
        let damaged = HeapError::Damaged { offset: 40, what: "the number of partitions is impossible" };
        let geometry = Geometry::new(heap.region().superblock().partition_count).ok_or(damaged)?;
        let limbo = Limbo::default();
        let table = BlockHash::open(Context { medium, heap: &heap, limbo: &limbo }, geometry, sign(&heap))?;
        Ok((heap, table))
    }

    fn of(medium: M, heap: Heap<D>, table: BlockHash) -> RewoHash<M, D> {
        engine::relax_by_threads();
        RewoHash {
            swept: AtomicBool::new(heap.is_swept()),
            hasher: Hasher::new(heap.region().superblock().hash_seed),
            medium,
            heap,
            table,
            cache: None,
            copy_threads: None,
            limbo: Limbo::bounded(GARBAGE_BYTES_MAX),
            held_up: WriteThrottle::default(),
            cleared: Limbo::default(),
            background: Mutex::new(Background::default()),
            reaper: Reaper::default(),
            compaction: Compaction::above(None),
            expired_hook: ExpiredHook::default(),
            clock: Clock::default(),
            verify: Verify::Nothing,
            growth: Growth::default(),
            pre_evicts: false,
        }
    }
}

fn sign<D: Dram>(heap: &Heap<D>) -> Box<Sign> {
    let hasher = Hasher::new(heap.region().superblock().hash_seed);
    Box::new(move |key| hasher.signature(key))
}
