//! Creating and opening a store in a region.

use epoch::Limbo;
use heap::{EngineNumber, Heap, HeapError};
use index::PartitionedHash;
use index::partitioned_hash::{Context, layout::Geometry};
use parking_lot::Mutex;
use pmem::Medium;

use super::image::CleanImage;
use super::order::Ordered;
use super::snapshots::Snapshots;
use super::{HiKv, Memory};
use crate::space::background::Background;
use crate::space::reaper::Reaper;
use engine::garbage::GARBAGE_BYTES_MAX;
use engine::{Clock, Compaction, ExpiredHook, Hasher, OpenError, Verify, WriteThrottle};
use heap::Parameters;

/// The contents of a region, and the snapshot epoch of its store.
type Parts<D> = (Heap<D>, PartitionedHash, CleanImage, u32);

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Creates a store in an empty region.
    ///
    /// Allocator and index are written and flushed; then the superblock makes the region a store. After an earlier
    /// crash the region is formatted again.
    pub fn format(medium: M, dram: D, parameters: &Parameters) -> Result<HiKv<M, D>, OpenError> {
        let heap = Heap::format(&medium, EngineNumber::HIKV, parameters, dram.clone())?;
        let count = parameters.partition_count;
        let refused = HeapError::Parameter { what: "the partition count", value: count.into() };
        let geometry = Geometry::new(count).ok_or(refused)?;
        let index = PartitionedHash::format(&medium, &heap, geometry)?;
        heap.region().finish_format(&medium)?;
        Ok(HiKv::assemble(medium, dram, (heap, index, CleanImage::default(), 0)))
    }

    /// Opens the store in a region, after a clean close or after a crash: finishes an interrupted split, builds the
    /// directories, and can then serve keys. Counts and free space come from a clean image, or are computed in the
    /// background ([`engine::Engine::step`]).
    pub fn open(medium: M, dram: D) -> Result<HiKv<M, D>, OpenError> {
        let opened = HiKv::<M, D>::parts(&medium, dram.clone());
        // This error comes first: unreadable ranges read as zeros, so a result or error that came from them is
        // meaningless.
        medium.check_lost_ranges().map_err(HeapError::from)?;
        Ok(HiKv::assemble(medium, dram, opened?))
    }

    fn parts(medium: &M, dram: D) -> Result<Parts<D>, OpenError> {
        let heap = Heap::open(medium, EngineNumber::HIKV, dram)?;
        let damaged = HeapError::Damaged { offset: 40, what: "the number of partitions is impossible" };
        let geometry = Geometry::new(heap.region().superblock().partition_count).ok_or(damaged)?;
        let limbo = Limbo::default();
        let index = PartitionedHash::open(Context { medium, heap: &heap, limbo: &limbo }, geometry)?;
        let image = CleanImage::adopt(medium, &heap, &index);
        let epoch = heap.region().snapshot_epoch(medium)?;
        Ok((heap, index, image, epoch))
    }

    fn assemble(medium: M, dram: D, (heap, index, image, epoch): Parts<D>) -> HiKv<M, D> {
        let swept = heap.is_swept();
        engine::relax_by_threads();
        HiKv {
            hasher: Hasher::new(heap.region().superblock().hash_seed),
            medium,
            heap,
            index,
            limbo: Limbo::bounded(GARBAGE_BYTES_MAX),
            garbage: WriteThrottle::default(),
            cleared: Limbo::default(),
            background: Mutex::new(Background::default()),
            swept: swept.into(),
            image,
            snapshots: Snapshots::of_epoch(epoch),
            clock: Clock::default(),
            reaper: Reaper::default(),
            expired_hook: ExpiredHook::default(),
            compaction: Compaction::above(None),
            verify: Verify::Nothing,
            cache: None,
            order: Ordered::never(dram),
        }
    }

    /// Lets the store put its keys in order when a caller first requests it. Without this call the store has no order.
    #[must_use]
    pub fn keeping_order(mut self, order: Ordered<D>) -> HiKv<M, D> {
        self.order = order;
        self
    }

    /// Lets the store return free space in the background ([`engine::Engine::step`]) while its storage exceeds `above`
    /// times the bytes of items and index; `None` for never.
    #[must_use]
    pub fn compacting_above(mut self, above: Option<f64>) -> HiKv<M, D> {
        self.compaction = Compaction::above(above);
        self
    }

    /// Sets the checks of reads (default: none).
    #[must_use]
    pub fn verifying(mut self, verify: Verify) -> HiKv<M, D> {
        self.verify = verify;
        self
    }
}
