//! The error of the program.

pub(crate) type Failure = Box<dyn std::error::Error>;
