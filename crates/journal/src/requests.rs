//! What the syncing threads are asked for (`notifier` has the threads): syncs at once, for event loops, and syncs that are due some time
//! after a write that no caller asks about.
//!
//! # What `buffered` may lose
//! A sync begins an interval after the first write that it is for, or as soon as a lane is free. A disk may take longer than that for
//! one. So a writer at `buffered` is held back while an older write has been waiting for two intervals: it waits as at `power`
//! ([`Requests::is_overdue`]). What power can take is what was acknowledged within two intervals, whatever the disk does; Redis holds
//! writers back after two of its intervals, too. The clock is asked only while a sync is on its way.
//!
//! # Lock order
//! `requests` and `askers` are leaves. No asker is woken under either of them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// After so many intervals without a sync that has taken it in, a write holds back those after it.
const HELD_AFTER_INTERVALS: u32 = 2;

/// No moment.
const NEVER: u64 = u64::MAX;

/// What the syncing threads are asked for.
#[derive(Debug)]
pub(crate) struct Requests {
    state: Mutex<Request>,
    /// The moment from which on writers are held back, if a sync is on its way.
    held_from: AtomicU64,
    /// From which moments are counted, in nanoseconds.
    epoch: Instant,
    /// A sync is due at some moment.
    is_due: AtomicBool,
    changed: Condvar,
    askers: Mutex<Vec<Arc<Asker>>>,
}

#[derive(Debug, Default)]
struct Request {
    /// By an asker: as soon as can be.
    is_now: bool,
    /// By a write whose caller does not wait.
    due: Option<Due>,
    /// What the syncing threads have taken.
    taken: Vec<Option<Due>>,
    is_closing: bool,
}

/// A write whose caller does not wait: when its sync begins, and when it holds back others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Due {
    at: Instant,
    holds_from: Instant,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            state: Mutex::default(),
            held_from: NEVER.into(),
            epoch: Instant::now(),
            is_due: false.into(),
            changed: Condvar::new(),
            askers: Mutex::default(),
        }
    }
}

/// An event loop to be woken.
pub(crate) struct Asker {
    wake: Box<dyn Fn() + Send + Sync>,
    /// Up to where it waits for the log to be durable; 0 if it does not.
    until: AtomicU64,
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("until", &self.until).finish_non_exhaustive()
    }
}

impl Asker {
    /// It waits for the log to be durable up to `position`.
    pub(crate) fn ask(&self, position: u64) {
        self.until.fetch_max(position, Ordering::AcqRel);
    }
}

impl Requests {
    /// One more that `wake` wakes.
    pub(crate) fn add_asker(&self, wake: impl Fn() + Send + Sync + 'static) -> Arc<Asker> {
        let asker = Arc::new(Asker { wake: Box::new(wake), until: AtomicU64::new(0) });
        self.askers.lock().push(Arc::clone(&asker));
        asker
    }

    /// It is woken no more.
    pub(crate) fn remove_asker(&self, asker: &Arc<Asker>) {
        self.askers.lock().retain(|other| !Arc::ptr_eq(other, asker));
    }

    /// A sync after this time, of what the caller has appended, unless one is due before.
    pub(crate) fn within(&self, time: Duration) {
        // With the fence of `sync`: either the flag is seen without the last sync's mark, or that sync sees what was appended.
        fence(Ordering::SeqCst);
        if self.is_due.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        if state.due.is_none() {
            let now = Instant::now();
            state.due = Some(Due { at: now + time, holds_from: now + time * HELD_AFTER_INTERVALS });
            self.is_due.store(true, Ordering::Relaxed);
            self.note_held(&state);
            self.changed.notify_all();
        }
    }

    /// Whether a write waits for its sync for so long that those after it are held back.
    #[inline]
    pub(crate) fn is_overdue(&self) -> bool {
        let held_from = self.held_from.load(Ordering::Relaxed);
        held_from != NEVER && self.epoch.elapsed().as_nanos() as u64 >= held_from
    }

    /// After every change of what is due or taken.
    fn note_held(&self, state: &Request) {
        let oldest = state.taken.iter().chain([&state.due]).flatten().map(|due| due.holds_from).min();
        let held_from = match oldest.filter(|_| !state.taken.is_empty()) {
            Some(moment) => moment.duration_since(self.epoch).as_nanos() as u64,
            None => NEVER,
        };
        self.held_from.store(held_from, Ordering::Relaxed);
    }

    /// Whether a sync is due at some moment.
    #[cfg(test)]
    pub(crate) fn is_any_due(&self) -> bool {
        self.state.lock().due.is_some()
    }

    /// A sync, as soon as can be.
    pub(crate) fn now(&self) {
        self.state.lock().is_now = true;
        self.changed.notify_one();
    }

    pub(crate) fn close(&self) {
        self.state.lock().is_closing = true;
        self.changed.notify_all();
    }

    /// Up to where any asker waits: perhaps for what counts as appended only when its writer lets go of the buffer.
    pub(crate) fn asked(&self) -> u64 {
        self.askers.lock().iter().map(|asker| asker.until.load(Ordering::Acquire)).max().unwrap_or(0)
    }

    /// Waits for a request, and takes it; `None` if it is time to stop.
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

    /// The sync that `taken` was taken for has ended.
    pub(crate) fn end(&self, taken: Option<Due>) {
        let mut state = self.state.lock();
        if let Some(place) = state.taken.iter().position(|other| *other == taken) {
            state.taken.swap_remove(place);
        }
        self.note_held(&state);
    }

    /// Wakes the askers that wait for anything, now that the log is durable up to `synced`, or will never be more so.
    pub(crate) fn wake(&self, synced: u64) {
        let waiting = |asker: &&Arc<Asker>| asker.until.load(Ordering::Acquire) > 0;
        let woken: Vec<_> = self.askers.lock().iter().filter(waiting).map(Arc::clone).collect();
        for asker in woken {
            let until = asker.until.load(Ordering::Acquire);
            if until <= synced {
                // It fails if more was asked for meanwhile.
                let _ = asker.until.compare_exchange(until, 0, Ordering::AcqRel, Ordering::Acquire);
            }
            (asker.wake)();
        }
    }
}
