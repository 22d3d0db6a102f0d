//! What goes wrong: whatever one of the systems says, or the operating system.

/// Any error, to be shown.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
