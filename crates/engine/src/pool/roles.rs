//! How many threads have the backend's role, and how many are to have it.
//!
//! # Invariants
//! 1. `count` is how many threads have the role: each has it from a `take` that said yes to the `leave` that did, or the `release`.
//! 2. No thread takes the role while as many have it as are wanted. So while that does not change, no more have it.
//! 3. Once that does not change, and each thread has come by, as many have it as are wanted, or all threads.
//!
//! # Why it is sound
//! What a thread decides upon is the count that its exchange replaces, so no two take the same place or leave the same one. What is wanted
//! may be older than that: the thread that comes by next puts it right. These words order nothing else, since a role gives a thread nothing
//! (queues have locks of their own): no order is asked of them.

use std::sync::atomic::{AtomicU64, Ordering};

use word::Word;

#[derive(Debug)]
pub(super) struct Roles<W = AtomicU64> {
    wanted: W,
    count: W,
}

impl<W: Word> Roles<W> {
    /// So many are wanted, and none is there.
    pub(super) fn new(wanted: usize) -> Roles<W> {
        Roles { wanted: W::new(wanted as u64), count: W::new(0) }
    }

    pub(super) fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed) as usize
    }

    pub(super) fn want(&self, wanted: usize) {
        self.wanted.store(wanted as u64, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Whether [`Roles::take`] is worth a try.
    #[inline]
    pub(super) fn has_vacancy(&self) -> bool {
        self.count() < self.wanted()
    }

    /// Takes the role, unless enough threads have it.
    pub(super) fn take(&self) -> bool {
        self.change(|count, wanted| (count < wanted).then_some(count + 1))
    }

    /// Leaves it, if more threads have it than should.
    pub(super) fn leave(&self) -> bool {
        self.change(|count, wanted| (count > wanted).then(|| count - 1))
    }

    /// Leaves it whatever is wanted.
    pub(super) fn release(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    fn change(&self, next: impl Fn(u64, u64) -> Option<u64>) -> bool {
        let mut count = self.count.load(Ordering::Relaxed);
        while let Some(new) = next(count, self.wanted.load(Ordering::Relaxed)) {
            match self.count.compare_exchange_weak(count, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
