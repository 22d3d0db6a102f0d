//! Requests to the syncing threads (which are in `notifier`): immediate syncs for event loops, and syncs that are
//! due some time after a write for which no caller waits.
//!
//! # Possible loss at `buffered`
//! A sync begins one interval after the first write that it covers, or as soon as a lane is free. A disk may need
//! longer than that for a sync. So a writer at `buffered` is held back while an older write has been waiting for
//! two intervals: it waits as at `power` ([`Requests::is_overdue`]). A power loss can only take writes that were
//! acknowledged within two intervals, on any disk; Redis also holds writers back after two of its intervals. The
//! clock is read only while a sync is running.
//!
//! # Lock order
//! `requests` and `askers` are leaves. No asker is woken under either of them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// After this many intervals without a sync that covers it, a write holds back later writes.
const HELD_AFTER_INTERVALS: u32 = 2;

/// Stands for no time.
const NEVER: u64 = u64::MAX;

/// The requests to the syncing threads.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The time within which entries are synced for which no caller waits; `None` if no thread does it.
    interval: Option<Duration>,
    state: Mutex<Request>,
    /// The time from which on writers are held back, if a sync is running.
    held_from: AtomicU64,
    /// The time from which times are counted, in nanoseconds.
    epoch: Instant,
    /// True if a sync is due at some time.
    is_due: AtomicBool,
    changed: Condvar,
    askers: Mutex<Vec<Arc<LoopWaiter>>>,
}

#[derive(Debug, Default)]
struct Request {
    /// Set by an asker: sync as soon as possible.
    is_now: bool,
    /// Set by a write whose caller does not wait.
    due: Option<Due>,
    /// The requests that the syncing threads have taken.
    taken: Vec<Option<Due>>,
    is_closing: bool,
}

/// A write whose caller does not wait: the times at which its sync begins, and at which it holds back later writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Due {
    at: Instant,
    holds_from: Instant,
}

/// An event loop to be woken.
pub(crate) struct LoopWaiter {
    wake: Box<dyn Fn() + Send + Sync>,
    /// The position up to which it waits for the log to be durable; 0 if it does not wait.
    until: AtomicU64,
}

impl fmt::Debug for LoopWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopWaiter").field("until", &self.until).finish_non_exhaustive()
    }
}

impl LoopWaiter {
    /// Requests that the log become durable up to `position`.
    pub(crate) fn ask(&self, position: u64) {
        self.until.fetch_max(position, Ordering::AcqRel);
    }
}

impl Requests {
    /// Creates the state without requests. Syncs are due after `interval`, or never without threads that make them.
    pub(crate) fn new(interval: Option<Duration>) -> Requests {
        Requests {
            interval,
            state: Mutex::default(),
            held_from: NEVER.into(),
            epoch: Instant::now(),
            is_due: false.into(),
            changed: Condvar::new(),
            askers: Mutex::default(),
        }
    }

    /// Adds an asker, which `wake` wakes.
    pub(crate) fn add_loop_waiter(&self, wake: impl Fn() + Send + Sync + 'static) -> Arc<LoopWaiter> {
        let asker = Arc::new(LoopWaiter { wake: Box::new(wake), until: AtomicU64::new(0) });
        self.askers.lock().push(Arc::clone(&asker));
        asker
    }

    /// Removes an asker, which is not woken any more.
    pub(crate) fn remove_asker(&self, asker: &Arc<LoopWaiter>) {
        self.askers.lock().retain(|other| !Arc::ptr_eq(other, asker));
    }

    /// Requests that everything appended so far is synced within the interval, even if no thread waits for it.
    pub(crate) fn soon(&self) {
        let Some(interval) = self.interval else { return };
        // Pairs with the fence of `sync`: either the flag is already cleared by the last sync, or that sync covers
        // the caller's entries.
        fence(Ordering::SeqCst);
        if self.is_due.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        if state.due.is_none() {
            let now = Instant::now();
            state.due = Some(Due { at: now + interval, holds_from: now + interval * HELD_AFTER_INTERVALS });
            self.is_due.store(true, Ordering::Relaxed);
            self.note_held(&state);
            self.changed.notify_all();
        }
    }

    /// Returns true if a write has waited for its sync for so long that later writes are held back.
    #[inline]
    pub(crate) fn is_overdue(&self) -> bool {
        let held_from = self.held_from.load(Ordering::Relaxed);
        held_from != NEVER && self.epoch.elapsed().as_nanos() as u64 >= held_from
    }

    /// Updates the time from which writers are held back. Called after every change of `due` or `taken`.
    fn note_held(&self, state: &Request) {
        let oldest = state.taken.iter().chain([&state.due]).flatten().map(|due| due.holds_from).min();
        let held_from = match oldest.filter(|_| !state.taken.is_empty()) {
            Some(moment) => moment.duration_since(self.epoch).as_nanos() as u64,
            None => NEVER,
        };
        self.held_from.store(held_from, Ordering::Relaxed);
    }

    /// Returns true if a sync is due at some time.
    #[cfg(test)]
    pub(crate) fn is_any_due(&self) -> bool {
        self.state.lock().due.is_some()
    }

    /// Requests a sync as soon as possible.
    pub(crate) fn now(&self) {
        self.state.lock().is_now = true;
        self.changed.notify_one();
    }

    pub(crate) fn close(&self) {
        self.state.lock().is_closing = true;
        self.changed.notify_all();
    }

    /// Returns the latest position for which an asker waits. Its entry may count as appended only when its writer
    /// unlocks the buffer.
    pub(crate) fn asked(&self) -> u64 {
        self.askers.lock().iter().map(|asker| asker.until.load(Ordering::Acquire)).max().unwrap_or(0)
    }

    /// Waits for a request and takes it; returns `None` if it is time to stop.
    pub(crate) fn next(&self) -> Option<Option<Due>> {
        let mut state = self.state.lock();
        loop {
            let is_due = state.due.is_some_and(|due| due.at <= Instant::now());
            if state.is_closing {
                return None;
            }
            if state.is_now || is_due {
                state.is_now = false;
                let taken = state.due.take();
                state.taken.push(taken);
                self.is_due.store(false, Ordering::Relaxed);
                self.note_held(&state);
                return Some(taken);
            }
            match state.due {
                Some(due) => {
                    self.changed.wait_until(&mut state, due.at);
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Ends the sync for which `taken` was taken.
    pub(crate) fn end(&self, taken: Option<Due>) {
        let mut state = self.state.lock();
        if let Some(place) = state.taken.iter().position(|other| *other == taken) {
            state.taken.swap_remove(place);
        }
        self.note_held(&state);
    }

    /// Wakes the waiting askers, now that the log is durable up to `synced`, or will never become more durable.
    pub(crate) fn wake(&self, synced: u64) {
        let waiting = |asker: &&Arc<LoopWaiter>| asker.until.load(Ordering::Acquire) > 0;
        let woken: Vec<_> = self.askers.lock().iter().filter(waiting).map(Arc::clone).collect();
        for asker in woken {
            let until = asker.until.load(Ordering::Acquire);
            if until <= synced {
                // Fails if a later position was requested at the same time.
                let _ = asker.until.compare_exchange(until, 0, Ordering::AcqRel, Ordering::Acquire);
            }
            (asker.wake)();
        }
    }
}
