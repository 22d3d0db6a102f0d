//! Any error of a system or of the operating system.

pub(crate) use bench::Error;
