//! Violations of a journal's guarantees.

use std::fmt;

use journal::JournalError;

/// A violation.
#[derive(Debug)]
pub(crate) enum Wrong {
    DoesNotOpen(JournalError),
    /// The time and the difference.
    Contents(String),
    Health(&'static str),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::DoesNotOpen(error) => write!(f, "it does not open: {error}"),
            Wrong::Contents(which) => write!(f, "illegal contents {which}"),
            Wrong::Health(what) => f.write_str(what),
        }
    }
}
