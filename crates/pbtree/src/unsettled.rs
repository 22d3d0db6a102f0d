//! Tickets of recent changes by key, for a tree whose medium has failed.
//!
//! A leaf's lock has one ticket for all keys of the leaf, and while the medium works, a reader waits for it. A medium
//! that has failed makes nothing durable any more, and one write in progress would hide all keys of its leaf. So each
//! change of a key is recorded here with its ticket, and a reader whose leaf cannot become durable uses the key's own
//! ticket.
//!
//! Tickets ascend, and everything up to a durable ticket is durable. A key's checksum selects two places, and a place
//! holds the latest ticket of all its keys. So the earlier ticket of the two may be later than the key's own, but
//! never earlier.
//!
//! # Order
//! A change is recorded under the exclusive lock of its leaf. A reader that has seen the change has locked the leaf
//! since, and finds the record.

use core::sync::atomic::{AtomicU64, Ordering};

use heap::HeapError;
use pmem::{Dram, DramBox, Medium, Ticket, Waited};

use crate::Error;
use crate::locks::{Held, NodeLock};

/// Many times more than the changes in progress at one time, and small enough for the processor's second-level cache.
const PLACE_COUNT_LOG2: u32 = 13;

type Places = [AtomicU64; 1 << PLACE_COUNT_LOG2];

/// See the module. Nothing is recorded on a medium whose commits never wait.
pub(crate) struct Unsettled<D: Dram> {
    places: Option<DramBox<Places, D>>,
    /// The commit of the last clear.
    cleared: AtomicU64,
    /// The latest acknowledged commit.
    acknowledged: AtomicU64,
}

impl<D: Dram> Unsettled<D> {
    pub(crate) fn new<M: Medium>(medium: &M, dram: D) -> Result<Unsettled<D>, HeapError> {
        let no_dram = HeapError::NoDram { wanted_bytes: size_of::<Places>() };
        // SAFETY: zeros are places of keys that were never changed.
        let places = medium.is_journaled().then(|| unsafe { DramBox::zeroed(dram) }.ok_or(no_dram)).transpose()?;
        Ok(Unsettled { places, cleared: AtomicU64::new(0), acknowledged: AtomicU64::new(0) })
    }

    /// Returns the bytes of DRAM that it has allocated.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.places.as_ref().map_or(0, |_| size_of::<Places>() as u64)
    }

    /// Records that this commit changes a key with this checksum.
    #[inline]
    pub(crate) fn note(&self, checksum: u32, ticket: Ticket) {
        if let Some(places) = &self.places {
            places_of(checksum).into_iter().for_each(|i| _ = places[i].fetch_max(ticket.0, Ordering::Relaxed));
        }
    }

    /// Records that this commit changes every key.
    pub(crate) fn note_all(&self, ticket: Ticket) {
        self.cleared.fetch_max(ticket.0, Ordering::Relaxed);
    }

    /// Records that commits up to this one were acknowledged or shown to a reader.
    #[inline]
    fn acknowledged(&self, ticket: Ticket) {
        if self.acknowledged.load(Ordering::Relaxed) < ticket.0 {
            self.acknowledged.fetch_max(ticket.0, Ordering::Relaxed);
        }
    }

    /// Records the commit that every later reader of the node, or of the key with this checksum, must wait for.
    pub(crate) fn committed(&self, held: &Held<'_>, checksum: u32, ticket: Ticket) {
        self.note(checksum, ticket);
        held.committed(ticket);
    }

    /// Waits until this commit of the caller is durable, or leaves that to the caller.
    pub(crate) fn acknowledge<M: Medium>(&self, medium: &M, ticket: Ticket) -> Result<(), Error> {
        if medium.acknowledge(ticket)? == Waited::Durable {
            self.acknowledged(ticket);
        }
        Ok(())
    }

    /// Records that a thread has waited for this commit, the last that the lock's holder made. If it is durable, no
    /// thread needs to wait for it any more.
    pub(crate) fn settle(&self, lock: &NodeLock, ticket: Ticket, waited: Waited) {
        if waited == Waited::Durable {
            self.acknowledged(ticket);
            lock.settle(ticket);
        }
    }

    /// Decides whether a key's contents are durable even though `error` prevents the whole leaf from being durable.
    #[cold]
    #[inline(never)]
    pub(crate) fn settled_alone<M: Medium>(&self, medium: &M, checksum: u32, error: Error) -> Result<(), Error> {
        match self.of(checksum) {
            Some(ticket) => medium.acknowledge_met(ticket).map(drop).map_err(|_| error),
            None => Ok(()),
        }
    }

    /// Returns the commit of the key's last change, or a later one; `None` if that was acknowledged.
    fn of(&self, checksum: u32) -> Option<Ticket> {
        let place = |i: usize| self.places.as_ref().map_or(u64::MAX, |places| places[i].load(Ordering::Relaxed));
        let [first, second] = places_of(checksum).map(place);
        let last = first.min(second).max(self.cleared.load(Ordering::Relaxed));
        (last > self.acknowledged.load(Ordering::Relaxed)).then_some(Ticket(last))
    }
}

/// Returns a key's places: the lowest bits of its checksum, and the highest.
fn places_of(checksum: u32) -> [usize; 2] {
    let low = checksum & ((1 << PLACE_COUNT_LOG2) - 1);
    [low as usize, (checksum >> (u32::BITS - PLACE_COUNT_LOG2)) as usize]
}

#[cfg(test)]
mod tests {
    use pmem_sim::{Model, Sim, SimDram};

    use super::*;

    #[test]
    fn key_has_its_own_ticket() {
        // SAFETY: zeros are places of keys that were never changed.
        let places = Some(unsafe { DramBox::zeroed(SimDram) }.unwrap());
        let unsettled = Unsettled { places, cleared: AtomicU64::new(0), acknowledged: AtomicU64::new(0) };
        let [first, shares_low, other] = [0x1234_5678, 0xFFFF_F678, 0x0F0F_0F0F];
        unsettled.note(first, Ticket(5));
        unsettled.note(shares_low, Ticket(9));
        assert_eq!([first, shares_low, other].map(|key| unsettled.of(key)), [Some(Ticket(5)), Some(Ticket(9)), None]);
        unsettled.acknowledged(Ticket(5));
        unsettled.acknowledged(Ticket(4));
        assert_eq!([first, shares_low].map(|key| unsettled.of(key)), [None, Some(Ticket(9))]);
        unsettled.note_all(Ticket(10));
        assert_eq!([first, shares_low, other].map(|key| unsettled.of(key)), [Some(Ticket(10)); 3]);
    }

    #[test]
    fn memory_notes_nothing() {
        let unsettled = Unsettled::new(&Sim::new(4096, Model::Line), SimDram).unwrap();
        unsettled.note(7, Ticket(1));
        assert_eq!(unsettled.allocated_bytes(), 0);
    }
}
