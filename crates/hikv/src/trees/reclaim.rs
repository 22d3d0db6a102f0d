//! The background that deletes the keys of dropped and cleared trees.
//!
//! One thread does it, which starts with the first dead id. It works for at most a quarter of its time, so that it
//! takes a quarter of a core. Exception: it does not rest while further ids wait for the present pass. Without
//! background threads, [`Background::step`](crate::Background::step) does it. An id waits while a snapshot lives that
//! may read its keys: the engine would keep a copy of each.
//!
//! # Bound
//! A drop or clear helps if too much is dead without the keys that it adds itself: if keys were counted, more than half
//! of the store; otherwise, more than [`FREE_ID_COUNT`] ids. In the first case, it deletes [`HELP_FACTOR`] times as
//! many keys as it adds; in the second, it finishes as many ids as are too many. So dead keys become fewer at any rate
//! of drops, and on average a drop takes no longer than a multiple of the time in which its keys were written. A large
//! tree that is dropped alone delays nothing.
//!
//! The thread holds the engine weakly and is stopped before the engine closes. It calls no callbacks of the user for
//! expired keys, because those have keys of the nameless tree only.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use catalog::{Counts, Reclaim, TreeId};
use engine::{Engine, Error};
use parking_lot::{Condvar, Mutex, MutexGuard};
use pmem_os::ForkGuard;

/// The thread rests for this many times the duration of its last step.
const REST_FACTOR: u32 = 3;
/// A drop that helps deletes this many times as many keys as it adds to the dead ones.
const HELP_FACTOR: u64 = 2;
/// Dead keys with which no drop helps, in a store of any size.
const FREE_KEY_COUNT: u64 = 1 << 15;
/// Dead ids with which no drop helps while their keys are not counted.
const FREE_ID_COUNT: u64 = 16;
/// The time until a step is tried again that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Deletes the keys of dead ids.
#[derive(Default)]
pub(crate) struct Reclaimer {
    shared: Arc<Shared>,
    /// The engine for a thread, and the guard that says whether it may write. `None` of a store without background
    /// threads.
    for_thread: Option<(Weak<dyn Engine>, ForkGuard)>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held by the thread that helps, so that no other counts its deletions as its own. Taken before `pass`.
    help: Mutex<()>,
}

/// Progress of deleting the keys of dropped and cleared trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ReclaimFigures {
    /// Ids that have keys.
    pub(crate) id_count: u64,
    /// Keys deleted since the store was opened.
    pub(crate) key_count: u64,
    /// Keys to delete, if the store's keys were counted.
    pub(crate) left_count: Option<u64>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Notified when ids die, snapshots end, or the thread should end.
    changed: Condvar,
    /// The present pass. Taken before `queue`.
    pass: Mutex<Reclaim>,
    /// The ids of the present pass, for figures, which do not wait for a step.
    under_way: Mutex<Vec<TreeId>>,
    id_count: AtomicU64,
    key_count: AtomicU64,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Dead ids, each with the number of the next snapshot at its death.
    dead: Vec<(TreeId, u64)>,
    /// The numbers of live snapshots and of those being taken.
    snapshots: BTreeMap<u64, ()>,
    next_snapshot: u64,
    is_over: bool,
}

impl fmt::Debug for Reclaimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reclaimer").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Queue {
    fn is_ready(&self, next: u64) -> bool {
        self.snapshots.first_key_value().is_none_or(|(oldest, ())| next <= *oldest)
    }

    fn has_ready(&self) -> bool {
        self.dead.iter().any(|(_, next)| self.is_ready(*next))
    }

    /// Takes the ids that no live snapshot can read.
    fn take_ready(&mut self) -> Vec<TreeId> {
        let (ready, waiting) = self.dead.iter().partition(|(_, next)| self.is_ready(*next));
        self.dead = waiting;
        let ready: Vec<(TreeId, u64)> = ready;
        ready.into_iter().map(|(id, _)| id).collect()
    }
}

/// A snapshot that keeps ids from being reclaimed.
#[derive(Debug)]
pub(crate) struct Hold {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.queue.lock().snapshots.remove(&self.number);
        self.shared.changed.notify_all();
    }
}

impl Reclaimer {
    /// Returns a reclaimer, with a thread of its own if it gets an engine for it.
    pub(super) fn new(for_thread: Option<(Weak<dyn Engine>, ForkGuard)>, counts: Arc<Counts>) -> Reclaimer {
        let shared = Arc::new(Shared { counts, ..Shared::default() });
        Reclaimer { shared, for_thread, ..Reclaimer::default() }
    }

