//! How long a client goes on with connections that break before anything is done on them.

use std::thread;
use std::time::{Duration, Instant};

/// Between two attempts.
pub(crate) const AGAIN_EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Patience {
    max: Duration,
    /// How much was done at the first failure since something was, and when that came.
    failed: Option<(usize, Instant)>,
}

impl Patience {
    pub(crate) fn new(max: Duration) -> Patience {
        Patience { max, failed: None }
    }

    /// After a failure, with so much done in all: whether it is tried again. Once it always is.
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
