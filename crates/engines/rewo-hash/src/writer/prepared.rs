//! New slots.

use engine::Expiry;
use heap::{Place, Reservation};
use index::Position;
use index::block_hash::{Key, Slot};
use pmem::Dram;

use crate::contents::New;
use crate::expiring::Expiring;

/// A new slot. If the item is larger than a slot: also the reserved space with the written and flushed item.
pub(crate) struct Prepared<'a, 'v, D: Dram> {
    pub(crate) new: New<'v>,
    reservation: Option<Reservation<'a, D>>,
    expires: bool,
}

impl<'a, 'v, D: Dram> Prepared<'a, 'v, D> {
    /// Creates a slot that holds the item itself.
    #[inline(always)]
    pub(crate) fn whole(slot: Slot) -> Prepared<'a, 'v, D> {
        Prepared { new: New { slot, copy: None }, reservation: None, expires: false }
    }

    /// Creates a slot that names the item at the start of `reservation`.
    #[inline(always)]
    pub(crate) fn in_reserved(key: Key<'_>, reservation: Reservation<'a, D>, expiry: Expiry) -> Prepared<'a, 'v, D> {
        let slot = Slot::of_item(key.signature, Position::of(reservation.place()));
        Prepared { new: New { slot, copy: None }, reservation: Some(reservation), expires: !expiry.is_never() }
    }

    /// Returns the place for the item, unless the slot holds it.
    #[inline(always)]
    pub(super) fn place(&self) -> Option<Place> {
        self.reservation.as_ref().map(Reservation::place)
    }

    /// Keeps the item, which is named now. The reaper is notified only now: a walk that it began before may have met
    /// the key's old item.
    #[inline(always)]
    pub(crate) fn publish(self, expiring: &Expiring) {
        self.reservation.into_iter().for_each(|reservation| _ = reservation.publish());
        if self.expires {
            expiring.expect();
        }
    }
}
