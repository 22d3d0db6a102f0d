//! Places: what the heap hands out.

use core::mem;

use pmem::{Dram, Offset};

use crate::Heap;
use crate::class::Class;
use crate::slot_kind::SlotKind;

/// A piece of the region that something can be stored in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Its first byte, a multiple of 16.
    pub offset: Offset,
    /// What it is a piece of.
    pub kind: PlaceKind,
}

/// What a place is a piece of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlaceKind {
    /// A slot of a size class.
    Slot(Class),
    /// A segment of the hash index: [`SEGMENT_BYTES`](crate::layout::SEGMENT_BYTES).
    Segment,
    /// A chunk of its own.
    Extent,
}

impl PlaceKind {
    /// The kind of slots of the chunk that holds such a place, or `None` for an extent.
    pub(crate) const fn slot_kind(self) -> Option<SlotKind> {
        match self {
            PlaceKind::Slot(class) => Some(SlotKind::of_class(class)),
            PlaceKind::Segment => Some(SlotKind::SEGMENTS),
            PlaceKind::Extent => None,
        }
    }
}

/// A place that is to be filled: published, it stays; dropped, it is free again.
///
/// Until something durable refers to it, a crash frees it too.
#[must_use = "a reservation that is dropped is cancelled"]
pub struct Reservation<'a, D: Dram> {
    heap: &'a Heap<D>,
    place: Place,
}

impl<'a, D: Dram> Reservation<'a, D> {
    pub(crate) fn new(heap: &'a Heap<D>, place: Place) -> Reservation<'a, D> {
        Reservation { heap, place }
    }

    /// The place, which belongs to the holder alone.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Keeps the place: [`Heap::free`] is the only way back.
    pub fn publish(self) -> Place {
        let place = self.place;
        mem::forget(self);
        place
    }
}

impl<D: Dram> Drop for Reservation<'_, D> {
    fn drop(&mut self) {
        self.heap.cancel(self.place);
    }
}
