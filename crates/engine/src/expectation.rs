//! Whether a reaper that walks all keys has something to walk for, and whether the thread that watches time knows.
//!
//! # Invariants
//! Of the one word, whose changes are one after the other:
//! 1. While a key that expires was met or put and no walk has begun since, something is expected. A walk that begins after the key was
//!    put meets it.
//! 2. While the word says that time is watched, one thread sleeps no longer than [`REST`], or will ask before it sleeps.
//! 3. Where there is something to walk for and nobody watches time, a step is wanted. So a writer that said that something is expected either
//!    sees that a step is wanted, or another thread watches time; also if a third one has begun a walk meanwhile, or goes away within it.
//!
//! Whether something is expected already, a writer looks behind a fence, and a walk begins with one: a writer whose value the walk does not see sees
//! that the walk has begun.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use word::Word;

/// Between two walks.
pub const REST: Duration = Duration::from_secs(1);

/// A value that expires was met or put since the walk under way, or the last one, began.
const EXPECTED: u64 = 1 << 0;
/// A walk has begun and not ended.
const WALKING: u64 = 1 << 1;
/// The thread that watches time knows that there is something to walk for.
const WATCHED: u64 = 1 << 2;

/// What writers, the walk and the thread that watches time know of keys that expire.
#[derive(Debug)]
pub struct Expectation<W = AtomicU64>(W);

impl<W: Word> Default for Expectation<W> {
    /// What was put before the store was opened is not known.
    fn default() -> Expectation<W> {
        Expectation(W::new(EXPECTED))
    }
}

impl<W: Word> Expectation<W> {
    /// A value that expires was put, and a walk that begins now meets it; or a walk has met it.
    pub fn expect(&self) {
        W::fence(Ordering::SeqCst);
        if self.0.load(Ordering::Relaxed) & EXPECTED == 0 {
            self.0.fetch_or(EXPECTED, Ordering::SeqCst);
        }
    }

    /// Has the thread that watches time woken before its sleep is over.
    #[cold]
    pub fn hurry(&self) {
        self.0.fetch_and(!WATCHED, Ordering::SeqCst);
    }

    /// Begins a walk; false if there is nothing to walk for.
    pub fn begin(&self) -> bool {
        let (before, _) = self.change(|state| match state & EXPECTED {
            0 => state,
            _ => state & WATCHED | WALKING,
        });
        W::fence(Ordering::SeqCst);
        before & EXPECTED != 0
    }

    /// Ends the walk; true if there is something to walk for again, after a rest.
    pub fn end(&self) -> bool {
        self.0.fetch_and(!WALKING, Ordering::SeqCst) & EXPECTED != 0
    }

    /// Whether the thread that watches time is to be woken, and to step.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        is_awaited(state) && state & WATCHED == 0
    }

    /// How long the thread that watches time, which asks before it sleeps, may sleep unless a step is wanted; `None` for ever.
    pub fn sleep_time(&self) -> Option<Duration> {
        let (_, state) = self.change(|state| if is_awaited(state) { state | WATCHED } else { state & !WATCHED });
        is_awaited(state).then_some(REST)
    }

    /// Changes the word in one step, and answers with it before and after.
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

/// Whether there is something to walk for.
fn is_awaited(state: u64) -> bool {
    state & (EXPECTED | WALKING) != 0
}
