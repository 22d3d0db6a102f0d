//! What is to be sent on a connection. Some of it waits until what is told is durable; what follows waits, too, so completions
//! keep their order.
//!
//! PDUs for a host that shares memory are written to that memory at once, where there is room, and the host is told when the PDUs may be sent.
//! So each value is copied once, from the store, while the next values come from memory. PDUs without room wait here, and
//! all further ones behind those.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};

use hikv::{Error, Store, Ticket};
use nvme::Sink;

use crate::limits;
use crate::socket::Socket;

/// Where output goes.
pub(crate) trait Carrier: Write {
    /// Writes all of it to where the peer reads, and tells nobody; false if there is no such place, or no room.
    fn stage(&mut self, _bytes: &[u8]) -> bool {
        false
    }

    /// Tells the peer of so many bytes that were staged.
    fn tell(&mut self, _len_bytes: usize) {}
}

/// Places count from the first byte that was not forgotten: first what was staged, then `bytes`.
#[derive(Default)]
pub(crate) struct Output {
    staged_bytes: usize,
    bytes: Vec<u8>,
    /// What is before it was sent.
    sent: usize,
    /// Parts that wait: from where on, to the next one's start or the end, and for what.
    held: VecDeque<(usize, Ticket)>,
}

impl Output {
    /// Writes PDUs.
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

    /// Nothing more is carried out until some of it is sent.
    pub(crate) fn is_full(&self) -> bool {
        self.len() - self.sent >= limits::OUTPUT_BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == self.sent
    }

    /// What was written from `start` on waits for `ticket`.
    pub(crate) fn hold(&mut self, start: usize, ticket: Ticket) {
        if start < self.len() && ticket != Ticket::default() {
            self.held.push_back((start, ticket));
        }
    }

    /// What has to be durable until nothing waits; `None` if nothing does.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.held.iter().map(|(_, ticket)| *ticket).reduce(Ticket::merge)
    }

    /// Lets go what is durable now.
    ///
    /// # Errors
    /// Some of it will never be, and may not be told.
    pub(crate) fn release(&mut self, store: &Store) -> Result<(), Error> {
        while let Some((_, ticket)) = self.held.front()
            && store.is_durable(*ticket)?
        {
            self.held.pop_front();
        }
        Ok(())
    }

    /// Sends what may be sent; false if the peer takes no more for now.
    pub(crate) fn send(&mut self, carrier: &mut impl Carrier) -> io::Result<bool> {
        let end = self.held.front().map_or(self.len(), |(start, _)| *start);
        let told = end.min(self.staged_bytes);
        if self.sent < told {
            carrier.tell(told - self.sent);
            self.sent = told;
        }
        while self.sent < end {
            match carrier.write(&self.bytes[self.sent - self.staged_bytes..end - self.staged_bytes]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len_bytes) => self.sent += len_bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Also of a peer that is always a little behind, whose output is never all sent.
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

    /// Room of a large value is given back.
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

/// An output, and where it goes.
pub(crate) struct Outlet<'c> {
    output: &'c mut Output,
    socket: &'c mut Socket,
}

impl Outlet<'_> {
    pub(crate) fn by_ref(&mut self) -> Outlet<'_> {
        Outlet { output: self.output, socket: self.socket }
    }

    /// Bytes that were written and not forgotten.
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
