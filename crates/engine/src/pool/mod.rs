//! One pool of threads that serve operations or apply what those leave in queues (HiKV paper, section 3.2.2).
//!
//! A thread is a [`Member`]. Between two operations it asks for its [`Role`], and it counts what it does, timing one operation of
//! [`TIMED_EVERY`]. When a window of [`WINDOW_COUNT`] operations is full, the equations say how many threads are to apply, and threads
//! take that role, or leave it, one by one as they come by. Nothing is decided by the time of day: the clock times operations alone.
//!
//! # No queue is left unserved
//! A role gives its thread no queue. A queue is drained by any thread that gets its lock, for one group of changes at a time, in the order of
//! its tickets; the lock is only tried, so a thread that does not get it goes on to the next queue. Therefore
//! - a thread that changes its role hands nothing over: it holds no queue between two calls of [`Work::apply`], and the next drainer goes on at the
//!   queue's head, which the last one moved before it unlocked;
//! - a thread that dies within a group unlocks as it unwinds, and gives its role back ([`Member`]'s drop): the group stays at the head, for
//!   the next drainer. If the tree had taken a part of it, the rest is not what it expects: it is given up and built anew, as whenever
//!   it does not take a change. A thread that dies between two groups held none;
//! - a thread that stalls in its role outside of a group, for however long, holds no queue: writers that find a queue full, and scans that wait for
//!   tickets, drain it themselves. So the split is about speed alone, and nothing waits for a role to be taken;
//! - a thread that stalls within a group holds that one queue, as a writer holds its bucket: others go on with the other queues, and this one goes on
//!   when the thread runs again.
//!
//! A thread whose role is to apply and that found nothing serves an operation before it looks again, unless the split is fixed, as printed. So
//! the split bounds how many threads apply, and none is idle.

mod equations;

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::Error;

pub use equations::{Reading, Sampled, Split, Window};

/// One operation in so many is timed: the clock keeps an operation from overlapping the next.
pub const TIMED_EVERY: u64 = 32;
/// Operations that a thread counts by itself before it adds them to the window of all.
pub const TOLD_COUNT: u64 = 64;
/// Operations of a window: some milliseconds of gets, a twentieth of a second of scans.
pub const WINDOW_COUNT: u64 = 8192;

/// What a pool's threads apply, and by which clock they are timed.
pub trait Work: Sync {
    /// The clock: any unit, never backwards.
    fn ticks(&self) -> u64;

    /// Applies a bounded number of the changes that wait; how many.
    ///
    /// # Errors
    /// The store's.
    fn apply(&self) -> Result<u64, Error>;

    /// Changes that wait.
    fn queued_count(&self) -> u64;

    /// How many changes were applied so far, by any thread, and how many of those were updates.
    fn applied(&self) -> [u64; 2];
}

/// What a served operation was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A read of keys.
    Get,
    /// A scan.
    Scan,
    /// A put, an update or a delete.
    Write,
}

/// What a thread does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The next operation.
    Serve,
    /// [`Member::apply`].
    Apply,
}

/// What decides how many threads apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// The equations, in one of their readings.
    Adaptive(Reading),
    /// So many always, which poll their queues.
    Fixed(Split),
}

/// The pool.
#[derive(Debug)]
pub struct Pool<W> {
    work: W,
    thread_count: usize,
    plan: Plan,
    backend_wanted: AtomicUsize,
    backend_count: AtomicUsize,
    windows: Mutex<Windows>,
}

#[derive(Debug)]
struct Windows {
    now: Window,
    last: Window,
    count: u64,
    /// [`Work::applied`] when the present window began.
    applied_before: [u64; 2],
}

/// A pool at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PoolFigures {
    /// The split that holds now.
    pub split: Split,
    /// Threads that have the backend's role at this moment.
    pub backend_count: usize,
    /// Windows so far.
    pub window_count: u64,
    /// The last whole one.
    pub window: Window,
}

impl<W: Work> Pool<W> {
    /// A pool of `thread_count`. Before the first window one thread applies, if there are two.
    ///
    /// # Panics
    /// If a fixed split has another number of threads, or none that serves.
    pub fn new(work: W, thread_count: usize, plan: Plan) -> Pool<W> {
        let backend = match plan {
            Plan::Adaptive(_) => usize::from(thread_count > 1),
            Plan::Fixed(Split { serving, backend }) => {
                assert!(serving > 0 && serving + backend == thread_count, "{serving} and {backend} of {thread_count}");
                backend
            }
        };
        let windows =
            Windows { now: Window::default(), last: Window::default(), count: 0, applied_before: work.applied() };
        Pool {
            work,
            thread_count,
            plan,
            backend_wanted: AtomicUsize::new(backend),
            backend_count: AtomicUsize::new(0),
            windows: Mutex::new(windows),
        }
    }

