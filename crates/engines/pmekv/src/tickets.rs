//! When what readers find is durable.
//!
//! The tree learns of a change when the commit was asked for, and on a log that is before it is durable. So a reader that finds a
//! key, or finds that it is not there, waits for the key's last change. Keys share places, of which there are few: each has the
//! latest point of its keys, so a place may say later than is so, and never earlier. A place names the hash that alone has raised it since
//! all was durable there, by a tag: where a log fails, a key of another tag is known to be durable, and goes on being read.
//!
//! # Order
//! A place is raised under the lane's lock, before the tree changes; a thread that has read the tree after that finds it raised. A
//! thread that has waited lowers the place again, unless it was raised meanwhile. Where a commit is durable when it returns all
//! places stay 0.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Ticket;

const PLACE_COUNT: usize = 1 << 12;

/// The lowest bits of a place: the tag of the hash that raised it. The rest is the point, of which a process does not use as many.
const TAG_BITS: u32 = 8;
const TAG: u64 = (1 << TAG_BITS) - 1;
/// Hashes of several tags have raised it, or all have.
const SHARED: u64 = 0;

/// The point that a reader of a key has to wait for.
#[derive(Clone, Copy)]
pub(crate) struct Met {
    /// The point from which on the key is durably as it was found, or a later one.
    pub(crate) ticket: Ticket,
    /// The point is that of other keys alone, and the key durable already.
    pub(crate) is_others: bool,
}

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
        raise(self.place(hash), ticket, tag_of(hash));
        raise(&self.latest, ticket, SHARED);
    }

    /// All keys are.
    pub(crate) fn raise_all(&self, ticket: Ticket) {
        self.places.iter().chain([&self.latest]).for_each(|place| raise(place, ticket, SHARED));
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

    /// For a reader of a key of this hash.
    pub(crate) fn of(&self, hash: u64) -> Met {
        let place = self.place(hash).load(Ordering::Acquire);
        let is_others = ![SHARED, tag_of(hash)].contains(&(place & TAG));
        Met { ticket: Ticket(place >> TAG_BITS), is_others }
    }

    /// The point of all keys.
    pub(crate) fn latest(&self) -> Ticket {
        Ticket(self.latest.load(Ordering::Acquire) >> TAG_BITS)
    }

    fn place(&self, hash: u64) -> &AtomicU64 {
        &self.places[hash as usize % PLACE_COUNT]
    }
}

fn tag_of(hash: u64) -> u64 {
    (hash / PLACE_COUNT as u64) % TAG + 1
}

fn raise(place: &AtomicU64, ticket: Ticket, tag: u64) {
    if ticket != Ticket::default() {
        let raised = |now: u64| {
            let tag = if now == 0 || now & TAG == tag { tag } else { SHARED };
            Some((now >> TAG_BITS).max(ticket.0) << TAG_BITS | tag)
        };
        let _ = place.fetch_update(Ordering::AcqRel, Ordering::Acquire, raised);
    }
}

/// A later point stays: points become durable in their order.
fn settle(place: &AtomicU64, ticket: Ticket) {
    if ticket != Ticket::default() {
        let settled = |now: u64| (now >> TAG_BITS == ticket.0).then_some(0);
        let _ = place.fetch_update(Ordering::AcqRel, Ordering::Relaxed, settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hashes of one place, and of different tags.
    const ONE: u64 = 5;
    const OTHER: u64 = ONE + PLACE_COUNT as u64;

    #[test]
    fn place_names_its_only_hash() {
        let tickets = Tickets::default();
        tickets.raise(ONE, Ticket(10));
        let of = |hash| (tickets.of(hash).ticket, tickets.of(hash).is_others);
        assert_eq!([of(ONE), of(OTHER)], [(Ticket(10), false), (Ticket(10), true)]);
        tickets.raise(ONE, Ticket(20));
        assert_eq!([of(ONE), of(OTHER)], [(Ticket(20), false), (Ticket(20), true)]);
        tickets.raise(OTHER, Ticket(15));
        assert_eq!([of(ONE), of(OTHER)], [(Ticket(20), false); 2], "either may be the earlier one");
        tickets.settle(ONE, Ticket(15));
        assert_eq!(tickets.latest(), Ticket(20));
        tickets.settle(OTHER, Ticket(20));
        assert_eq!((of(ONE), tickets.latest()), ((Ticket(0), false), Ticket(0)));
    }
}
