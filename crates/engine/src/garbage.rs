//! The bound on garbage: items that were replaced or deleted and that readers may still use.
//!
//! An operation is pinned for microseconds, but a callback may run for any time, and until it returns no unlinked item
//! becomes free. Writers are slowed while more than [`GARBAGE_BYTES_MAX`] waits, so that a slow callback does not fill
//! the disk.
//!
//! # Gradual slowing
//! Each write owes a delay: a microsecond at the bound, and twice as much for each further fifth of the bound. A put
//! that takes a microsecond is half as fast at the bound, and takes a millisecond at three times the bound. A write
//! sleeps once the writes of all threads owe a millisecond. So garbage grows with the logarithm of the time that the
//! reader takes, and writes never stop suddenly at some bound. No write fails. The stats show the bytes that wait, the
//! writes that were slowed, and the age and thread of the oldest pin.
//!
//! A writer that is itself pinned is inside a callback, perhaps the one that is awaited. Such a writer is not slowed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use epoch::Limbo;

/// More than this waits only if a reader is slow. That includes writers of the largest values, which first free all
/// garbage that they can.
pub const GARBAGE_BYTES_MAX: u64 = 64 << 20;
/// The delay that a write owes at the bound: about the duration of a write.
const OWED_MIN: Duration = Duration::from_micros(1);
/// The longest delay of a write.
const OWED_MAX: Duration = Duration::from_millis(100);
/// The number of times that the owed delay doubles while garbage grows by its bound.
const DOUBLINGS_PER_BOUND: f64 = 5.0;
/// A much shorter sleep takes longer than requested.
const SLEEP_MIN: Duration = Duration::from_millis(1);
/// A writer collects garbage again after this much more garbage, and before each sleep: each collection interrupts
/// every core.
const COLLECT_BYTES: u64 = GARBAGE_BYTES_MAX / 64;
/// The number of collections after which garbage of readers that have moved on is free.
const COLLECT_COUNT: usize = 3;

/// The number of slowed writes, and the delay that they owe.
#[derive(Debug, Default)]
pub struct WriteThrottle {
    count: AtomicU64,
    owed_ns: AtomicU64,
    /// The bytes of garbage at the last collection.
    collected_bytes: AtomicU64,
}

impl WriteThrottle {
    /// Returns the number of slowed writes.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Slows a write that leaves garbage in `limbo`, while the limbo is [over its bound](Limbo::is_over). Called once
    /// before the write, without a lock; `collect` frees the garbage that has no readers.
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

    /// Adds the delay that a write owes; returns the time that this write should sleep for all, if a sleep is due.
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

/// Returns the delay that a write owes while `garbage_bytes` wait.
fn owed(garbage_bytes: u64) -> Duration {
    let above = garbage_bytes.saturating_sub(GARBAGE_BYTES_MAX) as f64 / GARBAGE_BYTES_MAX as f64;
    let factor = (above * DOUBLINGS_PER_BOUND).exp2().min(OWED_MAX.as_secs_f64() / OWED_MIN.as_secs_f64());
    OWED_MIN.mul_f64(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delay has no step: 1 % of the bound more slows a write by at most 4 %.
    #[test]
    fn writes_slow_down_gradually() {
        let owed: Vec<_> = (100..=1000).map(|percent| owed(GARBAGE_BYTES_MAX / 100 * percent)).collect();
        assert!(owed[0] >= OWED_MIN && owed[0] < 2 * OWED_MIN, "{:?}", owed[0]);
        assert_eq!(owed.last(), Some(&OWED_MAX));
        for pair in owed.windows(2) {
            assert!(pair[0] <= pair[1] && pair[1] <= pair[0].mul_f64(1.04), "{pair:?}");
        }
    }

    /// The delay of a writer that makes `garbage_bytes` of garbage, without the duration of its writes.
    fn owed_until(garbage_bytes: u64, value_bytes: u64) -> Duration {
        (0..garbage_bytes / value_bytes).map(|number| owed(number * value_bytes)).sum()
    }

    /// Calculated, not measured: while a reader takes five seconds, garbage stays below five times its bound for any
    /// size of values.
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
