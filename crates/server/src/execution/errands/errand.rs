//! A request whose client waits for it.

use std::time::Instant;

use crate::table::Entry;

/// How an errand is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Queued,
    /// On a thread of its own, and beside a command that is alone.
    Apart,
}

/// A request that its client waits for.
pub(crate) struct Errand {
    pub(crate) way: Way,
    pub(crate) entry: Entry,
    /// Its number in the client's pipeline.
    pub(crate) number: usize,
    /// When the poller reported it.
    pub(crate) woke: Instant,
}
