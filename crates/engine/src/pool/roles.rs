//! The number of threads that have the backend's role, and the number that should have it.
//!
//! # Invariants
//! 1. `count` is the number of threads with the role. A thread has the role from a `take` that returned true to the
//!    `leave` that returned true, or to the `give_back`.
//! 2. No thread takes the role while `count` is at least `wanted`. So `count` does not rise above a `wanted` that is
//!    constant.
//! 3. Once `wanted` is constant and each thread has checked its role, `count` equals `wanted`, or all threads have the
//!    role.
//!
//! # Why it is sound
//! A thread decides by the count that its exchange replaces, so no two threads take or leave the same place. The value
//! of `wanted` may be older; the next thread that checks its role corrects the count. These words order no other
//! memory, because a role gives a thread no data (queues have their own locks). So all accesses are relaxed.

use std::sync::atomic::{AtomicU64, Ordering};

use word::Word;

#[derive(Debug)]
pub(super) struct Roles<W = AtomicU64> {
    wanted: W,
    count: W,
}

impl<W: Word> Roles<W> {
    /// Returns roles of which `wanted` are wanted and none is taken.
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

    /// Returns true if [`Roles::take`] is worth a try.
    #[inline]
    pub(super) fn has_vacancy(&self) -> bool {
        self.count() < self.wanted()
    }

    /// Takes the role, unless enough threads have it.
    pub(super) fn take(&self) -> bool {
        self.change(|count, wanted| (count < wanted).then_some(count + 1))
    }

    /// Leaves the role, if more threads have it than wanted.
    pub(super) fn leave(&self) -> bool {
        self.change(|count, wanted| (count > wanted).then(|| count - 1))
    }

    /// Leaves the role unconditionally.
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
