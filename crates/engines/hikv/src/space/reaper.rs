//! The reaper: deletes what has expired, a bounded piece at a time, in the background.
//!
//! Nothing of it is persistent. Segments know when their first item expires (`index/src/partitioned_hash/due.rs`); a round
//! goes past all segments and visits those whose time has come. What is found there is deleted as a user would delete it,
//! and only if the key's entry still names the item that was seen: one that was renewed meanwhile stays.
//!
//! Rounds are at least [`ROUND_INTERVAL_MS`] apart, and as far as the last one took: so a burst of expiries takes half of one
//! background thread at most, and a store in which nothing expires takes nothing. How long it took is no difference of two times
//! of the store's clock: where the system's is set forward meanwhile, by a machine that wakes up or is put right, that may be a year.
//!
//! # What wakes the worker
//! Before sleeping, the worker says until when ([`Reaper::awaited_ms`]) and then looks at the segments' earliest moment
//! once more; a writer lowers that moment first and then looks until when the worker sleeps. So one of them sees the
//! other. The worker alone takes back that it is wanted, before all that: another thread that steps does not know until when the worker sleeps, and
//! may come between the writer's wish and its asking.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use engine::Expiry;
use index::partitioned_hash::Cursor;

/// Between two rounds: how often an idle store in which keys expire wakes up.
pub(super) const ROUND_INTERVAL_MS: u64 = 1000;
/// A round, which goes on for many steps.
#[derive(Debug)]
pub(crate) struct Round {
    pub(super) cursor: Cursor,
    pub(super) began: Instant,
}

/// What others may know of the reaper.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    /// When the next round may begin.
    pub(super) not_before_ms: AtomicU64,
    /// Until when the worker sleeps.
    pub(super) awaited_ms: AtomicU64,
    /// A round has begun and not ended.
    pub(super) is_running: AtomicBool,
    /// The worker should look until when it may sleep.
    pub(super) is_wanted: AtomicBool,
    pub(super) reaped_count: AtomicU64,
}

impl Reaper {
    /// A key was published that expires then; the segments' earliest moment says so already.
    #[inline(always)]
    pub(crate) fn expect(&self, expiry: Expiry) {
        if !expiry.is_never() && expiry.ms().saturating_add(ROUND_INTERVAL_MS) < self.awaited_ms.load(Ordering::SeqCst)
        {
            self.is_wanted.store(true, Ordering::Release);
        }
    }

    #[inline(always)]
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Keys that were deleted since open because they had expired.
    pub(crate) fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }
}
