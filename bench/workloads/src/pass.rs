//! The two passes over a workload's streams, one thread each, started together.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pmem::arch;

use crate::subject::Error;

/// Operations between two clock reads: some 50 us of reads. A pass is then not noticeably too long, and clock reads
/// cost nothing.
const CLOCK_STEPS: u32 = 256;
/// Two digits of a latency are exact: finer than two runs agree.
const HISTOGRAM_FIGURES: u8 = 2;
/// Some minutes; longer latencies count as this. A fixed limit keeps the histogram from growing within a pass.
const LATENCY_TICKS_MAX: u64 = 1 << 40;

/// The result of one turn of a thread.
pub(crate) enum Step {
    /// This many operations, at least one.
    Served(u64),
    /// Work other than the thread's operations.
    Applied,
    /// No operation is left.
    Over,
}

/// A thread of a pass, turn by turn.
pub(crate) trait Turn: Send {
    /// Prepares a turn; this time is not measured.
    #[inline(always)]
    fn prepare(&mut self) {}

    /// Runs the next turn.
    fn turn(&mut self) -> Result<Step, Error>;
}

/// The end of a pass: after a time, or on request.
#[derive(Clone, Copy)]
pub(crate) struct Until<'a> {
    pub(crate) limit: Duration,
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
}

impl Until<'_> {
    fn is_over(&self, start: Instant) -> bool {
        start.elapsed() >= self.limit || self.is_stopped()
    }

    /// Returns true once the end was requested.
    pub(crate) fn is_stopped(&self) -> bool {
        (self.stop)()
    }
}

/// The result of the throughput pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) operations: u64,
    /// The time from the common start to the last thread's end.
    pub(crate) elapsed: Duration,
}

impl Pace {
    /// Returns true if any operation was done.
    pub(crate) fn is_any(self) -> bool {
        self.operations > 0
    }

    /// Returns the thread time per operation, in nanoseconds, with this many threads.
    pub(crate) fn ns_each(self, threads: usize) -> f64 {
        self.elapsed.as_secs_f64() * 1e9 * threads as f64 / self.operations.max(1) as f64
    }
}

/// Runs `threads`, timing only the whole pass.
pub(crate) fn throughput(threads: &mut [impl Turn], until: Until<'_>) -> Result<Pace, Error> {
    let paces = together(threads, |thread| untimed(thread, until))?;
    Ok(Pace {
        operations: paces.iter().map(|pace| pace.operations).sum(),
        elapsed: paces.iter().map(|pace| pace.elapsed).max().unwrap_or_default(),
    })
}

fn untimed(thread: &mut impl Turn, until: Until<'_>) -> Result<Pace, Error> {
    let start = Instant::now();
    let operations = turn_until(until, start, || {
        thread.prepare();
        thread.turn()
    })?;
    Ok(Pace { operations, elapsed: start.elapsed() })
}

/// Latencies in ticks of the time-stamp counter, and the length of a tick.
pub(crate) struct Latencies {
    ticks: Histogram<u64>,
    us_per_tick: f64,
}

impl Latencies {
    /// Returns the length of a tick, in nanoseconds.
    pub(crate) fn ns_per_tick(&self) -> f64 {
        self.us_per_tick * 1e3
    }

    /// Returns the latency that `percent` of the operations do not exceed, in microseconds.
    pub(crate) fn percentile_us(&self, percent: f64) -> f64 {
        self.ticks.value_at_percentile(percent) as f64 * self.us_per_tick
    }

    /// Returns the latencies of a single operation.
    pub(crate) fn of_one(elapsed: Duration) -> Latencies {
        let mut ticks = new_histogram();
        ticks.saturating_record(elapsed.as_nanos() as u64);
        Latencies { ticks, us_per_tick: 1e-3 }
    }

    fn merge(mut self, other: Latencies) -> Latencies {
        self.ticks += other.ticks;
        self
    }
}

/// Runs `threads` and times each operation.
pub(crate) fn latency(threads: &mut [impl Turn], until: Until<'_>) -> Result<Latencies, Error> {
    let latencies = together(threads, |thread| timed(thread, until))?;
    Ok(latencies.into_iter().reduce(Latencies::merge).expect("there is one thread at least"))
}

fn timed(thread: &mut impl Turn, until: Until<'_>) -> Result<Latencies, Error> {
    let mut ticks = new_histogram();
    let (start, start_ticks) = (Instant::now(), arch::timestamp());
    turn_until(until, start, || {
        thread.prepare();
        let before = arch::timestamp_in_order();
        let step = thread.turn()?;
        if let Step::Served(_) = step {
            ticks.saturating_record(arch::timestamp_in_order().wrapping_sub(before));
        }
        Ok(step)
    })?;
    let pass_ticks = arch::timestamp().wrapping_sub(start_ticks).max(1);
    Ok(Latencies { ticks, us_per_tick: start.elapsed().as_secs_f64() * 1e6 / pass_ticks as f64 })
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_max(LATENCY_TICKS_MAX, HISTOGRAM_FIGURES).expect("the limits are the crate's")
}

/// Runs turns until the time is over or no operation is left; returns the number of operations.
fn turn_until(until: Until<'_>, start: Instant, mut turn: impl FnMut() -> Result<Step, Error>) -> Result<u64, Error> {
    let mut operations = 0;
    while !until.is_over(start) {
        for _ in 0..CLOCK_STEPS {
            match turn()? {
                Step::Served(count) => operations += count,
                Step::Applied => {}
                Step::Over => return Ok(operations),
            }
        }
    }
    Ok(operations)
}

/// Calls `work` on each item in a thread of its own; all start at the same moment.
pub(crate) fn together<T: Send, R: Send>(
    threads: &mut [T],
    work: impl Fn(&mut T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let barrier = Barrier::new(threads.len());
    thread::scope(|scope| {
        let start = |thread| {
            scope.spawn(|| {
                barrier.wait();
                work(thread)
            })
        };
        let threads: Vec<_> = threads.iter_mut().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const STEP: Duration = Duration::from_micros(300);

    /// Each step takes a known time.
    struct Slow;

    impl Turn for Slow {
        fn turn(&mut self) -> Result<Step, Error> {
            let start = Instant::now();
            while start.elapsed() < STEP {}
            Ok(Step::Served(1))
        }
    }

    #[test]
    fn percentiles_are_the_time_that_steps_take() {
        let until = Until { limit: Duration::from_millis(50), stop: &|| false };
        let latencies = latency(&mut [Slow, Slow], until).unwrap();
        let step_us = STEP.as_secs_f64() * 1e6;
        assert!(latencies.percentile_us(1.0) > 0.95 * step_us, "{}", latencies.percentile_us(1.0));
        assert!(latencies.percentile_us(50.0) < 20.0 * step_us, "{}", latencies.percentile_us(50.0));
        assert!(latencies.percentile_us(50.0) <= latencies.percentile_us(99.9));
    }

    #[test]
    fn the_pace_counts_what_all_threads_did() {
        let checks = AtomicU32::new(0);
        let until = Until { limit: Duration::MAX, stop: &|| checks.fetch_add(1, Ordering::Relaxed) >= 2 };
        let pace = throughput(&mut [Slow, Slow], until).unwrap();
        assert_eq!(pace.operations, 2 * u64::from(CLOCK_STEPS), "one burst per check that did not stop it");
        assert!(pace.elapsed >= CLOCK_STEPS * STEP);
    }
}
