//! Replies that have not been sent yet.
//!
//! At [`FULL_BYTES`] the connection stops executing and reading until the client has read. Exception: a client that still sends while
//! its socket takes nothing may hold more, by [`Output::grow`], as far as `backlog` allows.
//!
//! A large value is read from the store in pieces as the client takes them, and nothing else is executed for the client meanwhile; a
//! client that may hold more has the pieces held like any reply. Nothing keeps a large value in place that long; if the value is
//! replaced before all of it was read from the store, the connection is closed, since the length has been sent.

use std::io::{self, ErrorKind, Read};
use std::mem;

use hikv::{Error, Store, Ticket, ValueReader};
use resp::{Protocol, Reply};

use crate::connections::buffers::{Buffers, KEPT_BYTES_MAX};
use crate::connections::held::Held;
use crate::connections::transport::Transport;

/// Unsent bytes that stop a connection's execution: several socket buffers' worth, few enough for ten thousand clients.
pub(crate) const FULL_BYTES: usize = 256 << 10;

/// A large value's piece: enough to make the system call cheap beside the copy.
const PIECE_BYTES_MAX: u64 = 256 << 10;

/// An output that grows gets so large a part of itself at least, so that a long one is seldom moved.
const GROWTH_PART: usize = 8;

/// What one connection may send before others get their turn.
const TURN_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// The bytes before it have been sent.
    sent: usize,
    /// Bytes sent since they were last counted.
    sent_bytes: u64,
    /// Which of the bytes may not be sent yet.
    held: Held,
    /// The value that follows the bytes.
    value: Option<StreamedValue>,
    /// Messages that came while a value was being sent, and what they wait for.
    pushed: Vec<u8>,
    pushed_ticket: Ticket,
    /// What [`Output::grow`] has allowed beyond [`FULL_BYTES`].
    more_bytes: usize,
    /// The socket takes more, as far as is known.
    pub(crate) writable: bool,
}

struct StreamedValue {
    reader: ValueReader,
    missing_bytes: u64,
}

impl Output {
    /// Takes a buffer of the loop's for a turn, unless an own one holds unsent replies.
    pub(crate) fn borrow(&mut self, buffers: &mut Buffers) {
        if self.bytes.capacity() == 0 {
            self.bytes = buffers.outputs.pop().unwrap_or_default();
        }
    }

    /// Gives it back after a turn if all was sent.
    pub(crate) fn give_back(&mut self, buffers: &mut Buffers) {
        if self.unsent().is_empty() {
            self.sent = 0;
            buffers.keep_output(mem::take(&mut self.bytes));
        }
    }

