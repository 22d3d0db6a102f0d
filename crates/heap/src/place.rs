//! Places: the units of allocation that the heap hands out.

use core::mem;

use pmem::{Dram, Offset};

use crate::Heap;
use crate::class::Class;
use crate::slot_kind::SlotKind;

/// A piece of the region that can hold an item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Its first byte, a multiple of 16.
    pub offset: Offset,
    /// The kind of piece.
    pub kind: PlaceKind,
}

/// The kind of a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlaceKind {
    /// A slot of a size class.
    Slot(Class),
    /// A segment of the hash index: [`SEGMENT_BYTES`](crate::layout::SEGMENT_BYTES).
    Segment,
    /// A separate chunk.
    Extent,
}

impl PlaceKind {
    /// Returns the kind of slots of the chunk that holds such a place, or `None` for an extent.
    pub(crate) const fn slot_kind(self) -> Option<SlotKind> {
        match self {
            PlaceKind::Slot(class) => Some(SlotKind::of_class(class)),
            PlaceKind::Segment => Some(SlotKind::SEGMENTS),
            PlaceKind::Extent => None,
        }
    }
}

/// A place to be filled. Publishing keeps it; dropping frees it.
///
/// A crash also frees it until something durable refers to it.
#[must_use = "a reservation that is dropped is cancelled"]
pub struct Reservation<'a, D: Dram> {
    heap: &'a Heap<D>,
    place: Place,
}

impl<'a, D: Dram> Reservation<'a, D> {
    pub(crate) fn new(heap: &'a Heap<D>, place: Place) -> Reservation<'a, D> {
        Reservation { heap, place }
    }

    /// Returns the place, which only the holder may use.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Keeps the place. Only [`Heap::free`] frees it afterwards.
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
