//! How far a background step is.

use std::time::Duration;

/// What a background step has left to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// There is more.
    More,
    /// There is more, which can wait for so long, that others get their turn.
    Rest(Duration),
    /// Nothing, until the next write.
    Idle,
}

impl Progress {
    /// More after so long, or nothing.
    #[must_use]
    pub fn resting(rest: Option<Duration>) -> Progress {
        rest.map_or(Progress::Idle, Progress::Rest)
    }

    /// What is left of two kinds of work, the second of which is tried only where the first has no step to take now.
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
