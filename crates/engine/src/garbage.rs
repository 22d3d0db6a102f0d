//! Garbage, and its bound: what was replaced or deleted and may still be looked at.
//!
//! An operation is pinned for microseconds, but a callback may take as long as it likes, and until then nothing that is unlinked
//! becomes free. So that a slow callback does not fill the disk, writers are slowed while more than [`GARBAGE_BYTES_MAX`] waits.
//!
//! # Gently
//! Each write owes a time, a microsecond at the bound, and twice as much for each further fifth of the bound: a put that takes a
//! microsecond becomes half as fast at the bound, and takes a millisecond at three times the bound. A write sleeps once the writes of all threads
//! owe a millisecond. So garbage grows with the logarithm of the time that the reader takes, and there is no bound at which writes suddenly
//! stop. Nothing fails. The stats show how much waits, how many writes were slowed, how long the oldest pin has been there, and which thread
//! has that pin.
//!
//! A writer that is pinned itself is inside of a callback, perhaps of the very one that is waited for, and goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use epoch::Limbo;

/// More than this waits only where a reader takes its time: writers of the largest values included, who free what they can
/// first.
pub const GARBAGE_BYTES_MAX: u64 = 64 << 20;
/// What a write owes at the bound: about as long as it takes by itself.
const OWED_MIN: Duration = Duration::from_micros(1);
/// What it owes at most.
const OWED_MAX: Duration = Duration::from_millis(100);
/// What a write owes doubles so often while garbage grows by its bound.
const DOUBLINGS_PER_BOUND: f64 = 5.0;
/// A sleep that is much shorter takes longer than it should.
const SLEEP_MIN: Duration = Duration::from_millis(1);
/// A writer looks for free garbage again after so much more garbage, and before each sleep: a look interrupts every core.
const COLLECT_BYTES: u64 = GARBAGE_BYTES_MAX / 64;
/// Garbage of readers who have moved on is free after so many looks.
const COLLECT_COUNT: usize = 3;

/// The writes that were slowed, and what they owe.
#[derive(Debug, Default)]
pub struct WriteThrottle {
    count: AtomicU64,
    owed_ns: AtomicU64,
    /// How much garbage there was at the last look.
    collected_bytes: AtomicU64,
}

impl WriteThrottle {
    /// How many writes were slowed.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Comes before a write, once, that leaves garbage in `limbo`, while that is [over its bound](Limbo::is_over); `collect` frees what it can.
    /// The caller holds no lock.
    pub fn throttle<T: Send>(&self, limbo: &Limbo<T>, mut collect: impl FnMut()) {
        if epoch::is_pinned() {
            return;
        }
        let bytes = limbo.queued_bytes();
        let due = self.owe(bytes);
        let has_grown = self.collected_bytes.load(Ordering::Relaxed).abs_diff(bytes) >= COLLECT_BYTES;
        if due.is_none() && !has_grown {
            return;
        }
        self.collected_bytes.store(bytes, Ordering::Relaxed);
        for _ in 0..COLLECT_COUNT {
            collect();
            if !limbo.is_over() {
                return;
            }
        }
        due.into_iter().for_each(thread::sleep);
    }

    /// Adds what a write owes; the time that this one is to sleep for all, if that is due.
    fn owe(&self, garbage_bytes: u64) -> Option<Duration> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let owed_ns = owed(garbage_bytes).as_nanos() as u64;
        if self.owed_ns.fetch_add(owed_ns, Ordering::Relaxed) + owed_ns < SLEEP_MIN.as_nanos() as u64 {
            return None;
        }
        let due = Duration::from_nanos(self.owed_ns.swap(0, Ordering::Relaxed));
        (!due.is_zero()).then_some(due.min(OWED_MAX))
    }
}

/// What a write owes while so much waits.
fn owed(garbage_bytes: u64) -> Duration {
    let above = garbage_bytes.saturating_sub(GARBAGE_BYTES_MAX) as f64 / GARBAGE_BYTES_MAX as f64;
    let factor = (above * DOUBLINGS_PER_BOUND).exp2().min(OWED_MAX.as_secs_f64() / OWED_MIN.as_secs_f64());
    OWED_MIN.mul_f64(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No step anywhere: a percent of the bound more never slows a write by more than four percent.
    #[test]
    fn writes_slow_down_gradually() {
        let owed: Vec<_> = (100..=1000).map(|percent| owed(GARBAGE_BYTES_MAX / 100 * percent)).collect();
        assert!(owed[0] >= OWED_MIN && owed[0] < 2 * OWED_MIN, "{:?}", owed[0]);
        assert_eq!(owed.last(), Some(&OWED_MAX));
        for pair in owed.windows(2) {
            assert!(pair[0] <= pair[1] && pair[1] <= pair[0].mul_f64(1.04), "{pair:?}");
        }
    }

    /// The time that a writer takes for so much garbage, beyond what its writes take by themselves.
    fn owed_until(garbage_bytes: u64, value_bytes: u64) -> Duration {
        (0..garbage_bytes / value_bytes).map(|number| owed(number * value_bytes)).sum()
    }

    /// As counted, not as measured: while a reader takes five seconds, garbage stays below five times its bound, whatever is written.
    #[test]
    fn garbage_grows_with_the_logarithm_of_time() {
        for value_bytes in [64, 1 << 10, 64 << 10, 1 << 20] {
            let time = owed_until(5 * GARBAGE_BYTES_MAX, value_bytes);
            assert!(time > Duration::from_secs(5), "{value_bytes}: {time:?}");
        }
    }

    #[test]
    fn write_sleeps_for_those_before_it() {
        let held_up = WriteThrottle::default();
        let slept: Vec<_> = (0..2_000).filter_map(|_| held_up.owe(GARBAGE_BYTES_MAX)).collect();
        assert_eq!(slept, [SLEEP_MIN; 2]);
        assert_eq!(held_up.count(), 2_000);
        assert_eq!(held_up.owe(u64::MAX), Some(OWED_MAX));
    }
}
