//! What hash indexes work on, and what they leave behind.

use std::any::Any;

use epoch::Limbo;
use heap::layout::SEGMENT_BYTES;
use heap::{Heap, Place, PlaceKind};
use pmem::{Dram, Medium, Offset};

use crate::Position;

/// What the index works on: the region, its allocator, and where unlinked things wait.
pub struct Context<'a, M, D: Dram> {
    /// The region.
    pub medium: &'a M,
    /// Its allocator.
    pub heap: &'a Heap<D>,
    /// Where unlinked things wait.
    pub limbo: &'a Limbo<Garbage>,
}

impl<M, D: Dram> Clone for Context<'_, M, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, D: Dram> Copy for Context<'_, M, D> {}

impl<M: Medium, D: Dram> Context<'_, M, D> {
    /// Retires `garbage`, which was unlinked before, and frees what no reader can reach any more. Inlined, for a place stays in registers then: a call
    /// stores it by parts and loads it as one, which waits for the stores.
    #[inline(always)]
    pub fn retire(&self, garbage: Garbage) {
        let (context, bytes) = (*self, self.bytes_of(&garbage));
        let waiting_bytes = self.limbo.retire(garbage, bytes, move |free| context.free(free));
        if waiting_bytes > 0 {
            self.heap.expect_newly_free(waiting_bytes);
        }
    }

    /// As [`Context::retire`], of many.
    pub fn retire_all(&self, garbage: impl Iterator<Item = Garbage>) {
        let garbage = garbage.map(|one| {
            let bytes = self.bytes_of(&one);
            (one, bytes)
        });
        let waiting_bytes = self.limbo.retire_all(garbage, |free| self.free(free));
        if waiting_bytes > 0 {
            self.heap.expect_newly_free(waiting_bytes);
        }
    }

    /// Bytes that it keeps from being used for anything else.
    #[inline(always)]
    fn bytes_of(&self, garbage: &Garbage) -> u64 {
        match garbage {
            Garbage::Item(position) => position.slot_bytes().unwrap_or_else(|| self.extent_bytes(*position)),
            Garbage::Segment(_) => SEGMENT_BYTES,
            Garbage::Table(_) => 0,
        }
    }

    #[cold]
    fn extent_bytes(&self, position: Position) -> u64 {
        position.place().map_or(0, |place| self.heap.place_bytes(place))
    }

    /// Frees everything that no reader can reach any more; true if there was any.
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
        }
    }
}

/// Something unlinked that a pinned reader may still look at: each a word, which stays in registers on its way to the limbo.
#[derive(Debug)]
pub enum Garbage {
    /// What lies where an item could.
    Item(Position),
    /// A segment in the region.
    Segment(Offset),
    /// A volatile table of the index.
    Table(Table),
}

impl Garbage {
    /// What lies at `place`.
    #[must_use]
    pub fn of(place: Place) -> Garbage {
        match place.kind {
            PlaceKind::Segment => Garbage::Segment(place.offset),
            PlaceKind::Slot(_) | PlaceKind::Extent => Garbage::Item(Position::of(place)),
        }
    }
}

/// A volatile table of an index, opaque to others.
#[derive(Debug)]
pub struct Table(#[expect(dead_code, reason = "kept for its destructor alone")] Box<Box<dyn Any + Send>>);

impl Table {
    pub(crate) fn new(table: impl Any + Send) -> Table {
        Table(Box::new(Box::new(table)))
    }
}
