//! What hash indexes work on, and what they leave behind.

use std::any::Any;

use epoch::Limbo;
use heap::{Heap, Place};
use pmem::{Dram, Medium};

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
        let bytes = match &garbage {
            Garbage::Place(place) => self.heap.place_bytes(*place),
            Garbage::Table(_) => 0,
        };
        self.limbo.retire(garbage, bytes, |free| self.free(free));
    }

    /// As [`Context::retire`], of many places.
    pub fn retire_all(&self, places: impl Iterator<Item = Place>) {
        let garbage = places.map(|place| (Garbage::Place(place), self.heap.place_bytes(place)));
        self.limbo.retire_all(garbage, |free| self.free(free));
    }

    /// Frees everything that no reader can reach any more; true if there was any.
    pub fn collect(&self) -> bool {
        self.limbo.collect(|free| self.free(free))
    }

    fn free(&self, garbage: Garbage) {
        match garbage {
            Garbage::Place(place) => self.heap.free(self.medium, place),
            Garbage::Table(table) => drop(table),
        }
    }
}

/// Something unlinked that a pinned reader may still look at.
#[derive(Debug)]
pub enum Garbage {
    /// An item or a segment in the region.
    Place(Place),
    /// A volatile table of the index.
    Table(Table),
}

/// A volatile table of an index, opaque to others.
#[derive(Debug)]
pub struct Table(#[expect(dead_code, reason = "kept for its destructor alone")] Box<dyn Any + Send>);

impl Table {
    pub(crate) fn new(table: impl Any + Send) -> Table {
        Table(Box::new(table))
    }
}
