//! A rate limit for warnings that hosts can cause at will.

use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(10);

/// The time of the last warning, and the number of suppressed ones since.
#[derive(Default)]
pub(crate) struct RateLimit {
    written: Option<Instant>,
    suppressed_count: u64,
}

impl RateLimit {
    /// Returns the number of warnings suppressed before, if this one may be written.
    pub(crate) fn may_write(&mut self, now: Instant) -> Option<u64> {
        if self.written.is_some_and(|written| now.duration_since(written) < EVERY) {
            self.suppressed_count += 1;
            return None;
        }
        self.written = Some(now);
        Some(std::mem::take(&mut self.suppressed_count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_is_line_in_while() {
        let (mut rate_limit, start) = (RateLimit::default(), Instant::now());
        assert_eq!(rate_limit.may_write(start), Some(0));
        assert_eq!((0..1000).find_map(|_| rate_limit.may_write(start)), None);
        assert_eq!(rate_limit.may_write(start + EVERY), Some(1000));
        assert_eq!(rate_limit.may_write(start + EVERY * 3), Some(0));
    }
}
