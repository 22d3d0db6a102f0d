//! The progress of the background's work.

use index::segmented::Sweep;

use crate::reaper::Round;

/// The state of the work; the thread that holds it does the work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pub(super) sweep: Sweep,
    /// The reaper's round, while one runs.
    pub(crate) round: Option<Round>,
}
