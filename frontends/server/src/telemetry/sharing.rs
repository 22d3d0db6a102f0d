//! How loops and the store's threads share the work: the current split, and its samples.

use hikv::pool::{PoolFigures, Sampled, Sharing};

use crate::shared::Shared;

/// Operations and changes that pools distinguish.
pub(crate) const SAMPLED: [&str; 4] = ["get", "scan", "write", "apply"];

/// The pool at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// As configured.
    pub(crate) split: Sharing,
    figures: PoolFigures,
}

impl Threads {
    pub(crate) fn of(shared: &Shared) -> Threads {
        Threads { split: shared.split, figures: shared.pool.figures() }
    }

    /// Returns the number of loops that only serve, and of loops that also apply changes.
    pub(crate) fn loops(&self) -> [usize; 2] {
        [self.figures.split.serving, self.figures.split.backend]
    }

    /// Returns the number of loops that now have the backend role; sleeping loops have none.
    pub(crate) fn backend_count(&self) -> usize {
        self.figures.backend_count
    }

    /// Returns the number of windows since the start.
    pub(crate) fn window_count(&self) -> u64 {
        self.figures.window_count
    }

    /// Returns the counts of the last window, in the order of [`SAMPLED`].
    pub(crate) fn counts(&self) -> [u64; SAMPLED.len()] {
        self.sampled().map(|sampled| sampled.count)
    }

    /// Returns the mean durations in microseconds; `None` if none was timed.
    pub(crate) fn means_us(&self) -> [Option<f64>; SAMPLED.len()] {
        self.sampled().map(|sampled| sampled.mean_ticks().map(|ns| ns / 1e3))
    }

    /// Returns the changes that the window's writes queued, the updates among the applied changes, and the changes
    /// queued at its end.
    pub(crate) fn changes(&self) -> [u64; 3] {
        let window = self.figures.window;
        [window.left_count, window.updated_count, window.queued_count]
    }

    fn sampled(&self) -> [Sampled; SAMPLED.len()] {
        let window = self.figures.window;
        [window.gets, window.scans, window.writes, window.applied]
    }
}
