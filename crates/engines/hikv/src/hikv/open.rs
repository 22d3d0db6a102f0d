//! Creating and opening a store in a region.

use epoch::Limbo;
use heap::{EngineNumber, Heap, HeapError, Parameters};
use index::PartitionedHash;
use index::partitioned_hash::{Context, layout::Geometry};
use pmem::{Dram, Medium};

use super::HiKv;
use crate::cache::ReadCache;
use crate::image::CleanImage;
use crate::memory::Memory;
use crate::order::Ordered;
use crate::read::Reader;
use crate::snapshots::Snapshots;
use crate::space::Space;
use crate::write::Writer;
use engine::{Clock, Compaction, Hasher, OpenError, Verify};

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
    /// background ([`engine::Maintenance::step`]).
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
        engine::relax_by_threads();
        let reader = Reader::new(medium, index, Hasher::new(heap.region().superblock().hash_seed));
        let writer = Writer::new(reader, Space::new(heap), image, Snapshots::of_epoch(epoch), dram);
        HiKv { writer, compaction: Compaction::above(None) }
    }

    /// Lets the store put its keys in order when a caller first requests it. Without this call the store has no order.
    #[must_use]
    pub fn keeping_order(mut self, order: Ordered<D>) -> HiKv<M, D> {
        self.writer.set_order(order);
        self
    }

    /// Lets the store return free space in the background ([`engine::Maintenance::step`]) while its storage exceeds
    /// `above` times the bytes of items and index; `None` for never.
    #[must_use]
    pub fn compacting_above(mut self, above: Option<f64>) -> HiKv<M, D> {
        self.compaction = Compaction::above(above);
        self
    }

    /// Gives the store a read cache of `limit_bytes`; none if that is 0.
    ///
    /// # Errors
    /// [`OpenError::Heap`] if the memory cannot be allocated.
    pub fn caching(mut self, limit_bytes: u64, dram: impl Dram + 'static) -> Result<HiKv<M, D>, OpenError> {
        self.writer.set_cache(ReadCache::new(limit_bytes, dram)?);
        Ok(self)
    }

    /// Sets the store's clock.
    #[must_use]
    pub fn by_clock(mut self, clock: Clock) -> Self {
        self.writer.reader_mut().set_clock(clock);
        self
    }

    /// Sets the checks of reads (default: none).
    #[must_use]
    pub fn verifying(mut self, verify: Verify) -> HiKv<M, D> {
        self.writer.reader_mut().set_verify(verify);
        self
    }
}
