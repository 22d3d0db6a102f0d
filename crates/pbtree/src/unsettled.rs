//! Which keys' changes became durable, in a tree whose medium has failed.
//!
//! A leaf's lock has one ticket for all keys of the leaf. As long as the medium works a reader waits for it. A medium that has failed
//! makes nothing durable any more, and one write under way would hide all keys of its leaf. So each change of a key is noted here with its
//! ticket, and a reader whose leaf cannot be settled asks for the key's own.
//!
//! Tickets ascend, and what is durable up to a ticket is durable up to all earlier ones. A key's checksum gives two places. A place
//! holds the latest ticket of all its keys. So the earlier ticket of the two may be later than the key's own, and is never before that.
//!
//! # Order
//! A change is noted under the exclusive lock of its leaf. A reader that has seen the change has had that lock since, and finds the note.

use core::sync::atomic::{AtomicU64, Ordering};

use heap::HeapError;
use pmem::{Dram, DramBox, Medium, Ticket};

/// More than there are changes under way at once, many times over, and in the processor's second-level cache.
const PLACE_COUNT_LOG2: u32 = 13;

type Places = [AtomicU64; 1 << PLACE_COUNT_LOG2];

/// See the module. Nothing is noted on a medium whose commits have nothing to wait for.
pub(crate) struct Unsettled<D: Dram> {
    places: Option<DramBox<Places, D>>,
    /// The commit that took all keys away.
    cleared: AtomicU64,
    /// Up to where changes were acknowledged.
    acknowledged: AtomicU64,
}

impl<D: Dram> Unsettled<D> {
    pub(crate) fn new<M: Medium>(medium: &M, dram: D) -> Result<Unsettled<D>, HeapError> {
        let no_dram = HeapError::NoDram { wanted_bytes: size_of::<Places>() };
        // SAFETY: zeros are places of keys that were never changed.
        let places = medium.is_journaled().then(|| unsafe { DramBox::zeroed(dram) }.ok_or(no_dram)).transpose()?;
        Ok(Unsettled { places, cleared: AtomicU64::new(0), acknowledged: AtomicU64::new(0) })
    }

    /// DRAM that it has borrowed.
    pub(crate) fn lent_bytes(&self) -> u64 {
        self.places.as_ref().map_or(0, |_| size_of::<Places>() as u64)
    }

    /// A key of this checksum is changed by this commit.
    #[inline]
    pub(crate) fn note(&self, checksum: u32, ticket: Ticket) {
        if let Some(places) = &self.places {
            places_of(checksum).into_iter().for_each(|i| _ = places[i].fetch_max(ticket.0, Ordering::Relaxed));
        }
    }

    /// Every key is changed by this commit.
    pub(crate) fn note_all(&self, ticket: Ticket) {
        self.cleared.fetch_max(ticket.0, Ordering::Relaxed);
    }

    /// What was committed up to here was acknowledged, or shown to a reader.
    #[inline]
    pub(crate) fn acknowledged(&self, ticket: Ticket) {
        if self.acknowledged.load(Ordering::Relaxed) < ticket.0 {
            self.acknowledged.fetch_max(ticket.0, Ordering::Relaxed);
        }
    }

    /// The commit of the key's last change, or a later one; `None` if that was acknowledged.
    pub(crate) fn of(&self, checksum: u32) -> Option<Ticket> {
        let place = |i: usize| self.places.as_ref().map_or(u64::MAX, |places| places[i].load(Ordering::Relaxed));
        let [first, second] = places_of(checksum).map(place);
        let last = first.min(second).max(self.cleared.load(Ordering::Relaxed));
        (last > self.acknowledged.load(Ordering::Relaxed)).then_some(Ticket(last))
    }
}

/// A key's places: the lowest bits of its checksum, and the highest.
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
        assert_eq!(unsettled.lent_bytes(), 0);
    }
}
