//! The tracking mode of a client (`CLIENT TRACKING`).

/// The set of keys that a client tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Keys that it reads.
    Reads,
    /// Keys read by the request after `CLIENT CACHING YES`.
    OptIn,
    /// Keys that it reads, except by the request after `CLIENT CACHING NO`.
    OptOut,
    /// All keys with one of the client's prefixes, whether read or not.
    Broadcast,
}

/// One client's tracking mode and options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tracks {
    pub(crate) mode: Mode,
    /// Its own changes are not reported to it.
    pub(crate) skips_own: bool,
    /// The ID of the client that receives the messages; `None` for this client.
    pub(crate) redirect: Option<u64>,
    /// The previous request was `CLIENT CACHING`.
    pub(crate) has_caching: bool,
}

impl Tracks {
    /// Returns whether the keys that the next request reads are tracked.
    pub(crate) fn is_tracking(&self) -> bool {
        match self.mode {
            Mode::Reads => true,
            Mode::OptIn => self.has_caching,
            Mode::OptOut => !self.has_caching,
            Mode::Broadcast => false,
        }
    }
}
