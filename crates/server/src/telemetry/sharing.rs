//! How loops and the store's threads share the work: the split that holds now, and what was sampled for it.

use hikv::pool::{PoolFigures, Sampled, Sharing};

use crate::shared::Shared;

/// Operations and changes, as pools tell them apart.
pub(crate) const SAMPLED: [&str; 4] = ["get", "scan", "write", "apply"];

/// The pool at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// As it is configured.
    pub(crate) split: Sharing,
    figures: PoolFigures,
}

impl Threads {
    pub(crate) fn of(shared: &Shared) -> Threads {
        Threads { split: shared.split, figures: shared.pool.figures() }
    }

    /// Loops that serve alone, and loops that apply, too.
    pub(crate) fn loops(&self) -> [usize; 2] {
        [self.figures.split.serving, self.figures.split.backend]
    }

    /// Loops that have the backend's role at this moment: none that sleeps.
    pub(crate) fn backend_count(&self) -> usize {
        self.figures.backend_count
    }

    /// Windows since the start.
    pub(crate) fn window_count(&self) -> u64 {
        self.figures.window_count
    }

    /// How many there were in the last window, in the order of [`SAMPLED`].
    pub(crate) fn counts(&self) -> [u64; SAMPLED.len()] {
        self.sampled().map(|sampled| sampled.count)
    }

    /// How long each took, in microseconds; none where none was timed.
    pub(crate) fn means_us(&self) -> [Option<f64>; SAMPLED.len()] {
        self.sampled().map(|sampled| sampled.mean_ticks().map(|ns| ns / 1e3))
    }

    /// Changes that the window's writes left to be applied, updates among those that were applied, and changes that waited at its end.
    pub(crate) fn changes(&self) -> [u64; 3] {
        let window = self.figures.window;
        [window.left_count, window.updated_count, window.queued_count]
    }

    fn sampled(&self) -> [Sampled; SAMPLED.len()] {
        let window = self.figures.window;
        [window.gets, window.scans, window.writes, window.applied]
    }
}
