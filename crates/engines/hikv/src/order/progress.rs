//! The progress of a build. The finished share never decreases, although the total is an estimate at first.

use std::sync::atomic::{AtomicU64, Ordering};

/// The steps of the present build, or the last one: one per key for each pass over the keys.
#[derive(Debug, Default)]
pub(super) struct BuildProgress {
    done: AtomicU64,
    /// An upper bound of the reported `done`: while keys are collected, there may be more than estimated.
    done_max: AtomicU64,
    total: AtomicU64,
}

impl BuildProgress {
    /// Begins a build of `estimated_count` keys with `times` passes.
    pub(super) fn begin(&self, estimated_count: u64, times: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.done_max.store(estimated_count, Ordering::Relaxed);
        self.total.store(times * estimated_count, Ordering::Relaxed);
    }

    /// Returns the counter of finished steps.
    pub(super) fn done(&self) -> &AtomicU64 {
        &self.done
    }

    /// Ends the first of two passes, which found `count` keys: half of the build is done now, and at most half was
    /// reported.
    pub(super) fn collected(&self, count: u64) {
        self.total.store(2 * count, Ordering::Relaxed);
        self.done_max.store(u64::MAX, Ordering::Relaxed);
    }

    /// Returns the finished steps, and all steps.
    pub(super) fn now(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed).min(self.done_max.load(Ordering::Relaxed));
        (done.min(total), total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any estimate.
    #[test]
    fn the_part_that_is_done_never_shrinks() {
        const COUNT: u64 = 1_000;
        for estimated_count in [0, 1, COUNT / 2, COUNT, 3 * COUNT] {
            let (progress, mut last) = (BuildProgress::default(), 0.0);
            let mut look = |progress: &BuildProgress| {
                let (done, total) = progress.now();
                let part = done as f64 / total.max(1) as f64;
                assert!((last..=1.0).contains(&part), "{done} of {total} after {last}; {estimated_count} estimated");
                last = part;
            };
            progress.begin(estimated_count, 2);
            for step in 0..2 * COUNT {
                if step == COUNT {
                    progress.collected(COUNT);
                    look(&progress);
                }
                progress.done().fetch_add(1, Ordering::Relaxed);
                look(&progress);
            }
            assert_eq!(progress.now(), (2 * COUNT, 2 * COUNT));
        }
    }
}
