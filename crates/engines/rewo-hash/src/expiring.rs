//! Keys that expire: whether there may be any, how far the reaper is behind, and the callback for expired items.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::{Expectation, ExpiredHook, Pace};

/// The state of expiring keys, which writers and the reaper share.
#[derive(Default)]
pub(crate) struct Expiring {
    expectation: Expectation,
    pace: Pace,
    reaped_count: AtomicU64,
    hook: ExpiredHook,
}

impl Expiring {
    /// Notes that an item that expires was put.
    pub(crate) fn expect(&self) {
        self.expectation.expect();
        if self.pace.put(1) {
            self.expectation.hurry();
        }
    }

    pub(crate) fn expectation(&self) -> &Expectation {
        &self.expectation
    }

    pub(crate) fn hook(&self) -> &ExpiredHook {
        &self.hook
    }

    /// Returns true if writers should do a step of the reaper.
    pub(crate) fn is_behind(&self) -> bool {
        self.pace.is_behind()
    }

    /// Begins a walk of the reaper. Returns false if there is nothing to do.
    pub(crate) fn begin_walk(&self) -> bool {
        let begins = self.expectation.begin();
        if begins {
            self.pace.begin();
        }
        begins
    }

    /// Ends a walk of the reaper. Returns true if the reaper rests before the next one.
    pub(crate) fn end_walk(&self) -> bool {
        let is_to_rest = self.expectation.end();
        self.pace.end();
        is_to_rest
    }

    /// Notes that the reaper has walked a segment.
    pub(crate) fn note_segment(&self, visited_count: u64, deleted_count: u64) {
        self.pace.advance(visited_count, deleted_count);
    }

    /// Notes that the reaper has deleted a key.
    pub(crate) fn note_reaped(&self) {
        self.reaped_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }
}
