//! Durability of the values that readers find.
//!
//! The tree is updated when the commit is requested, which on a log is before the change is durable. So a reader that
//! finds a key, or finds it absent, waits for the key's last change. Keys share a small number of places. Each place
//! has the latest ticket of its keys, so a reader may wait longer than needed, but never too short. A tag names the
//! hash, if only one hash has raised the place since everything there was durable. If a log fails, a key with another
//! tag is known to be durable and stays readable.
//!
//! # Order
//! A place is raised under the lane's lock, before the tree changes; a thread that reads the tree after that finds it
//! raised. A thread that has waited lowers the place again, unless it was raised since. If a commit is durable when
//! it returns, all places stay 0.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::Error;
use pmem::{Medium, Ticket, Waited};

const PLACE_COUNT: usize = 1 << 12;

/// The lowest bits of a place: the tag of the hash that raised it. The other bits are the ticket; a process never uses
/// as many tickets.
const TAG_BITS: u32 = 8;
const TAG: u64 = (1 << TAG_BITS) - 1;
/// Several tags have raised the place, or a change of all keys has.
const SHARED: u64 = 0;

/// The ticket that a reader of a key has to wait for.
#[derive(Clone, Copy)]
struct Met {
    /// The ticket from which on the key's state is durable, or a later one.
    ticket: Ticket,
    /// True if the ticket belongs only to other keys, so that this key is durable already.
    is_others: bool,
}

/// Tickets by key.
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
    /// Raises the ticket of this hash: the current state of its keys is durable from it on.
    pub(crate) fn raise(&self, hash: u64, ticket: Ticket) {
        raise(self.place(hash), ticket, tag_of(hash));
        raise(&self.latest, ticket, SHARED);
    }

    /// Raises the tickets of all keys.
    pub(crate) fn raise_all(&self, ticket: Ticket) {
        self.places.iter().chain([&self.latest]).for_each(|place| raise(place, ticket, SHARED));
    }

    /// Lowers the place of this hash, whose ticket is durable, so that no reader waits for it any more.
    pub(crate) fn settle(&self, hash: u64, ticket: Ticket) {
        settle(self.place(hash), ticket);
        settle(&self.latest, ticket);
    }

    /// Lowers all places, likewise.
    pub(crate) fn settle_all(&self, ticket: Ticket) {
        self.places.iter().chain([&self.latest]).for_each(|place| settle(place, ticket));
    }

    /// Waits for the durability of the key of this hash, or of its absence, that a reader met without writing.
    pub(crate) fn met<M: Medium>(&self, medium: &M, hash: u64) -> Result<(), Error> {
        let Met { ticket, is_others } = self.of(hash);
        if ticket == Ticket::default() {
            return Ok(());
        }
        match medium.acknowledge_met(ticket) {
            Ok(Waited::Durable) => self.settle(hash, ticket),
            Ok(Waited::Deferred) => {}
            Err(error) if !is_others => return Err(error.into()),
            Err(_) => {}
        }
        Ok(())
    }

    /// Waits likewise for a reader that met several keys.
    pub(crate) fn met_many<M: Medium>(&self, medium: &M) -> Result<(), Error> {
        let ticket = self.latest();
        if ticket != Ticket::default() {
            let _ = medium.acknowledge_met(ticket)?;
        }
        Ok(())
    }

    /// Returns true if the durability of any key is pending.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        self.latest() != Ticket::default()
    }

    /// Returns the ticket from which on the state of a key of this hash is durable, or a later one.
    pub(crate) fn ticket_of(&self, hash: u64) -> Ticket {
        self.of(hash).ticket
    }

    fn of(&self, hash: u64) -> Met {
        let place = self.place(hash).load(Ordering::Acquire);
        let is_others = ![SHARED, tag_of(hash)].contains(&(place & TAG));
        Met { ticket: Ticket(place >> TAG_BITS), is_others }
    }

    /// Returns the latest ticket of all keys.
    fn latest(&self) -> Ticket {
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

/// Lowers a place. A later ticket stays: tickets become durable in order.
fn settle(place: &AtomicU64, ticket: Ticket) {
    if ticket != Ticket::default() {
        let settled = |now: u64| (now >> TAG_BITS == ticket.0).then_some(0);
        let _ = place.fetch_update(Ordering::AcqRel, Ordering::Relaxed, settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hashes of one place, with different tags.
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
