//! Warnings that hosts can cause as often as they like: one is written in a while, with how many were left out.

use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(10);

/// When a warning was written, and how often it was not since.
#[derive(Default)]
pub(crate) struct Seldom {
    written: Option<Instant>,
    left_out_count: u64,
}

impl Seldom {
    /// How many were left out, if this one is to be written.
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
    fn flood_is_line_in_while() {
        let (mut seldom, start) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.may_write(start), Some(0));
        assert_eq!((0..1000).find_map(|_| seldom.may_write(start)), None);
        assert_eq!(seldom.may_write(start + EVERY), Some(1000));
        assert_eq!(seldom.may_write(start + EVERY * 3), Some(0));
    }
}
