//! Whether a reaper that walks all keys has something to walk for, and whether a sleeping thread is asked to step.
//!
//! Nothing is expected, and no thread steps; or a walk is under way, and the thread that steps goes on with the walk; or a walk
//! has ended and another one is expected, and the same thread comes back after [`REST`].
//!
//! # What wakes a thread
//! A writer says first that something is expected, then looks whether a walk is under way; where none is, a step is wanted. A walk ends first,
//! and then the walker looks whether something is expected. So one of the two sees the other. A thread takes back that a step is wanted when a walk
//! begins, with which that thread goes on, or before the last look ahead of a sleep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two walks.
pub const REST: Duration = Duration::from_secs(1);

/// What writers, the walk and the thread that sleeps know of keys that expire.
#[derive(Debug)]
pub struct Expectation {
    /// A value that expires was met or put since the walk under way, or the last one, began.
    is_expected: AtomicBool,
    /// A walk has begun and not ended.
    is_walking: AtomicBool,
    /// A writer found no walk under way.
    is_wanted: AtomicBool,
}

impl Default for Expectation {
    /// What was put before the store was opened is not known.
    fn default() -> Expectation {
        Expectation { is_expected: true.into(), is_walking: false.into(), is_wanted: false.into() }
    }
}

impl Expectation {
    /// A value that expires was put, and a walk that begins now meets it; or a walk has met it.
    #[inline]
    pub fn expect(&self) {
        if !self.is_expected.load(Ordering::Relaxed) {
            self.expect_first();
        }
    }

    #[cold]
    fn expect_first(&self) {
        self.is_expected.store(true, Ordering::SeqCst);
        if !self.is_walking.load(Ordering::SeqCst) {
            self.is_wanted.store(true, Ordering::SeqCst);
        }
    }

    /// Begins a walk; false if there is nothing to walk for.
    pub fn begin(&self) -> bool {
        let is_expected = self.is_expected.swap(false, Ordering::SeqCst);
        if is_expected {
            self.is_walking.store(true, Ordering::SeqCst);
            self.is_wanted.store(false, Ordering::SeqCst);
        }
        is_expected
    }

    /// Ends the walk; true if there is something to walk for again, after a rest.
    pub fn end(&self) -> bool {
        self.is_walking.store(false, Ordering::SeqCst);
        self.is_expected.load(Ordering::SeqCst)
    }

    /// Whether a thread is to be woken, and to step.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// How long a thread may sleep that is asked when a step is wanted; `None` for ever.
    pub fn sleep_time(&self) -> Option<Duration> {
        self.is_wanted.store(false, Ordering::SeqCst);
        let is_awake = self.is_walking.load(Ordering::SeqCst) || self.is_expected.load(Ordering::SeqCst);
        is_awake.then_some(REST)
    }
}
