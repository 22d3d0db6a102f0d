//! Keeps the reaper as fast as the writers of expiring keys
//! (`docs/decisions/0105-store-expiry-in-items-and-let-writers-help-the-reaper.md`).
//!
//! A reaper visits the keys of a store in rounds, with rests in between. [`Pace`] counts the expiring keys that were
//! put since the present round or rest began, and compares the count with an allowance:
//!
//! | while | allowed puts of expiring keys | beyond that |
//! |---|---|---|
//! | the reaper rests | `visited in the last round / 8`, at least [`FREE_COUNT`] | the next round begins early |
//! | a round runs | `deleted / 2 + visited / 16` plus [`FREE_COUNT`] | writers do steps of the round after a put |
//!
//! A round that finds few expired keys (fewer than one of 32 entries) allows any number: only the worker continues, and
//! rests as usual.
//!
//! # Bound
//! With E expired keys and L live keys at the begin of a round, at most `E / 2 + (E + L) / 16` plus [`FREE_COUNT`]
//! expiring keys are put until its end. Only these and the L live keys can have expired by then. So the number of
//! expired keys that wait converges to less than three times the live keys, plus about ten thousand, at any speed of
//! writers. Exception: while expired keys are few or only begin to be many, as many can wait as are put in one rest and
//! one round of the worker.
//!
//! All counts are relaxed: a thread that reads an old count does one step too many, or does a step too late.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Expiring keys whose puts are always free: enough to make a round worthwhile, and far more than writers put while a
/// worker wakes.
pub const FREE_COUNT: u64 = 4096;
/// Visited entries that pay for one put in a round: visiting them is about as much work as the put.
const VISITED_SHARE: u64 = 16;
/// Deleted keys that pay for one put in a round: two, so that each round leaves less than the one before.
const DELETED_SHARE: u64 = 2;
/// An early round visits this many entries for each expiring key that was put. This is a fraction of [`FEW_SHARE`], so
/// that rounds that keep up with writers find enough expired keys.
const RESTED_SHARE: u64 = 8;
/// Expired keys are few if fewer than one of this many visited entries has expired.
const FEW_SHARE: u64 = 32;

/// The counts of one reaper.
#[derive(Debug)]
pub struct Pace {
    put_count: AtomicU64,
    allowed_count: AtomicU64,
    /// Of the present round, or of the last one.
    visited_count: AtomicU64,
    deleted_count: AtomicU64,
    is_behind: AtomicBool,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            put_count: AtomicU64::new(0),
            allowed_count: AtomicU64::new(FREE_COUNT),
            visited_count: AtomicU64::new(0),
            deleted_count: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
        }
    }
}

impl Pace {
    /// Counts puts of `count` expiring keys; returns true if the reaper is behind.
    #[inline]
    pub fn put(&self, count: u64) -> bool {
        let put_count = count + self.put_count.fetch_add(count, Ordering::Relaxed);
        let is_behind = put_count > self.allowed_count.load(Ordering::Relaxed);
        if is_behind {
            self.is_behind.store(true, Ordering::Release);
        }
        is_behind
    }

    /// Returns true while more expiring keys were put than are allowed. Costs a load.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Acquire)
    }

    /// Begins a round.
    pub fn begin(&self) {
        self.visited_count.store(0, Ordering::Relaxed);
        self.deleted_count.store(0, Ordering::Relaxed);
        self.restart(FREE_COUNT);
    }

    /// Adds visited entries and deleted keys to the round.
    pub fn advance(&self, visited_count: u64, deleted_count: u64) {
        let visited_count = visited_count + self.visited_count.fetch_add(visited_count, Ordering::Relaxed);
        let deleted_count = deleted_count + self.deleted_count.fetch_add(deleted_count, Ordering::Relaxed);
        self.allow(match is_few(visited_count, deleted_count) {
            true => u64::MAX,
            false => FREE_COUNT + visited_count / VISITED_SHARE + deleted_count / DELETED_SHARE,
        });
    }

    /// Ends the round; the reaper rests.
    pub fn end(&self) {
        let [visited_count, deleted_count] =
            [&self.visited_count, &self.deleted_count].map(|count| count.load(Ordering::Relaxed));
        self.restart(match is_few(visited_count, deleted_count) {
            true => u64::MAX,
            false => FREE_COUNT.max(visited_count / RESTED_SHARE),
        });
    }

    /// Allows [`FREE_COUNT`] more puts: the reaper had nothing to do.
    pub fn grant_free_puts(&self) {
        self.allow(self.put_count.load(Ordering::Relaxed) + FREE_COUNT);
    }

    fn restart(&self, allowed_count: u64) {
        self.put_count.store(0, Ordering::Relaxed);
        self.allow(allowed_count);
    }

    fn allow(&self, count: u64) {
        self.allowed_count.store(count, Ordering::Relaxed);
        if self.put_count.load(Ordering::Relaxed) <= count {
            self.is_behind.store(false, Ordering::Release);
        }
    }
}

fn is_few(visited_count: u64, deleted_count: u64) -> bool {
    deleted_count < visited_count / FEW_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts until the reaper is behind; returns the number of free puts.
    fn free_count(pace: &Pace) -> u64 {
        (0..).find(|_| pace.put(1)).unwrap()
    }

    #[test]
    fn deletes_and_visits_pay_for_puts() {
        let pace = Pace::default();
        assert_eq!(free_count(&pace), FREE_COUNT);
        pace.begin();
        assert!(!pace.is_behind());
        assert_eq!(free_count(&pace), FREE_COUNT);
        pace.advance(VISITED_SHARE * 3, 20);
        assert_eq!(free_count(&pace), 3 + 10 - 1);
        assert!(pace.is_behind());
    }

    #[test]
    fn rest_is_long_after_long_round() {
        let pace = Pace::default();
        pace.begin();
        pace.advance(RESTED_SHARE * 3 * FREE_COUNT, FREE_COUNT);
        pace.end();
        assert_eq!(free_count(&pace), 3 * FREE_COUNT);
        pace.grant_free_puts();
        assert_eq!(free_count(&pace), FREE_COUNT);
    }

    #[test]
    fn few_expired_keys_slow_no_writer() {
        let pace = Pace::default();
        pace.begin();
        pace.advance(FEW_SHARE * 100, 99);
        (0..2 * FREE_COUNT).for_each(|_| assert!(!pace.put(1)));
        pace.end();
        (0..2 * FREE_COUNT).for_each(|_| assert!(!pace.put(1)));
    }
}
