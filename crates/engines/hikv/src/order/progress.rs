//! How far a build is, for callers that look on: as a part of the whole it never goes back, though the whole is estimated first.

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps of the present build, or the last one: one a key for each time that it is gone through.
#[derive(Debug, Default)]
pub(super) struct BuildProgress {
    done: AtomicU64,
    /// As far as `done` is told: while keys are collected there may turn out to be more of them than was estimated.
    done_max: AtomicU64,
    total: AtomicU64,
}

impl BuildProgress {
    /// Nothing is done yet of a build that goes through this many keys so often.
    pub(super) fn begin(&self, estimated_count: u64, times: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.done_max.store(estimated_count, Ordering::Relaxed);
        self.total.store(times * estimated_count, Ordering::Relaxed);
    }

    /// Where steps are counted.
    pub(super) fn done(&self) -> &AtomicU64 {
        &self.done
    }

    /// The first of two times is over, and so many keys there are: half of it is done now, and not more than half was told.
    pub(super) fn collected(&self, count: u64) {
        self.total.store(2 * count, Ordering::Relaxed);
        self.done_max.store(u64::MAX, Ordering::Relaxed);
    }

    /// Steps that are done, and steps in all.
    pub(super) fn now(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed).min(self.done_max.load(Ordering::Relaxed));
        (done.min(total), total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was estimated.
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
