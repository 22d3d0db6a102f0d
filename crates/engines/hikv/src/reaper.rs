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
//! the remaining keys stay with their segment. The round visits that segment again after a short rest: a round
//! never skips an expired key.
//!
//! # Waking the worker
//! Before sleeping, the worker stores the end of the sleep ([`Reaper::awaited_ms`]) and then reads the segments'
//! earliest expiry once more. A writer lowers that expiry first and then reads the end of the sleep. So one of the two
//! sees the other. Only the worker clears `is_wanted`, before all that: another thread that does a step does not have
//! the worker's end of sleep, and may run between the writer's request and the worker's check.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::{Clock, ExpiredHook, ExpiredItem, Expiry, Pace};
use index::Position;
use index::partitioned_hash::{Cursor, NEVER};
use pmem::Medium;

use crate::item;
use crate::read::Reader;

/// The time between two rounds: how often an idle store with expiring keys wakes up.
const ROUND_INTERVAL_MS: u64 = 1000;
/// The longest sleep, so that a clock that was set forward is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// A round, which takes many steps.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) cursor: Cursor,
    began: Instant,
}

/// The reaper's schedule and its callback, which writers and all background threads share.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    /// The earliest time of the next round.
    not_before_ms: AtomicU64,
    /// The time until which the worker sleeps.
    awaited_ms: AtomicU64,
    /// A round has begun and not ended.
    is_running: AtomicBool,
    /// The worker should compute again how long it may sleep.
    is_wanted: AtomicBool,
    pace: Pace,
    reaped_count: AtomicU64,
    hook: ExpiredHook,
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

    /// Returns the callback for expired keys. It is called without a lock and a pin.
    pub(crate) fn hook(&self) -> &ExpiredHook {
        &self.hook
    }

    /// Returns a copy of a removed item that had expired, for the callback, if there is one. The caller has been pinned
    /// since before the removal.
    #[cold]
    pub(crate) fn copy<M: Medium>(&self, medium: &M, position: Option<Position>) -> Option<ExpiredItem> {
        // SAFETY: the caller's pin keeps the item, which was found in the index.
        let item = unsafe { item::read(medium, position?) }.ok()?;
        // A damaged expiry or value is not reported.
        if item.is_intact() { self.hook.copy(item.key, item.value, item.expiry) } else { None }
    }

    pub(crate) fn count_reaped(&self) {
        self.reaped_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the pace of writers and rounds.
    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns the time at which the next round is due; [`NEVER`] if nothing expires.
    pub(crate) fn round_due_ms<M: Medium>(&self, reader: &Reader<M>) -> u64 {
        match reader.index().due() {
            NEVER => NEVER,
            _ if !reader.medium().is_writable() => NEVER,
            due_ms if self.pace.is_behind() => due_ms,
            due_ms => due_ms.max(self.not_before_ms.load(Ordering::SeqCst)),
        }
    }

    /// Returns how long the background may sleep unless a caller requests a step; `None` for no limit.
    pub(crate) fn sleep_time<M: Medium>(&self, reader: &Reader<M>) -> Option<Duration> {
        self.is_wanted.store(false, Ordering::SeqCst);
        loop {
            let due_ms = self.round_due_ms(reader);
            self.awaited_ms.store(due_ms, Ordering::SeqCst);
            if self.is_running.load(Ordering::SeqCst) {
                // Another thread's round: the time of the next one is known at its end.
                return Some(Duration::from_millis(ROUND_INTERVAL_MS));
            }
            if self.round_due_ms(reader) >= due_ms {
                let left = || Duration::from_millis(due_ms.saturating_sub(reader.clock().now_ms()));
                return (due_ms != NEVER).then(|| left().min(SLEEP_MAX));
            }
        }
    }

    pub(crate) fn begin_round<M: Medium>(&self, reader: &Reader<M>) -> Round {
        self.is_running.store(true, Ordering::SeqCst);
        self.pace.begin();
        reader.index().begin_due_round();
        Round { cursor: Cursor::default(), began: Instant::now() }
    }

    pub(crate) fn end_round(&self, clock: &Clock, round: &Round) {
        let rest = round.began.elapsed().max(Duration::from_millis(ROUND_INTERVAL_MS));
        self.not_before_ms.store(clock.after(rest).ms(), Ordering::SeqCst);
        self.pace.end();
        self.is_running.store(false, Ordering::SeqCst);
    }
}
