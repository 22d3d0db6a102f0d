//! The result of a background step.

use std::time::Duration;

/// The work that is left after a background step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// There is more work.
    More,
    /// There is more work, which can wait this long so that other threads run.
    Rest(Duration),
    /// There is no work until the next write.
    Idle,
}

impl Progress {
    /// Returns more work after `rest`, or none.
    #[must_use]
    pub fn resting(rest: Option<Duration>) -> Progress {
        rest.map_or(Progress::Idle, Progress::Rest)
    }

    /// Returns the work left of two kinds. Tries the second only if the first has no step to take now.
    ///
    /// # Errors
    /// Those of the second.
    pub fn or_else<E>(self, second: impl FnOnce() -> Result<Progress, E>) -> Result<Progress, E> {
        Ok(match (self, if self == Progress::More { Progress::More } else { second()? }) {
            (Progress::More, _) | (_, Progress::More) => Progress::More,
            (Progress::Rest(one), Progress::Rest(other)) => Progress::Rest(one.min(other)),
            (Progress::Idle, other) => other,
            (one, Progress::Idle) => one,
        })
    }
}
