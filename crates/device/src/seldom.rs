//! A rate limit for warnings that hosts can cause at will.

use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(10);

/// The time of the last warning, and the number of suppressed ones since.
#[derive(Default)]
pub(crate) struct Seldom {
    written: Option<Instant>,
    left_out_count: u64,
}

impl Seldom {
    /// Returns the number of warnings suppressed before, if this one may be written.
    pub(crate) fn may_write(&mut self, now: Instant) -> Option<u64> {
        if self.written.is_some_and(|written| now.duration_since(written) < EVERY) {
            self.left_out_count += 1;
            return None;
        }
        self.written = Some(now);
        Some(std::mem::take(&mut self.left_out_count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_line_in_a_while() {
        let (mut seldom, start) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.may_write(start), Some(0));
        assert_eq!((0..1000).find_map(|_| seldom.may_write(start)), None);
        assert_eq!(seldom.may_write(start + EVERY), Some(1000));
        assert_eq!(seldom.may_write(start + EVERY * 3), Some(0));
    }
}
