//! The way in which a client tracks keys (`CLIENT TRACKING`).

/// The keys whose changes a client wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Of those that it reads.
    Reads,
    /// Of those that it reads by the request after `CLIENT CACHING YES`.
    OptIn,
    /// Of those that it reads, except by the request after `CLIENT CACHING NO`.
    OptOut,
    /// Of all that begin with a prefix of the client, read or not.
    Broadcast,
}

/// The request of one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tracks {
    pub(crate) mode: Mode,
    /// Its own changes are not reported to it.
    pub(crate) skips_own: bool,
    /// The number of the client that receives the messages; this client itself, if there is none.
    pub(crate) redirect: Option<u64>,
    /// `CLIENT CACHING` came before the request that is next.
    pub(crate) has_said_caching: bool,
}

impl Tracks {
    /// True if the keys that the next request reads are to be remembered.
    pub(crate) fn remembers(&self) -> bool {
        match self.mode {
            Mode::Reads => true,
            Mode::OptIn => self.has_said_caching,
            Mode::OptOut => !self.has_said_caching,
            Mode::Broadcast => false,
        }
    }
}
