//! A pool of threads that serve operations or apply the queued changes of writes (HiKV paper, section 3.2.2).
//!
//! A thread is a [`Member`]. Between two operations it requests a [`Role`]. The operations of the thread are counted,
//! and one operation of [`TIMED_EVERY`] is timed. When a window of [`WINDOW_COUNT`] operations is full, the equations
//! decide how many threads should apply, and threads take or leave that role one by one, each between two of its
//! operations. The decisions depend on no time of day: the clock only times operations.
//!
//! # No queue is left unserved
//! A role assigns no queue to its thread. Any thread that gets a queue's lock drains that queue, one group of changes
//! at a time, in the order of the tickets. The lock is only tried, so a thread that does not get it continues with the
//! next queue. Therefore:
//! - A thread that changes its role hands nothing over. It holds no queue between two calls of [`Work::apply`], and the
//!   next drainer continues at the queue's head, which the last drainer moved before unlocking.
//! - A thread that dies within a group unlocks while unwinding, and gives up its role ([`Member`]'s drop). The group
//!   stays at the head for the next drainer. If the tree had already taken a part of the group, the changes are not
//!   those that the tree expects: the tree is dropped and rebuilt, as always if it does not take a change. A thread
//!   that dies between two groups held no queue.
//! - A thread that stalls in its role outside a group, for any time, holds no queue. Writers that find a queue full,
//!   and scans that wait for tickets, drain the queue themselves. So the split only affects speed, and no thread waits
//!   for a role to be taken.
//! - A thread that stalls within a group holds that one queue, as a writer holds its bucket. Other threads continue
//!   with the other queues, and this queue continues when the thread runs again.
//!
//! A thread in the applying role that found no change serves an operation before it tries again, unless the split is
//! fixed as in the paper. So the split bounds how many threads apply, and none is idle.

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

/// One operation of this many is timed: reading the clock prevents an operation from overlapping with the next.
pub const TIMED_EVERY: u64 = 32;
/// Operations that a thread counts locally before it adds them to the window.
pub const FLUSH_COUNT: u64 = 64;
/// Operations of a window: some milliseconds of gets, 50 ms of scans.
pub const WINDOW_COUNT: u64 = 8192;

/// The changes that a pool's threads apply, and the clock that times the threads.
pub trait Work: Sync {
    /// Returns the time in any unit. It never runs backwards.
    fn ticks(&self) -> u64;

    /// Applies a bounded number of the waiting changes, and returns that number.
    ///
    /// # Errors
    /// The store's.
    fn apply(&self) -> Result<u64, Error>;

    /// Returns the number of waiting changes.
    fn queued_count(&self) -> u64;

    /// Returns the number of changes that any thread has applied so far, and the number of updates among them.
    fn applied(&self) -> [u64; 2];
}

/// The kind of a served operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A read of keys.
    Get,
    /// A scan.
    Scan,
    /// A put, an update or a delete.
    Write,
}

/// The next action of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Serve the next operation.
    Serve,
    /// Call [`Member::apply`].
    Apply,
}

/// The rule for the number of applying threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// The equations, in one of their readings.
    Adaptive(Reading),
    /// A fixed split, whose applying threads poll their queues.
    Fixed(Split),
}

/// A pool.
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
    /// The sample at the begin of the present window.
    before: Sample,
}

/// The counts of the work at one moment.
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

    /// Returns the number of changes that were queued so far.
    fn left_count(self) -> u64 {
        self.applied[0] + self.queued_count
    }
}

/// The figures of a pool at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PoolFigures {
    /// The present split.
    pub split: Split,
    /// Threads that have the backend's role at this moment.
    pub backend_count: usize,
    /// Windows so far.
    pub window_count: u64,
    /// The last complete window.
    pub window: Window,
}

impl<W: Work> Pool<W> {
    /// Returns a pool of `thread_count` threads. Before the first window one thread applies, if there are two.
    ///
    /// # Panics
    /// If a fixed split has another number of threads, or no serving thread.
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

    /// Returns a new thread of the pool, which serves at first.
    pub fn member(&self) -> Member<'_, W> {
        Member::of(self)
    }

    /// Returns the work.
    pub fn work(&self) -> &W {
        &self.work
    }

    /// Returns the figures.
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

    /// Adds the counts of a member, and ends the window if it is full.
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
        // Changes that writers and scans applied are not the members' work, and are not timed.
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