    /// Where replies are written; not after [`Output::stream`] until that value has been sent.
    pub(crate) fn reply(&mut self, protocol: Protocol) -> Reply<'_> {
        debug_assert!(self.value.is_none(), "a reply would overtake a value");
        Reply::new(&mut self.bytes, protocol)
    }

    /// Replies with a value that is read as it is sent.
    pub(crate) fn stream(&mut self, reader: ValueReader) {
        let missing_bytes = reader.len_bytes();
        self.reply(Protocol::default()).bulk_header(missing_bytes);
        self.value = Some(StreamedValue { reader, missing_bytes });
    }

    /// Adds something whole, a message or a reply, to be sent when `ticket` is durable.
    pub(crate) fn push(&mut self, message: [&[u8]; 2], ticket: Ticket) {
        if self.value.is_none() {
            let start = self.bytes.len();
            message.iter().for_each(|part| self.bytes.extend_from_slice(part));
            self.hold(start, ticket);
        } else {
            message.iter().for_each(|part| self.pushed.extend_from_slice(part));
            self.pushed_ticket = self.pushed_ticket.merge(ticket);
        }
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.pushed.capacity()
    }

    /// What was written, of an output that nothing was streamed to.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Where the next reply will begin.
    pub(crate) fn end(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets what was written from `start` on, an earlier [`Output::end`] since which nothing was sent.
    pub(crate) fn take_back(&mut self, start: usize) {
        self.bytes.truncate(start);
        self.value = None;
    }

    /// What was written from `start` on, an earlier [`Output::end`], is sent when `ticket` is durable.
    pub(crate) fn hold(&mut self, start: usize, ticket: Ticket) {
        if ticket != Ticket::default() && start < self.bytes.len() {
            self.held.add(start, ticket);
        }
    }

    /// Messages behind a value count from when they came, not from when the value has been sent: then nobody would ask.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty() || self.pushed_ticket != Ticket::default()
    }

    /// What has to be durable until nothing is held.
    pub(crate) fn held_ticket(&self) -> Ticket {
        self.held.ticket().merge(self.pushed_ticket)
    }

    /// Lets go what is durable, and says whether that was anything.
    pub(crate) fn release(&mut self, store: &Store) -> Result<bool, Error> {
        if store.is_durable(self.pushed_ticket)? {
            self.pushed_ticket = Ticket::default();
        }
        self.held.release(store)
    }

    /// Bytes that wait, messages among them.
    pub(crate) fn len_bytes(&self) -> usize {
        self.unsent().len() + self.pushed.len()
    }

    /// Bytes sent since this was last called.
    pub(crate) fn take_count(&mut self) -> u64 {
        mem::take(&mut self.sent_bytes)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.value.is_some() || self.unsent().len() >= FULL_BYTES + self.more_bytes
    }

    /// Lets as much more be written as an output may have at first, pieces of a value that is being sent among it.
    pub(crate) fn grow(&mut self) -> io::Result<()> {
        self.more_bytes = self.unsent().len();
        let step_bytes = FULL_BYTES.max(self.bytes.len() / GROWTH_PART);
        self.bytes.reserve_exact(step_bytes);
        while self.value.is_some() && self.unsent().len() < FULL_BYTES + self.more_bytes {
            self.load_piece()?;
        }
        Ok(())
    }

    /// Memory that a backlog takes: of an output that has grown, or has one long reply.
    pub(crate) fn backlog_bytes(&self) -> usize {
        if self.len_bytes() > FULL_BYTES { self.capacity_bytes() } else { 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.value.is_none() && self.unsent().is_empty()
    }

    /// Sends until nothing is left, the socket takes no more, or others should have a turn.
    pub(crate) fn send(&mut self, transport: &mut Transport) -> io::Result<()> {
        let mut turn_bytes = 0;
        self.more_bytes = 0;
        while self.writable && turn_bytes < TURN_BYTES_MAX && self.load()? {
            match transport.write(self.sendable()) {
                Ok(sent_bytes) => {
                    self.sent += sent_bytes;
                    turn_bytes += sent_bytes;
                    self.sent_bytes += sent_bytes as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.flush(transport)
    }

    /// Moves everything that waits to the end of `bytes`.
    #[cfg(feature = "in-process")]
    pub(crate) fn drain_to(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        while self.load()? {
            bytes.extend_from_slice(self.unsent());
            self.sent = self.bytes.len();
        }
        Ok(())
    }

    fn flush(&mut self, transport: &mut Transport) -> io::Result<()> {
        match transport.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            outcome => self.writable &= outcome.is_ok(),
        }
        Ok(())
    }

    fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    fn sendable(&self) -> &[u8] {
        &self.bytes[self.sent..self.held.start().unwrap_or(self.bytes.len())]
    }

    /// Whether there is anything that the socket would be given.
    pub(crate) fn has_sendable(&self) -> bool {
        !self.sendable().is_empty() || self.value.is_some() && self.held.is_empty()
    }

    /// Makes sure that there are bytes to send, if anything is left that may be.
    fn load(&mut self) -> io::Result<bool> {
        // What is left is moved by as much as was sent at the most.
        if self.unsent().is_empty() || self.sent >= FULL_BYTES.max(self.unsent().len()) {
            self.forget_sent();
        }
        if self.bytes.is_empty() {
            self.load_piece()?;
        }
        Ok(!self.sendable().is_empty())
    }

    fn forget_sent(&mut self) {
        self.bytes.drain(..self.sent);
        self.held.move_down(self.sent);
        self.sent = 0;
        if self.bytes.capacity() > KEPT_BYTES_MAX.max(4 * self.bytes.len()) {
            self.bytes.shrink_to(2 * self.bytes.len());
        }
    }

    /// Reads the next piece of the value, behind what waits. A value that fails midway, or ends early, fails the connection: its length
    /// has been sent.
    fn load_piece(&mut self) -> io::Result<()> {
        let Some(value) = &mut self.value else { return Ok(()) };
        let (piece_bytes, start) = (value.missing_bytes.min(PIECE_BYTES_MAX), self.bytes.len());
        self.bytes.resize(start + piece_bytes as usize, 0);
        value.reader.read_exact(&mut self.bytes[start..])?;
        value.missing_bytes -= piece_bytes;
        if value.missing_bytes == 0 {
            self.value = None;
            self.reply(Protocol::default()).bulk_end();
            let start = self.bytes.len();
            self.bytes.append(&mut self.pushed);
            let ticket = mem::take(&mut self.pushed_ticket);
            self.hold(start, ticket);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ticket for what is not durable yet; none where the file system for temporary files gives no journal.
    fn ticket(store: &Store) -> Option<Ticket> {
        let (written, ticket) = store.deferred(|store| store.put("k", "v"));
        written.expect("the store takes it");
        (ticket != Ticket::default()).then_some(ticket)
    }

    #[test]
    fn message_after_unsent_value_is_held() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(dir.path()).expect("it opens");
        store.put("value", vec![b'x'; 3 * PIECE_BYTES_MAX as usize]).expect("the store takes it");
        let Some(ticket) = ticket(&store) else { return };
        let mut output = Output { writable: true, ..Output::default() };
        output.stream(store.reader("value").expect("it is read").expect("it is there"));
        output.push([b"mess", b"age"], ticket);
        assert!(output.holds() && output.held_ticket() == ticket);
        while output.value.is_some() {
            assert!(output.holds() && output.has_sendable(), "the value waits for nothing");
            assert!(output.load().expect("it is read"));
            output.sent = output.held.start().unwrap_or(output.bytes.len());
        }
        assert!(!output.is_empty() && !output.has_sendable() && output.held_ticket() == ticket);
        store.wait(ticket).expect("it becomes durable");
        assert_eq!(output.release(&store).ok(), Some(true));
        assert!(!output.holds() && output.has_sendable());
        assert_eq!(output.sendable(), b"message");
    }

    #[test]
    fn message_after_unsent_value_is_released() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(dir.path()).expect("it opens");
        store.put("value", "x").expect("the store takes it");
        let Some(ticket) = ticket(&store) else { return };
        let mut output = Output { writable: true, ..Output::default() };
        output.stream(store.reader("value").expect("it is read").expect("it is there"));
        output.push([b"mess", b"age"], ticket);
        store.wait(ticket).expect("it becomes durable");
        output.release(&store).expect("the store is healthy");
        assert!(!output.holds());
        output.sent = output.bytes.len();
        assert!(output.load().expect("it is read"));
        assert_eq!(output.sendable(), b"x\r\nmessage");
    }
}
