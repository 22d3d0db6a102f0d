//! The thread that drives an engine's background work, and sleeps when there is none.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Engine, Progress};

/// How long a worker looks out for more before it sleeps: waking it costs a writer microseconds, and busy writers ask for
/// it several times in this time.
const LINGER: Duration = Duration::from_micros(500);

/// A background thread of one engine. It holds the engine weakly, so that dropping the engine ends it; dropping the
/// worker stops it and waits.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Somebody asked for a step since the worker last looked.
    asked: AtomicBool,
}

impl Worker {
    /// Starts a worker for `engine`, which steps until nothing is left to do.
    ///
    /// # Errors
    /// The operating system's, if it cannot start a thread.
    pub fn start(engine: Weak<dyn Engine>) -> io::Result<Worker> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("hikv-worker".into()).spawn(move || theirs.run(&engine))?;
        Ok(Worker { shared, thread: Some(thread) })
    }

    /// Asks for a step. Costs a load when one was asked for already.
    #[inline]
    pub fn ask(&self) {
        if !self.shared.asked.load(Ordering::Relaxed) && !self.shared.asked.swap(true, Ordering::AcqRel) {
            self.thread.iter().for_each(|thread| thread.thread().unpark());
        }
    }
}

impl Shared {
    fn run(&self, engine: &Weak<dyn Engine>) {
        while !self.stop.load(Ordering::Acquire) {
            self.asked.store(false, Ordering::Release);
            let Some(open) = engine.upgrade() else { return };
            // A step that fails (a full disk) is tried again when somebody asks: writers get the error themselves.
            let progress = open.step().unwrap_or(Progress::Idle);
            drop(open);
            match progress {
                Progress::More => {}
                Progress::Rest(time) => thread::park_timeout(time),
                Progress::Idle if self.is_asked_within(LINGER) => {}
                Progress::Idle => {
                    let left = engine.upgrade().map_or(Progress::Idle, |engine| engine.tidy());
                    if left == Progress::Idle {
                        self.sleep();
                    }
                }
            }
        }
    }

    /// Looks out for somebody who asks for a step, or for the end.
    fn is_asked_within(&self, time: Duration) -> bool {
        let start = Instant::now();
        while !self.is_asked() && start.elapsed() < time {
            thread::yield_now();
        }
        self.is_asked()
    }

    fn sleep(&self) {
        while !self.is_asked() {
            thread::park();
        }
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire) || self.stop.load(Ordering::Acquire)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // The worker may hold the last handle of the store for a moment and then drops itself: no waiting for that.
        if thread.thread().id() != thread::current().id() {
            // A worker that panicked has told so already; the store's own state is behind its locks.
            let _ = thread.join();
        }
    }
}
