//! A bounded queue of changes: many writers, one drainer at a time (paper, section 3.2: 4,096 entries).
//!
//! A writer takes a [`Ticket`], a place in the queue, before publishing, and fills the place afterwards. So the order
//! of tickets is the order in which writers held a key's bucket lock, and a thread that has seen a write finds its
//! ticket taken.
//!
//! # Invariants
//! `head <= tail <= head + capacity`. Places below `head` were applied. Places from `head` to `tail` are taken, and
//! each is filled once. A place is filled when its sequence word is the ticket plus one. Only a drainer, one at a time,
//! moves `head`.
//!
//! # Why it is sound
//! A place's words are stored before the sequence (Release) and loaded after it (Acquire). Only the writer that took
//! the ticket one lap later stores them again. That writer saw `head` beyond the place (Acquire), and the drainer
//! stored `head` (Release) after its last load of the words.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use word::Word;

/// Words of a change. With the place's sequence they fill a line.
pub(super) const CHANGE_WORDS: usize = 7;

/// Has its own lines, because other threads store to adjacent data.
#[derive(Debug)]
#[repr(align(128))]
struct CachePadded<W>(W);

#[derive(Debug)]
#[repr(align(64))]
struct Place<W> {
    sequence: W,
    words: [W; CHANGE_WORDS],
}

/// The queue.
#[derive(Debug)]
pub(super) struct Ring<W = AtomicU64> {
    tail: CachePadded<W>,
    head: CachePadded<W>,
    places: Box<[Place<W>]>,
}

/// A place in the queue, to be filled soon: the drainer waits for it. A ticket that is dropped unfilled fills the place
/// with zeros, which stand for no change.
#[derive(Debug)]
#[must_use]
pub(crate) struct Ticket<'a, W: Word = AtomicU64> {
    ring: &'a Ring<W>,
    number: u64,
}

impl<W: Word> Ring<W> {
    /// Returns a queue of `capacity`, a power of two.
    pub(super) fn new(capacity: usize) -> Ring<W> {
        assert!(capacity.is_power_of_two(), "{capacity} places: not a power of two");
        let place = |_| Place { sequence: W::new(0), words: [(); CHANGE_WORDS].map(|()| W::new(0)) };
        Ring { tail: CachePadded(W::new(0)), head: CachePadded(W::new(0)), places: (0..capacity).map(place).collect() }
    }

    /// Takes the next place; `None` while the queue is full.
    #[inline]
    pub(super) fn take(&self) -> Option<Ticket<'_, W>> {
        let mut tail = self.tail.0.load(Ordering::Relaxed);
        loop {
            // `head` may be ahead of a stale `tail`; the exchange then fails.
            if tail.saturating_sub(self.head()) >= self.places.len() as u64 {
                return None;
            }
            match self.tail.0.compare_exchange_weak(tail, tail + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(number) => return Some(Ticket { ring: self, number }),
                Err(now) => tail = now,
            }
        }
    }

    /// Returns the number of places.
    pub(super) fn capacity(&self) -> u64 {
        self.places.len() as u64
    }

    /// Returns the number of tickets taken so far.
    pub(super) fn tail(&self) -> u64 {
        self.tail.0.load(Ordering::Acquire)
    }

    /// Returns the number of tickets applied so far.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.head.0.load(Ordering::Acquire)
    }

    /// Returns the number of tickets taken and not applied.
    pub(super) fn len(&self) -> u64 {
        let head = self.head();
        self.tail().saturating_sub(head)
    }

    /// Copies the next filled places into `changes`; returns their number. The caller is the drainer.
    pub(super) fn peek(&self, changes: &mut [[u64; CHANGE_WORDS]]) -> usize {
        let head = self.head();
        let filled = (head..).zip(changes).map_while(|(number, change)| {
            let place = self.place(number);
            (place.sequence.load(Ordering::Acquire) == number + 1)
                .then(|| *change = std::array::from_fn(|i| place.words[i].load(Ordering::Relaxed)))
        });
        filled.count()
    }

    /// Records that the next `count` changes were applied. The caller is the drainer.
    pub(super) fn advance(&self, count: usize) {
        self.head.0.store(self.head() + count as u64, Ordering::Release);
    }

    fn place(&self, number: u64) -> &Place<W> {
        &self.places[number as usize & (self.places.len() - 1)]
    }
}

impl<W: Word> Ticket<'_, W> {
    /// Returns the number of tickets that were taken before this one.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns true if the queue is more than half full.
    pub(super) fn is_crowded(&self) -> bool {
        self.ring.len() > self.ring.capacity() / 2
    }

    /// Fills the place.
    #[inline]
    pub(super) fn fill(self, change: [u64; CHANGE_WORDS]) {
        self.fill_in(change);
        mem::forget(self);
    }

    #[inline]
    fn fill_in(&self, change: [u64; CHANGE_WORDS]) {
        let place = self.ring.place(self.number);
        for (word, change) in place.words.iter().zip(change) {
            word.store(change, Ordering::Relaxed);
        }
        place.sequence.store(self.number + 1, Ordering::Release);
    }
}

impl<W: Word> Drop for Ticket<'_, W> {
    fn drop(&mut self) {
        self.fill_in([0; CHANGE_WORDS]);
    }
}

#[cfg(test)]
mod tests;
