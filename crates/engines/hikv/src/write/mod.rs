//! Writes: the item, then the entry (`publish`).

pub(crate) mod batch;
mod broken;
pub(crate) mod conditional;
pub(crate) mod multi_put;
mod plan;
mod publish;
mod reservations;
mod target;

use index::partitioned_hash::Context;
use pmem::{Dram, Medium};

use crate::cache::ReadCache;
use crate::image::CleanImage;
use crate::memory::Memory;
use crate::order::{Ordered, Source};
use crate::read::Reader;
use crate::reaper::Reaper;
use crate::snapshots::{Disposal, Snapshots};
use crate::space::Space;
use engine::{Error, KeyChanges, Limits, Progress, may_write, with_space};

pub(crate) use target::{Expected, Prepared, Tried, WriteTarget};

/// The parts of a store that take part in a write.
pub(crate) struct Writer<M, D: Dram> {
    reader: Reader<M>,
    cache: ReadCache,
    space: Space<D>,
    image: CleanImage,
    snapshots: Snapshots,
    order: Ordered<D>,
    reaper: Reaper,
    key_changes: KeyChanges,
}

impl<M: Medium, D: Memory> Writer<M, D> {
    /// Returns a writer of a store without cache and order.
    pub(crate) fn new(
        reader: Reader<M>,
        space: Space<D>,
        image: CleanImage,
        snapshots: Snapshots,
        dram: D,
    ) -> Writer<M, D> {
        Writer {
            reader,
            cache: ReadCache::default(),
            space,
            image,
            snapshots,
            order: Ordered::never(dram),
            reaper: Reaper::default(),
            key_changes: KeyChanges::default(),
        }
    }

    pub(crate) fn set_order(&mut self, order: Ordered<D>) {
        self.order = order;
    }

    pub(crate) fn set_cache(&mut self, cache: ReadCache) {
        self.cache = cache;
    }

    pub(crate) fn reader_mut(&mut self) -> &mut Reader<M> {
        &mut self.reader
    }

    #[inline(always)]
    pub(crate) fn reader(&self) -> &Reader<M> {
        &self.reader
    }

    #[inline(always)]
    pub(crate) fn cache(&self) -> &ReadCache {
        &self.cache
    }

    #[inline(always)]
    pub(crate) fn space(&self) -> &Space<D> {
        &self.space
    }

    pub(crate) fn image(&self) -> &CleanImage {
        &self.image
    }

    #[inline(always)]
    pub(crate) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    #[inline(always)]
    pub(crate) fn order(&self) -> &Ordered<D> {
        &self.order
    }

    #[inline(always)]
    pub(crate) fn reaper(&self) -> &Reaper {
        &self.reaper
    }

    #[inline(always)]
    pub(crate) fn key_changes(&self) -> &KeyChanges {
        &self.key_changes
    }

    /// Returns the context of a change of the index.
    #[inline(always)]
    pub(crate) fn cx(&self) -> Context<'_, M, D> {
        self.space.cx(self.reader.medium())
    }

    /// Returns the disposal of replaced items.
    #[inline(always)]
    pub(crate) fn disposal(&self) -> Disposal<'_, M, D> {
        self.snapshots.disposal(self.cx())
    }

    /// Returns the source from which the order is built.
    pub(crate) fn source(&self) -> Source<'_, M, D> {
        Source { index: self.reader.index(), image: &self.image, disposal: self.disposal() }
    }

    /// Admits a put: checks its lengths, and all that [`Writer::admit`] checks.
    #[inline(always)]
    pub(crate) fn admit_put(&self, key: &[u8], value_bytes: u64) -> Result<(), Error> {
        check_lengths(key, value_bytes)?;
        self.admit()
    }

    /// Called before every write of a user, without a lock: asks once whether anything is unusual that concerns all
    /// writes.
    #[inline(always)]
    pub(crate) fn admit(&self) -> Result<(), Error> {
        may_write(self.reader.medium())?;
        if self.image.is_named() | self.space.is_over() {
            self.admit_unusual();
        }
        Ok(())
    }

    /// Invalidates a clean image that is named, because no change is made while one is. Slows a write that leaves
    /// garbage, if there is too much.
    ///
    /// Has only the writer as parameter: the address of another one would occupy a register during the whole write.
    #[cold]
    #[inline(never)]
    fn admit_unusual(&self) {
        self.image.forget(self.reader.medium(), self.space.heap());
        self.bound_garbage();
    }

    /// Called before every change that [`Writer::admit`] does not precede: none is made while a clean image is named.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        may_write(self.reader.medium())?;
        if self.image.is_named() {
            self.image.forget(self.reader.medium(), self.space.heap());
        }
        Ok(())
    }

    /// Slows a write that leaves garbage, if there is too much. Called once before the write, without a lock.
    pub(crate) fn bound_garbage(&self) {
        if self.space.is_over() {
            self.space.slow_down(self.reader.medium());
        }
    }

    /// Tries a second time if the region was full: free space may turn up. The caller is not pinned: otherwise garbage
    /// that waits for the caller would not be freed.
    #[inline(always)]
    pub(crate) fn with_space<R>(&self, attempt: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        with_space(attempt, || self.make_space())
    }

    /// Finishes the sweep, which may find free space, and waits for readers, which may free some. It does not wait if
    /// the caller is such a reader.
    #[cold]
    fn make_space(&self) -> Result<(), Error> {
        self.space.finish_sweep(&self.reader)?;
        // Queued changes keep the items that they replaced.
        while !epoch::is_pinned() && self.order.step(self.source())? == Progress::More {}
        self.space.await_readers(self.reader.medium());
        Ok(())
    }
}

#[inline(always)]
pub(crate) fn check_lengths(key: &[u8], value_bytes: u64) -> Result<(), Error> {
    Limits::check_key(key)?;
    Limits::check_value(value_bytes)
}
