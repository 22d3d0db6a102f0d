//! The reaper deletes expired keys in the background, a bounded number at a time.
//!
//! The reaper has no persistent state. Each segment records when its first item expires
//! (`index/src/partitioned_hash/due.rs`); a round passes all segments and visits those whose time has come. The reaper
//! deletes an expired key like a user's delete, and only if the key's entry still names the expired item: a key that
//! was renewed stays.
//!
//! Between two rounds is at least [`ROUND_INTERVAL_MS`], and at least the duration of the last round. So few expiries
//! take at most half of one background thread, and a store without expiring keys takes nothing. The duration of a round
//! is not measured by the store's clock: if the system clock is set forward during the round, because a machine wakes
//! up or the time is corrected, the difference may be a year.
//!
//! Exception: if writers put many keys that expire, rounds begin early, and writers do some of the steps
//! (`engine::pace`).
//!
//! # A full queue of the order
//! A delete needs a place in its queue of the ordered index. If the queue is full, the reaper drains it, one group at a
//! time, and continues. If the reaper cannot drain, because another thread does or the next change is not written yet,
//! the remaining keys stay with their segment. The round visits that segment again after [`BLOCKED_REST`]: a round
//! never skips an expired key.
//!
//! # Waking the worker
//! Before sleeping, the worker stores the end of the sleep ([`Reaper::awaited_ms`]) and then reads the segments'
//! earliest expiry once more. A writer lowers that expiry first and then reads the end of the sleep. So one of the two
//! sees the other. Only the worker clears `is_wanted`, before all that: another thread that does a step does not have
//! the worker's end of sleep, and may run between the writer's request and the worker's check.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::{Expiry, Pace};
use index::partitioned_hash::Cursor;

/// The time between two rounds: how often an idle store with expiring keys wakes up.
pub(super) const ROUND_INTERVAL_MS: u64 = 1000;
/// The pause before a blocked round continues: a writer fills its ticket, or another thread drains a group, in much
/// less.
pub(super) const BLOCKED_REST: Duration = Duration::from_millis(1);

/// A round, which takes many steps.
#[derive(Debug)]
pub(crate) struct Round {
    pub(super) cursor: Cursor,
    pub(super) began: Instant,
}

/// The shared state of the reaper.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    /// The earliest time of the next round.
    pub(super) not_before_ms: AtomicU64,
    /// The time until which the worker sleeps.
    pub(super) awaited_ms: AtomicU64,
    /// A round has begun and not ended.
    pub(super) is_running: AtomicBool,
    /// The worker should compute again how long it may sleep.
    pub(super) is_wanted: AtomicBool,
    pub(super) pace: Pace,
    pub(super) reaped_count: AtomicU64,
}

impl Reaper {
    /// Records that a key with this expiry was published; the segments' earliest expiry already includes it.
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

    /// Returns the number of expired keys that were deleted since open.
    pub(crate) fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }
}
