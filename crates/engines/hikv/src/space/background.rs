//! How far the background's work is.

use index::partitioned_hash::Cursor;
use pmem::Offset;

use super::reaper::Round;

/// The state of the work; its holder does the work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pub(super) sweep: Cursor,
    /// Some entry that names no proper place. A store that has one never reuses space below the mark.
    pub(super) misplaced: Option<Offset>,
    /// The reaper's, while one runs.
    pub(super) round: Option<Round>,
}