    /// A thread of it, which serves at first.
    pub fn member(&self) -> Member<'_, W> {
        Member { pool: self, own: Window::default(), is_backend: false, found_nothing: false }
    }

    /// What is applied.
    pub fn work(&self) -> &W {
        &self.work
    }

    /// How it does.
    pub fn figures(&self) -> PoolFigures {
        let windows = self.windows.lock();
        let backend = self.backend_wanted.load(Ordering::Relaxed);
        PoolFigures {
            split: Split { serving: self.thread_count - backend, backend },
            backend_count: self.backend_count.load(Ordering::Relaxed),
            window_count: windows.count,
            window: windows.last,
        }
    }

    /// Adds what a member counted; a window that is full ends.
    fn tell(&self, own: Window) {
        let mut windows = self.windows.lock();
        let now = &mut windows.now;
        now.gets.add(own.gets);
        now.scans.add(own.scans);
        now.writes.add(own.writes);
        now.applied.add(own.applied);
        if now.served_count() >= WINDOW_COUNT {
            self.end_window(&mut windows);
        }
    }

    fn end_window(&self, windows: &mut Windows) {
        let after = self.work.applied();
        let [applied_count, updated_count] = [0, 1].map(|i| after[i] - windows.applied_before[i]);
        let mut window = Window { updated_count, queued_count: self.work.queued_count(), ..windows.now };
        // Writers and scans that helped are not members' doing, and are not timed.
        window.applied.count = applied_count;
        if window.applied.timed_count == 0 {
            window.applied = Sampled { count: applied_count, ..windows.last.applied };
        }
        if let Plan::Adaptive(reading) = self.plan {
            let split = Split::of(&window, reading, self.thread_count);
            self.backend_wanted.store(split.backend, Ordering::Relaxed);
        }
        *windows = Windows { now: Window::default(), last: window, count: windows.count + 1, applied_before: after };
    }

    /// Takes the backend's role, unless enough threads have it.
    fn take_role(&self) -> bool {
        let wanted = self.backend_wanted.load(Ordering::Relaxed);
        let more = |count: usize| (count < wanted).then_some(count + 1);
        self.backend_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Leaves it, if more threads have it than should.
    fn leave_role(&self) -> bool {
        let wanted = self.backend_wanted.load(Ordering::Relaxed);
        let less = |count: usize| (count > wanted).then(|| count - 1);
        self.backend_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// A thread of a pool. Dropped, whatever it was doing, it has no role any more.
#[derive(Debug)]
pub struct Member<'p, W: Work> {
    pool: &'p Pool<W>,
    own: Window,
    is_backend: bool,
    found_nothing: bool,
}

impl<W: Work> Member<'_, W> {
    /// What to do next: asked between two operations.
    #[inline]
    pub fn role(&mut self) -> Role {
        if self.is_backend {
            self.is_backend = !self.pool.leave_role();
        } else if self.pool.backend_count.load(Ordering::Relaxed) < self.pool.backend_wanted.load(Ordering::Relaxed) {
            self.is_backend = self.pool.take_role();
        }
        let polls = matches!(self.pool.plan, Plan::Fixed(_));
        let found_nothing = std::mem::take(&mut self.found_nothing);
        if self.is_backend && (polls || !found_nothing) { Role::Apply } else { Role::Serve }
    }

    /// Applies some of what waits; how many changes that were.
    ///
    /// # Errors
    /// The store's.
    pub fn apply(&mut self) -> Result<u64, Error> {
        let start = self.pool.work.ticks();
        let count = self.pool.work.apply()?;
        let ticks = self.pool.work.ticks() - start;
        self.found_nothing = count == 0;
        if count > 0 {
            self.own.applied.add(Sampled { count, timed_count: count, ticks });
        }
        if self.own.applied.count >= TOLD_COUNT {
            self.tell();
        }
        Ok(count)
    }

    /// Before an operation is served: the time, if it is to be timed.
    #[inline]
    pub fn begin(&self) -> Option<u64> {
        self.own.served_count().is_multiple_of(TIMED_EVERY).then(|| self.pool.work.ticks())
    }

    /// After it: `count` operations of this kind.
    #[inline]
    pub fn end(&mut self, kind: Kind, count: u64, begun: Option<u64>) {
        let sampled = match kind {
            Kind::Get => &mut self.own.gets,
            Kind::Scan => &mut self.own.scans,
            Kind::Write => &mut self.own.writes,
        };
        sampled.count += count;
        if let Some(begun) = begun {
            sampled.timed_count += count;
            sampled.ticks += self.pool.work.ticks() - begun;
        }
        if self.own.served_count() >= TOLD_COUNT {
            self.tell();
        }
    }

    #[cold]
    fn tell(&mut self) {
        self.pool.tell(std::mem::take(&mut self.own));
    }
}

impl<W: Work> Drop for Member<'_, W> {
    fn drop(&mut self) {
        if self.is_backend {
            self.pool.backend_count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
