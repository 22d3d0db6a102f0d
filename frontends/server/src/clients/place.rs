//! The event loop and connection of a client.

/// The event loop and connection of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) loop_index: usize,
    /// Its index among the loop's connections, which may be reused by a later client.
    pub(crate) key: usize,
    pub(crate) client_id: u64,
}
