//! How far the background's work is.

use index::segmented::Sweep;

use super::reaper::Round;

/// The state of the work; its holder does the work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pub(super) sweep: Sweep,
    /// The reaper's, while one runs.
    pub(super) round: Option<Round>,
}