    /// Waits for a step under way, and keeps threads from further ones until the guard is dropped.
    pub(super) fn pause(&self) -> MutexGuard<'_, Reclaim> {
        self.shared.pass.lock()
    }

    /// Adds a dead id, and starts the thread if there is to be one. Returns the number of its keys, if they were
    /// counted.
    pub(super) fn add(&self, id: TreeId) -> Option<u64> {
        let mut queue = self.shared.queue.lock();
        let next = queue.next_snapshot;
        queue.dead.push((id, next));
        self.shared.id_count.fetch_add(1, Ordering::Relaxed);
        self.shared.changed.notify_all();
        let is_over = queue.is_over;
        drop(queue);
        let mut running = self.thread.lock();
        if let Some((engine, guard)) = self.for_thread.as_ref().filter(|_| running.is_none() && !is_over) {
            let (shared, engine, guard) = (Arc::clone(&self.shared), Weak::clone(engine), guard.clone());
            // Without a thread, the ids wait for the next opening.
            let thread = thread::Builder::new().name("hikv-reclaim".into());
            *running = thread.spawn(move || shared.run(&engine, &guard)).ok();
        }
        self.shared.counts.are_known().then(|| self.shared.counts.of(id))
    }

    /// Does steps if too much is dead without the keys that the caller has just added. The caller holds no lock.
    pub(super) fn help(&self, engine: &dyn Engine, added_count: Option<u64>) {
        if !self.shared.is_behind(engine, added_count) {
            return;
        }
        let _alone = self.help.lock();
        let deleted_count = || self.shared.key_count.load(Ordering::Relaxed);
        let until = deleted_count().saturating_add(added_count.unwrap_or(0).saturating_mul(HELP_FACTOR));
        let is_enough = || match added_count {
            Some(_) => deleted_count() >= until,
            None => self.shared.id_count.load(Ordering::Relaxed) <= FREE_ID_COUNT,
        };
        // A step that fails is repeated by the thread.
        while !is_enough() && self.step(engine).unwrap_or(false) {}
    }

    /// Keeps the ids that are alive now until the hold is dropped. Called before a snapshot is taken.
    pub(crate) fn hold(&self) -> Hold {
        let mut queue = self.shared.queue.lock();
        let number = queue.next_snapshot;
        queue.next_snapshot += 1;
        queue.snapshots.insert(number, ());
        Hold { shared: Arc::clone(&self.shared), number }
    }

    pub(crate) fn figures(&self) -> ReclaimFigures {
        ReclaimFigures {
            id_count: self.shared.id_count.load(Ordering::Relaxed),
            key_count: self.shared.key_count.load(Ordering::Relaxed),
            left_count: self.shared.left_count(),
        }
    }

    /// Does one step. Returns true if more can be done now.
    pub(crate) fn step(&self, engine: &dyn Engine) -> Result<bool, Error> {
        self.shared.step(engine)
    }

    /// Ends the thread, and waits for it, unless it is the caller.
    pub(crate) fn stop(&self) {
        self.shared.queue.lock().is_over = true;
        self.shared.changed.notify_all();
        let own = thread::current().id();
        if let Some(running) = self.thread.lock().take().filter(|running| running.thread().id() != own) {
            // Rust's panic hook has reported a panic.
            let _ = running.join();
        }
    }
}

impl Shared {
    /// Returns the number of keys of dead ids, if keys were counted.
    fn left_count(&self) -> Option<u64> {
        if !self.counts.are_known() {
            return None;
        }
        let under_way = self.under_way.lock().clone();
        let waiting: Vec<_> = self.queue.lock().dead.iter().map(|(id, _)| *id).collect();
        Some(under_way.into_iter().chain(waiting).map(|id| self.counts.of(id)).sum())
    }

    /// Returns whether too much is dead without the keys that were added last.
    fn is_behind(&self, engine: &dyn Engine, added_count: Option<u64>) -> bool {
        let Some((left, added)) = self.left_count().zip(added_count) else {
            return self.id_count.load(Ordering::Relaxed) > FREE_ID_COUNT;
        };
        engine.len().is_ok_and(|count| left.saturating_sub(added) > FREE_KEY_COUNT.max(count / 2))
    }

    /// Shows the ids of the pass to figures.
    fn show(&self, pass: &Reclaim) {
        *self.under_way.lock() = pass.ids().to_vec();
    }

    fn step(&self, engine: &dyn Engine) -> Result<bool, Error> {
        let mut pass = self.pass.lock();
        if pass.is_done() {
            *pass = Reclaim::of(self.queue.lock().take_ready());
        }
        if pass.is_done() {
            return Ok(false);
        }
        self.show(&pass);
        let stepped = pass.step(engine);
        self.show(&pass);
        let done = stepped?;
        self.key_count.fetch_add(done.key_count, Ordering::Relaxed);
        self.id_count.fetch_sub(done.id_count, Ordering::Relaxed);
        if done.id_count > 0 {
            self.counts.trim();
        }
        Ok(true)
    }

    fn run(&self, engine: &Weak<dyn Engine>, guard: &ForkGuard) {
        loop {
            let Some(open) = engine.upgrade() else { return };
            let start = Instant::now();
            let stepped = if guard.closed_to_writes().is_none() { self.step(&*open) } else { Ok(false) };
            drop(open);
            let mut queue = self.queue.lock();
            if queue.is_over {
                return;
            }
            match rest(&stepped, start.elapsed(), queue.has_ready()) {
                Some(rest) => {
                    self.changed.wait_for(&mut queue, rest);
                }
                None => self.changed.wait_while(&mut queue, |queue| !queue.is_over && !queue.has_ready()),
            }
        }
    }
}

/// Returns the rest of the thread after a step, or `None` if it waits for an id.
fn rest(stepped: &Result<bool, Error>, took: Duration, has_waiting: bool) -> Option<Duration> {
    match stepped {
        Ok(true) if has_waiting => Some(Duration::ZERO),
        Ok(true) => Some(took * REST_FACTOR),
        Ok(false) => None,
        Err(_) => Some(RETRY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_rests_only_while_no_id_waits() {
        let took = Duration::from_millis(2);
        assert_eq!(rest(&Ok(true), took, false), Some(took * REST_FACTOR));
        assert_eq!(rest(&Ok(true), took, true), Some(Duration::ZERO));
        assert_eq!(rest(&Ok(false), took, false), None);
        assert_eq!(rest(&Err(Error::NoOrder), took, true), Some(RETRY));
    }
}
