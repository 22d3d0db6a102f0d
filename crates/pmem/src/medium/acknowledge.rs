//! When a caller is told that its write is durable.

use crate::{MediumError, Persist, Ticket, Waited};

/// Waiting for durability on a caller's behalf, or leaving it to the caller. Memory has no more than [`Persist::wait`]; a log's
/// writers may go on and wait for many writes at once.
pub trait Acknowledge: Persist {
    /// As [`Persist::wait`], unless the calling thread has undertaken to wait itself, and with what it then tells (a log's
    /// medium has a way to say so).
    ///
    /// # Errors
    /// As for [`Persist::wait`].
    #[inline(always)]
    fn acknowledge(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.wait(ticket).map(|()| Waited::Durable)
    }

    /// As [`Persist::wait`], but without waiting for a disk: for a caller that holds locks.
    ///
    /// # Errors
    /// As for [`Persist::wait`].
    #[inline(always)]
    fn acknowledge_now(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.wait(ticket).map(|()| Waited::Durable)
    }

    /// As [`Acknowledge::acknowledge`], for a caller that has written nothing, only read what others wrote. Where the medium has failed,
    /// an error for what is not durable: then there is nothing to wait for, and nothing to tell.
    ///
    /// # Errors
    /// As for [`Persist::wait`].
    #[inline(always)]
    fn acknowledge_met(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        if self.health().is_ok() { self.acknowledge(ticket) } else { self.acknowledge_now(ticket) }
    }

    /// When everything is durable that was published by callers which went on without waiting: for a reader that meets its effect
    /// elsewhere than in the entry itself. `None` where no reader can, since no
    /// caller goes on.
    #[inline(always)]
    fn deferred(&self) -> Option<Ticket> {
        None
    }
}
