//! When what readers find is durable.
//!
//! The tree learns of a change when the commit was asked for, and on a log that is before it is durable. So a reader that finds a
//! key, or finds that it is not there, waits for the key's last change. Keys share places, of which there are few: each has the
//! latest point of its keys, so a place may say later than is so, and never earlier.
//!
//! # Order
//! A place is raised under the lane's lock, before the tree changes; a thread that has read the tree after that finds it raised. A
//! thread that has waited lowers the place again, unless it was raised meanwhile. Where a commit is durable when it returns all
//! places stay 0.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Ticket;

const PLACE_COUNT: usize = 1 << 12;

/// Points, by key.
pub(crate) struct Tickets {
    places: Box<[AtomicU64]>,
    latest: AtomicU64,
}

impl Default for Tickets {
    fn default() -> Tickets {
        Tickets { places: (0..PLACE_COUNT).map(|_| AtomicU64::new(0)).collect(), latest: AtomicU64::new(0) }
    }
}

impl Tickets {
    /// Keys of this hash are as they are now from this point on.
    pub(crate) fn raise(&self, hash: u64, ticket: Ticket) {
        raise(self.place(hash), ticket);
        raise(&self.latest, ticket);
    }

    /// All keys are.
    pub(crate) fn raise_all(&self, ticket: Ticket) {
        self.places.iter().chain([&self.latest]).for_each(|place| raise(place, ticket));
    }

    /// This point of keys of this hash is durable: nobody need wait for it any more.
    pub(crate) fn settle(&self, hash: u64, ticket: Ticket) {
        settle(self.place(hash), ticket);
        settle(&self.latest, ticket);
    }

    /// This point of all keys is.
    pub(crate) fn settle_all(&self, ticket: Ticket) {
        self.places.iter().chain([&self.latest]).for_each(|place| settle(place, ticket));
    }

    /// The point from which on a key of this hash is durably as it was found.
    pub(crate) fn of(&self, hash: u64) -> Ticket {
        Ticket(self.place(hash).load(Ordering::Acquire))
    }

    /// The point of all keys.
    pub(crate) fn latest(&self) -> Ticket {
        Ticket(self.latest.load(Ordering::Acquire))
    }

    fn place(&self, hash: u64) -> &AtomicU64 {
        &self.places[hash as usize % PLACE_COUNT]
    }
}

fn raise(place: &AtomicU64, ticket: Ticket) {
    if ticket != Ticket::default() {
        place.fetch_max(ticket.0, Ordering::AcqRel);
    }
}

/// A later point stays: points become durable in their order.
fn settle(place: &AtomicU64, ticket: Ticket) {
    if ticket != Ticket::default() {
        let _ = place.compare_exchange(ticket.0, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}
