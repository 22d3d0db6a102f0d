//! A request that runs in the background.

use std::time::Instant;

use command_table::Entry;

/// The thread that executes a background job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JobThread {
    Shared,
    /// Its own thread, which also runs while a command has exclusive access.
    Own,
}

/// A request that runs in the background while its client waits.
pub(crate) struct BackgroundJob {
    pub(crate) thread: JobThread,
    pub(crate) entry: Entry,
    /// Its index in the client's pipeline.
    pub(crate) number: usize,
    /// When the poller reported it.
    pub(crate) woke: Instant,
}
