//! The thread that drives an engine's background work, and sleeps when there is none.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::{Engine, Progress};

/// How long a worker looks out for more before it sleeps: waking it costs a writer microseconds, and busy writers ask for
/// it several times in this time.
const LINGER: Duration = Duration::from_micros(500);

/// The time between two calls of a worker's watch.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// The callback of the worker that watches time: false if it need not be called again before the worker is asked for a step.
pub type Watch = Box<dyn Fn() -> bool + Send + Sync>;

/// A background thread of one engine. It holds the engine weakly, so that dropping the engine ends it; dropping the
/// worker stops it and waits.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

thread_local! {
    /// What this thread, a worker's, does when it has ended its work.
    static LAST: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// A thread asked for a step since the worker last looked.
    asked: AtomicBool,
    is_asleep: AtomicBool,
    /// Of the worker that watches time.
    watch: Option<Watch>,
}

/// When the watch was called, and whether it wants that again.
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
    /// Starts a worker for `engine`, which steps until nothing is left to do, and again when it is asked.
    ///
    /// # Errors
    /// The operating system's, if it cannot start a thread.
    pub fn start(engine: Weak<dyn Engine>) -> io::Result<Worker> {
        Worker::start_as(engine, Shared::default())
    }

    /// As [`Worker::start`]; this worker, one of an engine, also steps when the time for something has come, and calls `watch` about once a
    /// second until that returns false, and again after the next step that it is asked for.
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

    /// True on the worker's own thread: what it runs has called back.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.thread().id() == thread::current().id())
    }

    /// On the worker's own thread: lets the worker end what it is at, and then, when the engine is not held any more, do this.
    ///
    /// # Panics
    /// On another thread.
    pub fn end_with(self, last: impl FnOnce() + 'static) {
        assert!(self.is_current(), "another thread waits for a worker's end");
        LAST.set(Some(Box::new(last)));
    }

    /// Whether it has something to do, or looks out for it.
    #[must_use]
    pub fn is_awake(&self) -> bool {
        let is_over = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        !is_over && !self.shared.is_asleep.load(Ordering::Relaxed)
    }

    /// Has the worker end once its step is done, without waiting for that.
    pub fn quit(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Asks for a step. Costs a load when one was asked for already.
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
            // A step that fails (a full disk) is tried again when somebody asks: writers get the error themselves.
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
                    let left = open.tidy();
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

    /// How long the engine may be left alone, if this is the worker that watches time; it is said before any sleep.
    fn due(&self, open: &dyn Engine) -> Option<Duration> {
        if self.watch.is_some() { open.sleep_time() } else { None }
    }

    /// Calls the watch, if there is one and its time has come.
    fn watch_if_due(&self, watched: &mut Watched) {
        let is_due = watched.again && watched.last.elapsed() >= WATCH_EVERY;
        if let Some(watch) = self.watch.as_ref().filter(|_| is_due) {
            *watched = Watched { again: watch(), last: Instant::now() };
        }
    }

    /// Looks out for a thread that asks for a step, or for the end.
    fn is_asked_within(&self, time: Duration) -> bool {
        let start = Instant::now();
        while !self.is_asked() && start.elapsed() < time {
            thread::yield_now();
        }
        self.is_asked()
    }

    /// Sleeps for `time`, or until a thread asks; calls the watch in between.
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
        // A worker that panicked has told so already; the store's own state is behind its locks.
        let _ = thread.join();
    }
}
