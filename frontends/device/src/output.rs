//! A connection's output. Parts of the output wait until the reported data is durable; later parts queue behind these,
//! so completions keep their order.
//!
//! PDUs for a shared-memory host are staged in that memory immediately if there is space, and published when they may
//! be sent. So each value is copied once from the store, while the next values are being fetched from memory. PDUs
//! without space wait here, and all further ones queue behind.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};

use hikv::{Error, Store, Ticket};
use nvme::Sink;

use crate::limits;
use crate::socket::Socket;

/// The destination of output.
pub(crate) trait Carrier: Write {
    /// Writes all of the bytes to the peer's memory without publishing them; returns false if there is no such memory,
    /// or no space.
    fn stage(&mut self, _bytes: &[u8]) -> bool {
        false
    }

    /// Publishes `len_bytes` staged bytes to the peer.
    fn publish(&mut self, _len_bytes: usize) {}
}

/// Positions count from the first byte that was not removed: first the staged bytes, then `bytes`.
#[derive(Default)]
pub(crate) struct Output {
    staged_bytes: usize,
    bytes: Vec<u8>,
    /// The bytes before it were sent.
    sent: usize,
    /// Held parts: each from its position to the next one's, or to the end, with its ticket.
    held: VecDeque<(usize, Ticket)>,
}

impl Output {
    /// Returns a writer of PDUs.
    pub(crate) fn to<'c>(&'c mut self, socket: &'c mut Socket) -> Outlet<'c> {
        Outlet { output: self, socket }
    }

    fn put(&mut self, carrier: &mut impl Carrier, bytes: &[u8]) {
        if self.bytes.is_empty() && carrier.stage(bytes) {
            self.staged_bytes += bytes.len();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.staged_bytes + self.bytes.len()
    }

    /// Returns whether execution stops until some of it is sent.
    pub(crate) fn is_full(&self) -> bool {
        self.len() - self.sent >= limits::OUTPUT_BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == self.sent
    }

    /// Holds the bytes from `start` on until `ticket` is durable.
    pub(crate) fn hold(&mut self, start: usize, ticket: Ticket) {
        if start < self.len() && ticket != Ticket::default() {
            self.held.push_back((start, ticket));
        }
    }

    /// Returns the ticket that must be durable before nothing is held; `None` if nothing is.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.held.iter().map(|(_, ticket)| *ticket).reduce(Ticket::merge)
    }

    /// Releases the durable parts.
    ///
    /// # Errors
    /// Some data will never be durable, and must not be reported.
    pub(crate) fn release(&mut self, store: &Store) -> Result<(), Error> {
        while let Some((_, ticket)) = self.held.front()
            && store.is_durable(*ticket)?
        {
            self.held.pop_front();
        }
        Ok(())
    }

    /// Sends the released bytes; returns false if the peer accepts no more for now.
    pub(crate) fn send(&mut self, carrier: &mut impl Carrier) -> io::Result<bool> {
        let end = self.held.front().map_or(self.len(), |(start, _)| *start);
        let published = end.min(self.staged_bytes);
        if self.sent < published {
            carrier.publish(published - self.sent);
            self.sent = published;
        }
        while self.sent < end {
            match carrier.write(&self.bytes[self.sent - self.staged_bytes..end - self.staged_bytes]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len_bytes) => self.sent += len_bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Also for a peer that is always slightly behind, whose output is never completely sent.
                    self.forget_sent();
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.forget_sent();
        Ok(true)
    }

    /// Frees the capacity of a large value.
    fn forget_sent(&mut self) {
        let staged_bytes = self.sent.min(self.staged_bytes);
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(limits::OUTPUT_BYTES_MAX);
        } else {
            self.bytes.drain(..self.sent - staged_bytes);
            self.held.iter_mut().for_each(|(start, _)| *start -= self.sent);
        }
        self.staged_bytes -= staged_bytes;
        self.sent = 0;
    }
}

/// An output and its destination.
pub(crate) struct Outlet<'c> {
    output: &'c mut Output,
    socket: &'c mut Socket,
}

impl Outlet<'_> {
    pub(crate) fn by_ref(&mut self) -> Outlet<'_> {
        Outlet { output: self.output, socket: self.socket }
    }

    /// Returns the number of bytes that were written and not removed.
    pub(crate) fn len(&self) -> usize {
        self.output.len()
    }
}

impl Sink for Outlet<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.output.put(self.socket, bytes);
    }
}

#[cfg(test)]
pub(crate) mod tests;
