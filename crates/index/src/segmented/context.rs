//! The structures on which hash indexes work, and the garbage that they leave.

use std::any::Any;

use epoch::Limbo;
use heap::layout::SEGMENT_BYTES;
use heap::{Heap, Place, PlaceKind};
use pmem::{Dram, Medium, Offset};

use crate::Position;
use crate::partitioned_hash::batch::FinishedBatch;

/// The structures on which an index works.
pub struct Context<'a, M, D: Dram> {
    /// The region.
    pub medium: &'a M,
    /// The allocator of the region.
    pub heap: &'a Heap<D>,
    /// The unlinked objects that wait for readers.
    pub limbo: &'a Limbo<Garbage>,
}

impl<M, D: Dram> Clone for Context<'_, M, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, D: Dram> Copy for Context<'_, M, D> {}

impl<M: Medium, D: Dram> Context<'_, M, D> {
    /// Retires `garbage`, which was unlinked before, and frees everything that no reader can reach any more. It is
    /// inlined so that a place stays in registers: a call would store it in parts and load it as one, which waits
    /// for the stores.
    #[inline(always)]
    pub fn retire(&self, garbage: Garbage) {
        let (context, bytes) = (*self, self.bytes_of(&garbage));
        let waiting_bytes = self.limbo.retire(garbage, bytes, move |free| context.free(free));
        if waiting_bytes > 0 {
            self.heap.supply().expect_newly_free(waiting_bytes);
        }
    }

    /// Like [`Context::retire`], for several objects.
    pub fn retire_all(&self, garbage: impl Iterator<Item = Garbage>) {
        let garbage = garbage.map(|one| {
            let bytes = self.bytes_of(&one);
            (one, bytes)
        });
        let waiting_bytes = self.limbo.retire_all(garbage, |free| self.free(free));
        if waiting_bytes > 0 {
            self.heap.supply().expect_newly_free(waiting_bytes);
        }
    }

    /// Returns the number of bytes that the garbage keeps from reuse.
    #[inline(always)]
    fn bytes_of(&self, garbage: &Garbage) -> u64 {
        match garbage {
            Garbage::Item(position) => position.slot_bytes().unwrap_or_else(|| self.extent_bytes(*position)),
            Garbage::Segment(_) => SEGMENT_BYTES,
            Garbage::Table(_) | Garbage::Batch(_) => 0,
        }
    }

    #[cold]
    fn extent_bytes(&self, position: Position) -> u64 {
        position.place().map_or(0, |place| self.heap.table().place_bytes(place))
    }

    /// Frees everything that no reader can reach any more, and returns true if there was anything.
    pub fn collect(&self) -> bool {
        self.limbo.collect(|free| self.free(free))
    }

    fn free(&self, garbage: Garbage) {
        match garbage {
            Garbage::Item(position) => {
                position.place().into_iter().for_each(|place| self.heap.free(self.medium, place))
            }
            Garbage::Segment(offset) => self.heap.free(self.medium, Place { offset, kind: PlaceKind::Segment }),
            Garbage::Table(table) => drop(table),
            Garbage::Batch(batch) => drop(batch),
        }
    }
}

/// An unlinked object that a pinned reader may still read. Each is one word, which stays in registers on its way to
/// the limbo.
#[derive(Debug)]
pub enum Garbage {
    /// A place for an item: an item or a record.
    Item(Position),
    /// A segment in the region.
    Segment(Offset),
    /// A DRAM table of the index.
    Table(Table),
    /// A batch of the partitioned hash index. A variant of its own, because batches are frequent and need no other box.
    Batch(FinishedBatch),
}

impl Garbage {
    /// Returns the garbage at `place`.
    #[must_use]
    pub fn of(place: Place) -> Garbage {
        match place.kind {
            PlaceKind::Segment => Garbage::Segment(place.offset),
            PlaceKind::Slot(_) | PlaceKind::Extent => Garbage::Item(Position::of(place)),
        }
    }
}

/// A DRAM table of an index, opaque to other crates.
#[derive(Debug)]
pub struct Table(#[expect(dead_code, reason = "kept for its destructor alone")] Box<Box<dyn Any + Send>>);

impl Table {
    pub(crate) fn new(table: impl Any + Send) -> Table {
        Table(Box::new(Box::new(table)))
    }
}
