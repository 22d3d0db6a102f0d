//! Where a client is served.

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) loop_index: usize,
    /// Its number among the loop's connections, which a later client may get as well.
    pub(crate) key: usize,
    pub(crate) client_id: u64,
}
