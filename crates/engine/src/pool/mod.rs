//! One pool of threads that serve operations or apply what those leave in queues (HiKV paper, section 3.2.2).
//!
//! A thread is a [`Member`]. Between two operations it asks for a [`Role`]; what the thread does is counted, and one operation of
//! [`TIMED_EVERY`] timed. When a window of [`WINDOW_COUNT`] operations is full, the equations say how many threads are to apply, and
//! threads take or leave that role, one by one as they come by. Nothing is decided by the time of day: the clock times operations
//! alone.
//!
//! # No queue is left unserved
//! A role gives its thread no queue. A queue is drained by any thread that gets its lock, for one group of changes at a time, in the order
//! of the tickets; the lock is only tried, so a thread that does not get it goes on to the next queue. Therefore
//! - a thread that changes its role hands nothing over: it holds no queue between two calls of [`Work::apply`], and the next drainer goes
//!   on at the queue's head, which the last one moved before unlocking;
//! - a thread that dies within a group unlocks in unwinding, and gives its role back ([`Member`]'s drop): the group stays at the head, for
//!   the next drainer. If the tree had taken a part of it, the rest is not what the tree expects: the tree is given up and built anew, as
//!   whenever it does not take a change. A thread that dies between two groups held none;
//! - a thread that stalls in its role outside of a group, for however long, holds no queue: writers that find a queue full, and scans that
//!   wait for tickets, drain the queue themselves. So the split is about speed alone, and nothing waits for a role to be taken;
//! - a thread that stalls within a group holds that one queue, as a writer holds its bucket: others go on with the other queues, and this one goes on
//!   when the thread runs again.
//!
//! A thread whose role is to apply and that found nothing serves an operation before it looks again, unless the split is fixed, as printed. So
//! the split bounds how many threads apply, and none is idle.

mod equations;
mod member;
mod roles;
mod sharing;

use parking_lot::Mutex;

use self::roles::Roles;
use crate::Error;

pub use equations::{Reading, Sampled, Split, Window};
pub use member::Member;
pub use sharing::Sharing;

/// One operation in so many is timed: the clock keeps an operation from overlapping the next.
pub const TIMED_EVERY: u64 = 32;
/// Operations that a thread counts by itself before the window of all gets them.
pub const FLUSH_COUNT: u64 = 64;
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
    roles: Roles,
    windows: Mutex<Windows>,
}

#[derive(Debug)]
struct Windows {
    now: Window,
    last: Window,
    count: u64,
    /// When the present window began.
    before: Sample,
}

/// What the work had to tell at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// [`Work::applied`].
    applied: [u64; 2],
    queued_count: u64,
}

impl Sample {
    fn of(work: &impl Work) -> Sample {
        Sample { applied: work.applied(), queued_count: work.queued_count() }
    }

    /// Changes that were ever left to be applied.
    fn left_count(self) -> u64 {
        self.applied[0] + self.queued_count
    }
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
        let windows = Windows { now: Window::default(), last: Window::default(), count: 0, before: Sample::of(&work) };
        Pool { work, thread_count, plan, roles: Roles::new(backend), windows: Mutex::new(windows) }
    }

    /// A thread of it, which serves at first.
    pub fn member(&self) -> Member<'_, W> {
        Member::of(self)
    }

    /// What is applied.
    pub fn work(&self) -> &W {
        &self.work
    }

    /// How it does.
    pub fn figures(&self) -> PoolFigures {
        let windows = self.windows.lock();
        let backend = self.roles.wanted();
        PoolFigures {
            split: Split { serving: self.thread_count - backend, backend },
            backend_count: self.roles.count(),
            window_count: windows.count,
            window: windows.last,
        }
    }

    /// Adds what a member counted; a window that is full ends.
    fn add(&self, own: Window) {
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
        let (before, after) = (windows.before, Sample::of(&self.work));
        let [applied_count, updated_count] = [0, 1].map(|i| after.applied[i] - before.applied[i]);
        let left_count = after.left_count().saturating_sub(before.left_count());
        let mut window = Window { left_count, updated_count, queued_count: after.queued_count, ..windows.now };
        // Writers and scans that helped are not members' doing, and are not timed.
        window.applied.count = applied_count;
        if window.applied.timed_count == 0 {
            window.applied = Sampled { count: applied_count, ..windows.last.applied };
        }
        if let Plan::Adaptive(reading) = self.plan {
            self.roles.want(Split::of(&window, reading, self.thread_count).backend);
        }
        *windows = Windows { now: Window::default(), last: window, count: windows.count + 1, before: after };
    }
}

#[cfg(test)]
mod tests;
