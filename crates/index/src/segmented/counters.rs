//! The number of entries: each thread counts alone, without a locked instruction, and a call of `sum` adds up.
//!
//! The sum is exact if no thread writes during the call. Each of the first threads has a lane, to which only that
//! thread stores; a thread that takes over a thread number sees the stores of its predecessor
//! (`epoch::thread_index`). All other threads share one lane.

use std::sync::atomic::{AtomicI64, Ordering};

/// The number of threads that have their own lane.
const LANE_COUNT: usize = 16;

/// A counter in its own lines, because other threads store to its neighbours.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(AtomicI64);

/// The counter.
#[derive(Debug, Default)]
pub(crate) struct LaneCounter {
    lanes: [Lane; LANE_COUNT],
    others: Lane,
}

impl LaneCounter {
    /// Adds `by`, which may be negative.
    #[inline(always)]
    pub(crate) fn add(&self, by: i64) {
        match self.lanes.get(epoch::thread_index()) {
            Some(Lane(own)) => own.store(own.load(Ordering::Relaxed) + by, Ordering::Relaxed),
            None => _ = self.others.0.fetch_add(by, Ordering::Relaxed),
        }
    }

    /// Returns the sum of all lanes, but at least 0: a sum taken while other threads count may be negative.
    pub(crate) fn sum(&self) -> u64 {
        let sum: i64 = self.lanes.iter().chain([&self.others]).map(|lane| lane.0.load(Ordering::Relaxed)).sum();
        sum.max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_and_without_lanes_count() {
        const THREAD_COUNT: i64 = 2 * LANE_COUNT as i64;
        let (counter, all_are_there) = (LaneCounter::default(), std::sync::Barrier::new(THREAD_COUNT as usize));
        std::thread::scope(|scope| {
            for _ in 0..THREAD_COUNT {
                scope.spawn(|| {
                    drop(epoch::pin());
                    all_are_there.wait();
                    (0..1000).for_each(|_| counter.add(3));
                    counter.add(-1);
                });
            }
        });
        assert_eq!(counter.sum(), THREAD_COUNT as u64 * 2999);
        counter.add(-3000 * THREAD_COUNT);
        assert_eq!(counter.sum(), 0);
    }
}
