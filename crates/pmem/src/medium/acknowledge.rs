//! The time at which a caller learns that its write is durable.

use crate::{MediumError, Persist, Ticket, Waited};

/// Waits for durability on a caller's behalf, or leaves the wait to the caller. On memory, this is
/// [`Persist::wait`]. A log's writers may continue, and wait once for many writes.
pub trait Acknowledge: Persist {
    /// Like [`Persist::wait`], unless the calling thread has promised to wait before it reports results (a log's
    /// medium has a way to record the promise).
    ///
    /// # Errors
    /// As for [`Persist::wait`].
    #[inline(always)]
    fn acknowledge(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.wait(ticket).map(|()| Waited::Durable)
    }

    /// Like [`Persist::wait`], but without waiting for a disk: for a caller that holds locks.
    ///
    /// # Errors
    /// As for [`Persist::wait`].
    #[inline(always)]
    fn acknowledge_now(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.wait(ticket).map(|()| Waited::Durable)
    }

    /// Like [`Acknowledge::acknowledge`], for a caller that has only read other threads' writes. If the medium has
    /// failed, returns an error for writes that are not durable: they never become durable, so the caller must not
    /// report them.
    ///
    /// # Errors
    /// As for [`Persist::wait`].
    #[inline(always)]
    fn acknowledge_met(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        if self.health().is_ok() { self.acknowledge(ticket) } else { self.acknowledge_now(ticket) }
    }

    /// Returns the point at which everything is durable that callers published without waiting, for a reader that
    /// sees its effect in other places than the entry itself. `None` if no caller continues without waiting.
    #[inline(always)]
    fn deferred(&self) -> Option<Ticket> {
        None
    }
}
