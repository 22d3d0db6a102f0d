//! The state that decides whether a reaper has expiring keys to walk for, and whether the thread that watches time has
//! been notified of them.
//!
//! # Invariants
//! All of them concern one word, whose changes have one order:
//! 1. If a key that expires was met or put and no walk has begun since, `EXPECTED` is set. A walk that begins after the
//!    put meets the key.
//! 2. While `WATCHED` is set, one thread sleeps no longer than [`REST`], or will call `sleep_time` before it sleeps.
//! 3. If there is something to walk for and no thread watches time, a step is wanted. So a writer that called `expect`
//!    either sees that a step is wanted, or another thread watches time. This also holds if a third thread has begun a
//!    walk in between, or stops within the walk.
//!
//! A writer reads `EXPECTED` behind a fence, and a walk begins with a fence. So a writer whose value the walk does not
//! see does see that the walk has begun.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use word::Word;

/// The pause between two walks.
pub const REST: Duration = Duration::from_secs(1);

/// A value that expires was met or put since the last walk began.
const EXPECTED: u64 = 1 << 0;
/// A walk has begun and not ended.
const WALKING: u64 = 1 << 1;
/// The thread that watches time has been notified that there is something to walk for.
const WATCHED: u64 = 1 << 2;

/// The state of expiring keys that writers, the walk and the thread that watches time share.
#[derive(Debug)]
pub struct Expectation<W = AtomicU64>(W);

impl<W: Word> Default for Expectation<W> {
    /// Starts with `EXPECTED`: keys that were put before the store was opened are unknown.
    fn default() -> Expectation<W> {
        Expectation(W::new(EXPECTED))
    }
}

impl<W: Word> Expectation<W> {
    /// Records a value that expires: one that was put and that a walk beginning now meets, or one that a walk has met.
    pub fn expect(&self) {
        W::fence(Ordering::SeqCst);
        if self.0.load(Ordering::Relaxed) & EXPECTED == 0 {
            self.0.fetch_or(EXPECTED, Ordering::SeqCst);
        }
    }

    /// Requests that the thread that watches time wakes before its sleep is over.
    #[cold]
    pub fn hurry(&self) {
        self.0.fetch_and(!WATCHED, Ordering::SeqCst);
    }

    /// Begins a walk; returns false if there is nothing to walk for.
    pub fn begin(&self) -> bool {
        let (before, _) = self.change(|state| match state & EXPECTED {
            0 => state,
            _ => state & WATCHED | WALKING,
        });
        W::fence(Ordering::SeqCst);
        before & EXPECTED != 0
    }

    /// Ends the walk; returns true if there is something to walk for again, after a rest.
    pub fn end(&self) -> bool {
        self.0.fetch_and(!WALKING, Ordering::SeqCst) & EXPECTED != 0
    }

    /// Returns true if the thread that watches time should wake and call a step.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        is_awaited(state) && state & WATCHED == 0
    }

    /// Returns how long the thread that watches time may sleep unless a step is wanted; `None` for no limit. That
    /// thread calls this before it sleeps.
    pub fn sleep_time(&self) -> Option<Duration> {
        let (_, state) = self.change(|state| if is_awaited(state) { state | WATCHED } else { state & !WATCHED });
        is_awaited(state).then_some(REST)
    }

    /// Changes the word in one step, and returns the values before and after.
    fn change(&self, change: impl Fn(u64) -> u64) -> (u64, u64) {
        let mut before = self.0.load(Ordering::Relaxed);
        loop {
            let after = change(before);
            match self.0.compare_exchange(before, after, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return (before, after),
                Err(now) => before = now,
            }
        }
    }
}

/// Returns true if there is something to walk for.
fn is_awaited(state: u64) -> bool {
    state & (EXPECTED | WALKING) != 0
}
