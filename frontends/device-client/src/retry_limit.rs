//! A time limit for retries on connections that break without progress.

use std::thread;
use std::time::{Duration, Instant};

/// Interval between two attempts.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) struct RetryLimit {
    max: Duration,
    /// The number of completed operations at the first failure without progress, and its time.
    failed: Option<(usize, Instant)>,
}

impl RetryLimit {
    pub(crate) fn new(max: Duration) -> RetryLimit {
        RetryLimit { max, failed: None }
    }

    /// Called after a failure, with the total number of completed operations: returns whether to retry. The first retry
    /// is always permitted.
    pub(crate) fn may_retry(&mut self, done_count: usize) -> bool {
        match self.failed {
            Some((done_then, since)) if done_then == done_count => {
                let may_retry = since.elapsed() < self.max;
                if may_retry {
                    thread::sleep(RETRY_INTERVAL);
                }
                may_retry
            }
            _ => {
                self.failed = Some((done_count, Instant::now()));
                true
            }
        }
    }
}
