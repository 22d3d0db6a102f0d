//! A time limit for retries on connections that break without progress.

use std::thread;
use std::time::{Duration, Instant};

/// Interval between two attempts.
pub(crate) const AGAIN_EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Patience {
    max: Duration,
    /// The number of completed operations at the first failure without progress, and its time.
    failed: Option<(usize, Instant)>,
}

impl Patience {
    pub(crate) fn new(max: Duration) -> Patience {
        Patience { max, failed: None }
    }

    /// Called after a failure, with the total number of completed operations: returns whether to retry. The first retry
    /// is always permitted.
    pub(crate) fn lasts(&mut self, done_count: usize) -> bool {
        match self.failed {
            Some((done_then, since)) if done_then == done_count => {
                let lasts = since.elapsed() < self.max;
                if lasts {
                    thread::sleep(AGAIN_EVERY);
                }
                lasts
            }
            _ => {
                self.failed = Some((done_count, Instant::now()));
                true
            }
        }
    }
}
