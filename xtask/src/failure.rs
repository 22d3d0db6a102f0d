//! Why a check did not pass.

/// As a sentence.
pub(crate) type Failure = String;
