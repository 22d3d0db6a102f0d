//! The reaper: deletes what has expired, a bounded piece at a time, in the background.
//!
//! Nothing of it is persistent. Segments know when their first item expires (`index/src/partitioned_hash/due.rs`); a round
//! goes past all segments and visits those whose time has come. What is found there is deleted as a user would delete it,
//! and only if the key's entry still names the item that was seen: one that was renewed meanwhile stays.
//!
//! Rounds are [`ROUND_INTERVAL_MS`] apart, and as far as the last one took: so few expiries take half of one background thread at most,
//! and a store in which nothing expires takes nothing. A round's time is no difference of two times of the store's clock: where the system's
//! is set forward meanwhile, by a machine that wakes up or is put right, that may be a year.
//!
//! Exception: where writers put many keys that expire, rounds begin early, and writers take part in them (`engine::pace`).
//!
//! # A full queue of the order
//! A delete needs a place in its queue of the ordered index. Where there is none, the reaper drains the queue itself, a group at a
//! time, and goes on. If the reaper cannot drain, because another thread does or the next change is not written yet, the keys that are left
//! stay with their segment. The round visits that segment again after [`BLOCKED_REST`]: a round never goes past a key that has expired.
//!
//! # What wakes the worker
//! Before sleeping, the worker says until when ([`Reaper::awaited_ms`]) and then looks at the segments' earliest moment
//! once more; a writer lowers that moment first and then looks until when the worker sleeps. So one of them sees the
//! other. The worker alone takes back that it is wanted, before all that: another thread that steps does not know until when the worker sleeps, and
//! may come between the writer's wish and its asking.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::{Expiry, Pace};
use index::partitioned_hash::Cursor;

/// Between two rounds: how often an idle store in which keys expire wakes up.
pub(super) const ROUND_INTERVAL_MS: u64 = 1000;
/// Before a blocked round goes on: a writer fills its ticket, or another thread drains a group, in much less.
pub(super) const BLOCKED_REST: Duration = Duration::from_millis(1);

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
    pub(super) pace: Pace,
    pub(super) reaped_count: AtomicU64,
}

impl Reaper {
    /// A key was published that expires then; the segments' earliest moment says so already.
    #[inline(always)]
    pub(crate) fn expect(&self, expiry: Expiry) {
        if expiry.is_never() {
            return;
        }
        let is_early = expiry.ms().saturating_add(ROUND_INTERVAL_MS) < self.awaited_ms.load(Ordering::SeqCst);
        if self.pace.put(1) || is_early {
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
