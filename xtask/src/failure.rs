//! The error type of all checks.

/// An error message: one sentence.
pub(crate) type Failure = String;
