//! Reservations: places that nothing refers to yet.

use core::mem;

use pmem::Dram;

use crate::chunks::Chunks;
use crate::place::Place;

/// A place to be filled. Publishing keeps it; dropping frees it.
///
/// A crash also frees it until something durable refers to it.
#[must_use = "a reservation that is dropped is cancelled"]
pub struct Reservation<'a, D: Dram> {
    chunks: &'a Chunks<D>,
    place: Place,
}

impl<'a, D: Dram> Reservation<'a, D> {
    pub(crate) fn new(chunks: &'a Chunks<D>, place: Place) -> Reservation<'a, D> {
        Reservation { chunks, place }
    }

    /// Returns the place, which only the holder may use.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Keeps the place. Only [`Heap::free`](crate::Heap::free) frees it afterwards.
    pub fn publish(self) -> Place {
        let place = self.place;
        mem::forget(self);
        place
    }
}

impl<D: Dram> Drop for Reservation<'_, D> {
    fn drop(&mut self) {
        self.chunks.cancel(self.place);
    }
}
