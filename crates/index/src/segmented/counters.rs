//! How many entries there are: each thread counts alone, without a locked instruction, and the thread that asks adds up.
//!
//! The sum is exact while nobody writes. The first so many threads have a lane each, which they alone store to; a thread that takes a
//! number over knows what the earlier one did (`epoch::thread_index`). The others share one.

use std::sync::atomic::{AtomicI64, Ordering};

/// Threads that have a lane of their own.
const LANE_COUNT: usize = 16;

/// Alone in its lines: its neighbours are stored to by others.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(AtomicI64);

/// The count.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    lanes: [Lane; LANE_COUNT],
    others: Lane,
}

impl Tally {
    /// Counts so many more, or fewer.
    #[inline(always)]
    pub(crate) fn add(&self, by: i64) {
        match self.lanes.get(epoch::thread_index()) {
            Some(Lane(own)) => own.store(own.load(Ordering::Relaxed) + by, Ordering::Relaxed),
            None => _ = self.others.0.fetch_add(by, Ordering::Relaxed),
        }
    }

    /// All of them; never below 0, which a sum may be that was taken while others count.
    pub(crate) fn sum(&self) -> u64 {
        let sum: i64 = self.lanes.iter().chain([&self.others]).map(|lane| lane.0.load(Ordering::Relaxed)).sum();
        sum.max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_a_lane_and_without_are_counted() {
        const THREAD_COUNT: i64 = 2 * LANE_COUNT as i64;
        let (tally, all_are_there) = (Tally::default(), std::sync::Barrier::new(THREAD_COUNT as usize));
        std::thread::scope(|scope| {
            for _ in 0..THREAD_COUNT {
                scope.spawn(|| {
                    drop(epoch::pin());
                    all_are_there.wait();
                    (0..1000).for_each(|_| tally.add(3));
                    tally.add(-1);
                });
            }
        });
        assert_eq!(tally.sum(), THREAD_COUNT as u64 * 2999);
        tally.add(-3000 * THREAD_COUNT);
        assert_eq!(tally.sum(), 0);
    }
}
