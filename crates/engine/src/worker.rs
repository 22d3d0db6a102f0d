//! The thread that does an engine's background work, and sleeps when there is none.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::{Engine, Progress};

/// The time for which a worker polls for more work before it sleeps: waking it costs a writer microseconds, and busy
/// writers request it several times within this time.
const LINGER: Duration = Duration::from_micros(500);

/// The time between two calls of a worker's watch.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// The callback of the worker that watches time. Returns false if it need not be called again before a step is
/// requested.
pub type Watch = Box<dyn Fn() -> bool + Send + Sync>;

/// A background thread of one engine. It holds the engine weakly, so dropping the engine ends it. Dropping the worker
/// stops the thread and waits for it.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

thread_local! {
    /// The function that this thread, a worker's, calls after its work.
    static LAST: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// A thread requested a step since the worker last checked.
    asked: AtomicBool,
    is_asleep: AtomicBool,
    /// Set for the worker that watches time.
    watch: Option<Watch>,
}

/// The time of the last call of the watch, and whether another call is wanted.
struct Watched {
    last: Instant,
    again: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("is_asleep", &self.is_asleep).finish_non_exhaustive()
    }
}

impl Worker {
    /// Starts a worker for `engine`. It calls steps until no work is left, and again on each request.
    ///
    /// # Errors
    /// The operating system's, if it cannot start a thread.
    pub fn start(engine: Weak<dyn Engine>) -> io::Result<Worker> {
        Worker::start_as(engine, Shared::default())
    }

    /// As [`Worker::start`], for the one worker of an engine that watches time. It also calls a step when
    /// [`crate::Maintenance::sleep_time`] has passed. It calls `watch` about once a second until that returns false,
    /// and again after the next step that is requested.
    ///
    /// # Errors
    /// As for [`Worker::start`].
    pub fn start_watching_time(engine: Weak<dyn Engine>, watch: Watch) -> io::Result<Worker> {
        Worker::start_as(engine, Shared { watch: Some(watch), ..Shared::default() })
    }

    fn start_as(engine: Weak<dyn Engine>, shared: Shared) -> io::Result<Worker> {
        let shared = Arc::new(shared);
        let theirs = Arc::clone(&shared);
        let run = move || {
            theirs.run(&engine);
            LAST.take().into_iter().for_each(|last| last());
        };
        let thread = thread::Builder::new().name("hikv-worker".into()).spawn(run)?;
        Ok(Worker { shared, thread: Some(thread) })
    }

    /// Returns true on the worker's own thread, inside a callback of its work.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.thread().id() == thread::current().id())
    }

    /// Lets the worker finish its present work and then, when it no longer holds the engine, call `last`. Called on the
    /// worker's own thread.
    ///
    /// # Panics
    /// On another thread.
    pub fn end_with(self, last: impl FnOnce() + 'static) {
        assert!(self.is_current(), "end_with was called on another thread than the worker's");
        LAST.set(Some(Box::new(last)));
    }

    /// Returns true if the worker is working, or polls for work.
    #[must_use]
    pub fn is_awake(&self) -> bool {
        let is_over = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        !is_over && !self.shared.is_asleep.load(Ordering::Relaxed)
    }

    /// Requests that the worker ends after its present step, without waiting for it.
    pub fn quit(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Requests a step. Costs a load if a step was requested already.
    #[inline]
    pub fn wake(&self) {
        if !self.shared.asked.load(Ordering::Relaxed) && !self.shared.asked.swap(true, Ordering::AcqRel) {
            self.thread.iter().for_each(|thread| thread.thread().unpark());
        }
    }
}

impl Shared {
    fn run(&self, engine: &Weak<dyn Engine>) {
        let mut watched = Watched { last: Instant::now(), again: true };
        while !self.stop.load(Ordering::Acquire) {
            watched.again = true;
            self.watch_if_due(&mut watched);
            self.asked.store(false, Ordering::Release);
            let Some(open) = engine.upgrade() else { return };
            // A step that failed (a full disk) is tried again at the next request: writers get the error themselves.
            let progress = open.step().unwrap_or(Progress::Idle);
            drop(open);
            match progress {
                Progress::More => {}
                Progress::Rest(time) => {
                    let Some(open) = engine.upgrade() else { return };
                    let due = self.due(&*open);
                    drop(open);
                    thread::park_timeout(due.map_or(time, |due| due.min(time)));
                }
                Progress::Idle if self.is_asked_within(LINGER) => {}
                Progress::Idle => {
                    let Some(open) = engine.upgrade() else { return };
                    let left = open.run_idle_maintenance();
                    let time = self.due(&*open);
                    drop(open);
                    match left {
                        Progress::More => {}
                        Progress::Rest(rest) => {
                            self.sleep(Some(time.map_or(rest, |time| time.min(rest))), &mut watched)
                        }
                        Progress::Idle => self.sleep(time, &mut watched),
                    }
                }
            }
        }
    }

    /// Returns how long the engine needs no step, if this is the worker that watches time. Called before every sleep.
    fn due(&self, open: &dyn Engine) -> Option<Duration> {
        if self.watch.is_some() { open.sleep_time() } else { None }
    }

    /// Calls the watch, if there is one and it is due.
    fn watch_if_due(&self, watched: &mut Watched) {
        let is_due = watched.again && watched.last.elapsed() >= WATCH_EVERY;
        if let Some(watch) = self.watch.as_ref().filter(|_| is_due) {
            *watched = Watched { again: watch(), last: Instant::now() };
        }
    }

    /// Polls for a requested step or stop.
    fn is_asked_within(&self, time: Duration) -> bool {
        let start = Instant::now();
        while !self.is_asked() && start.elapsed() < time {
            thread::yield_now();
        }
        self.is_asked()
    }

    /// Sleeps for `time`, or until a request; calls the watch in between.
    fn sleep(&self, time: Option<Duration>, watched: &mut Watched) {
        let end = time.and_then(|time| Instant::now().checked_add(time));
        self.is_asleep.store(true, Ordering::Relaxed);
        while !self.is_asked() {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let watch = self.watch.as_ref().filter(|_| watched.again);
            let until_watch = watch.map(|_| WATCH_EVERY.saturating_sub(watched.last.elapsed()));
            match left.into_iter().chain(until_watch).min() {
                _ if left == Some(Duration::ZERO) => break,
                None => thread::park(),
                Some(left) => thread::park_timeout(left),
            }
            self.watch_if_due(watched);
        }
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire) || self.stop.load(Ordering::Acquire)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let is_current = self.is_current();
        let Some(thread) = self.thread.take().filter(|_| !is_current) else { return };
        thread.thread().unpark();
        // Rust's panic hook has reported a worker's panic; the store's state is protected by its locks.
        let _ = thread.join();
    }
}
