//! What goes wrong: whatever one of the systems says, or the operating system.

pub(crate) use bench::Error;
