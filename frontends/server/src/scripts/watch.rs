//! When a running script is stopped.
//!
//! `SCRIPT KILL` and the script's first write exclude each other: both change the same word ([`Progress`]) from
//! [`UNWRITTEN`], and one fails. So a script that has begun to write runs to its end, and one whose kill was confirmed
//! writes nothing.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use lua_scripts::{Stop, Watch};
use mio::Waker;

use crate::StopHandle;
use crate::shared::Shared;

/// The time of a script on an event loop, whose other clients wait for it.
const LOOP_MS_MAX: u64 = 5;

const IDLE: u8 = 0;
const UNWRITTEN: u8 = 1;
const WRITTEN: u8 = 2;
const KILLED: u8 = 3;

/// The answer to `SCRIPT KILL`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kill {
    /// The script will end.
    Done,
    /// No script runs.
    NotRunning,
    /// The script has begun to write.
    TooLate,
}

/// A guard: a script runs. It is dropped by a panic as well, so that no script seems to run afterwards.
#[must_use]
pub(crate) struct Running<'p>(&'p Progress);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.store(IDLE, Ordering::SeqCst);
    }
}

/// The progress of the script that runs in the background.
#[derive(Default)]
pub(crate) struct Progress(AtomicU8);

impl Progress {
    fn change(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
    }

    /// Begins a script, which ends when the guard is dropped.
    pub(crate) fn begin(&self) -> Running<'_> {
        self.0.store(UNWRITTEN, Ordering::SeqCst);
        Running(self)
    }

    /// Records that the script is about to write; returns false if it was killed before.
    pub(crate) fn write(&self) -> bool {
        self.change(UNWRITTEN, WRITTEN) != Err(KILLED)
    }

    /// Kills the script.
    pub(crate) fn kill(&self) -> Kill {
        match self.change(UNWRITTEN, KILLED) {
            Ok(_) | Err(KILLED) => Kill::Done,
            Err(IDLE) => Kill::NotRunning,
            Err(_) => Kill::TooLate,
        }
    }

    fn is_killed(&self) -> bool {
        self.0.load(Ordering::SeqCst) == KILLED
    }
}

/// Stops a script that takes too long for an event loop.
pub(crate) struct LoopWatch(Instant);

impl LoopWatch {
    pub(crate) fn begin() -> Rc<LoopWatch> {
        Rc::new(LoopWatch(Instant::now()))
    }
}

impl Watch for LoopWatch {
    fn check(&self) -> Option<Stop> {
        (self.0.elapsed() >= Duration::from_millis(LOOP_MS_MAX)).then_some(Stop::Abandoned)
    }
}

/// Stops a script that a client kills, or that would delay the end of the server; makes the server busy after
/// `busy-reply-threshold`.
pub(crate) struct ScriptWatch {
    began: Instant,
    busy_after: Option<Duration>,
    progress: Arc<Progress>,
    is_busy: Arc<AtomicBool>,
    wakers: Vec<Arc<Waker>>,
    stop: StopHandle,
}

impl ScriptWatch {
    pub(crate) fn begin(shared: &Shared) -> Rc<ScriptWatch> {
        let (scripts, busy_ms) = (&shared.scripts, shared.administration.settings.busy_ms_min());
        Rc::new(ScriptWatch {
            began: Instant::now(),
            busy_after: (busy_ms > 0).then(|| Duration::from_millis(busy_ms)),
            progress: Arc::clone(&scripts.progress),
            is_busy: Arc::clone(&scripts.is_busy),
            wakers: (0..shared.telemetry.loops.len()).map(|index| shared.mailboxes.waker(index)).collect(),
            stop: shared.stop.clone(),
        })
    }
}

impl Watch for ScriptWatch {
    fn check(&self) -> Option<Stop> {
        if self.progress.is_killed() {
            return Some(Stop::Killed);
        }
        if self.stop.is_stopped() {
            return Some(Stop::Abandoned);
        }
        if self.busy_after.is_some_and(|after| self.began.elapsed() >= after)
            && !self.is_busy.swap(true, Ordering::SeqCst)
        {
            // This fails only if the loop has ended.
            self.wakers.iter().for_each(|waker| drop(waker.wake()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kill_and_first_write_exclude_each_other() {
        let progress = Progress::default();
        assert_eq!(progress.kill(), Kill::NotRunning);
        let running = progress.begin();
        assert!(progress.write());
        assert_eq!(progress.kill(), Kill::TooLate);
        assert!(progress.write() && !progress.is_killed());
        drop(running);
        assert_eq!(progress.kill(), Kill::NotRunning);
        let running = progress.begin();
        assert_eq!((progress.kill(), progress.kill()), (Kill::Done, Kill::Done));
        assert!(!progress.write() && progress.is_killed());
        drop(running);
        assert_eq!(progress.kill(), Kill::NotRunning);
    }
}
