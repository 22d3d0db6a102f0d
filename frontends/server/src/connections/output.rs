//! Replies that have not been sent yet.
//!
//! At [`FULL_BYTES`] the connection stops executing and reading until the client has read. Exception: a client that
//! sends while its socket accepts nothing may hold more, by [`Output::grow`], as far as `backlog` allows.
//!
//! A large value is read from the store in pieces as the client reads, and nothing else is executed for the client
//! until the value is sent. A client that may hold more has the pieces held like any other reply. A large value is not
//! pinned in the store for that time; if the value is replaced before all of it was read, the connection is closed,
//! because the length has already been sent.

use std::io::{self, ErrorKind, Read};
use std::mem;

use hikv::{Error, Store, Ticket, ValueReader};
use resp::{Protocol, Reply};

use crate::connections::buffers::{Buffers, KEPT_BYTES_MAX};
use crate::connections::held::Held;
use crate::connections::transport::Transport;

/// Unsent bytes at which a connection stops executing: several socket buffers, and little enough for ten thousand
/// clients.
pub(crate) const FULL_BYTES: usize = 256 << 10;

/// The size of a large value's piece: the system call is cheap compared to the copy.
const PIECE_BYTES_MAX: u64 = 256 << 10;

/// A growing output grows by at least this fraction of its length, so that a long one is seldom moved.
const GROWTH_PART: usize = 8;

/// Maximum bytes that one connection may send before the others get their turn.
const TURN_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// The bytes before it have been sent.
    sent: usize,
    /// Bytes sent since they were last counted.
    sent_bytes: u64,
    /// The bytes that may not be sent yet.
    held: Held,
    /// The value that follows the bytes.
    value: Option<StreamedValue>,
    /// The last reply is an array with more values to follow.
    is_within_reply: bool,
    /// Messages that arrived while a reply was incomplete, and their ticket.
    pushed: Vec<u8>,
    pushed_ticket: Ticket,
    /// Bytes of the messages added since nothing was unsent.
    message_bytes: usize,
    /// Bytes that [`Output::grow`] has allowed in addition to [`FULL_BYTES`].
    more_bytes: usize,
    /// The socket may accept more.
    pub(crate) writable: bool,
}

struct StreamedValue {
    reader: ValueReader,
    missing_bytes: u64,
}

impl Output {
    /// Borrows a buffer of the loop for a turn, unless its own buffer holds unsent replies.
    pub(crate) fn borrow(&mut self, buffers: &mut Buffers) {
        if self.bytes.capacity() == 0 {
            self.bytes = buffers.outputs.pop().unwrap_or_default();
        }
    }

    /// Returns the buffer after a turn if everything was sent.
    pub(crate) fn return_buffer(&mut self, buffers: &mut Buffers) {
        if self.unsent().is_empty() {
            self.sent = 0;
            self.message_bytes = self.pushed.len();
            buffers.keep_output(mem::take(&mut self.bytes));
        }
    }

    /// Returns the writer of replies. Not valid after [`Output::stream`] until that value has been sent.
    pub(crate) fn reply(&mut self, protocol: Protocol) -> Reply<'_> {
        debug_assert!(self.value.is_none(), "a reply would overtake a value");
        Reply::new(&mut self.bytes, protocol)
    }

    /// Replies with a value that is read while it is sent.
    pub(crate) fn stream(&mut self, reader: ValueReader) {
        let missing_bytes = reader.len_bytes();
        self.reply(Protocol::default()).bulk_header(missing_bytes);
        self.value = Some(StreamedValue { reader, missing_bytes });
    }

    /// Adds a complete reply, to be sent when `ticket` is durable.
    pub(crate) fn add_reply(&mut self, reply: &[u8], ticket: Ticket) {
        debug_assert!(self.value.is_none() && !self.is_within_reply, "a reply would overtake a reply");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(reply);
        self.hold(start, ticket);
    }

    /// Adds a complete message, to be sent when `ticket` is durable.
    pub(crate) fn push(&mut self, message: [&[u8]; 2], ticket: Ticket) {
        self.message_bytes += message.iter().map(|part| part.len()).sum::<usize>();
        if self.value.is_none() && !self.is_within_reply {
            let start = self.bytes.len();
            message.iter().for_each(|part| self.bytes.extend_from_slice(part));
            self.hold(start, ticket);
        } else {
            message.iter().for_each(|part| self.pushed.extend_from_slice(part));
            self.pushed_ticket = self.pushed_ticket.merge(ticket);
        }
    }

    /// Records whether the last reply is incomplete. A message is sent before or after a reply, never inside it.
    pub(crate) fn set_within_reply(&mut self, is_within_reply: bool) {
        self.is_within_reply = is_within_reply;
        self.append_pushed();
    }

    /// Appends the messages that have waited for the end of a reply, unless a reply is still incomplete.
    fn append_pushed(&mut self) {
        if self.value.is_none() && !self.is_within_reply && !self.pushed.is_empty() {
            let start = self.bytes.len();
            self.bytes.append(&mut self.pushed);
            let ticket = mem::take(&mut self.pushed_ticket);
            self.hold(start, ticket);
        }
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.pushed.capacity()
    }

    /// Returns the bytes of an output that streams no value.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns where the next reply begins.
    pub(crate) fn end(&self) -> usize {
        self.bytes.len()
    }

    /// Discards the bytes from `start` on, which is an earlier [`Output::end`]; nothing must have been sent since.
    pub(crate) fn take_back(&mut self, start: usize) {
        self.bytes.truncate(start);
        self.value = None;
    }

    /// Holds the bytes from `start` on, which is an earlier [`Output::end`], until `ticket` is durable.
    pub(crate) fn hold(&mut self, start: usize, ticket: Ticket) {
        if ticket != Ticket::default() && start < self.bytes.len() {
            self.held.add(start, ticket);
        }
    }

    /// Returns whether replies or messages are held. Messages behind a streamed value count from their arrival: if they
    /// counted only after the value was sent, no loop would request their ticket.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty() || self.pushed_ticket != Ticket::default()
    }

    /// Returns the ticket that must be durable before nothing is held.
    pub(crate) fn held_ticket(&self) -> Ticket {
        self.held.ticket().merge(self.pushed_ticket)
    }

    /// Releases durable bytes, and returns whether there were any.
    pub(crate) fn release(&mut self, store: &Store) -> Result<bool, Error> {
        if store.is_durable(self.pushed_ticket)? {
            self.pushed_ticket = Ticket::default();
        }
        self.held.release(store)
    }

    /// Returns the number of waiting bytes, messages included.
    pub(crate) fn len_bytes(&self) -> usize {
        self.unsent().len() + self.pushed.len()
    }

    /// Returns the number of waiting bytes that are messages, or more if the client has not read everything for long.
    pub(crate) fn message_bytes(&self) -> usize {
        self.message_bytes.min(self.len_bytes())
    }

    /// Returns the bytes sent since the last call.
    pub(crate) fn take_count(&mut self) -> u64 {
        mem::take(&mut self.sent_bytes)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.value.is_some() || self.unsent().len() >= FULL_BYTES + self.more_bytes
    }

    /// Allows another [`FULL_BYTES`] to be held, pieces of a streamed value included.
    pub(crate) fn grow(&mut self) -> io::Result<()> {
        self.more_bytes = self.unsent().len();
        let step_bytes = FULL_BYTES.max(self.bytes.len() / GROWTH_PART);
        self.bytes.reserve_exact(step_bytes);
        while self.value.is_some() && self.unsent().len() < FULL_BYTES + self.more_bytes {
            self.load_piece()?;
        }
        Ok(())
    }

    /// Returns the memory that counts as backlog: of an output that has grown, or holds one long reply.
    pub(crate) fn backlog_bytes(&self) -> usize {
        if self.len_bytes() > FULL_BYTES { self.capacity_bytes() } else { 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.value.is_none() && self.unsent().is_empty()
    }

    /// Sends until nothing is left, the socket accepts no more, or the turn's limit is reached.
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

    /// Moves all waiting bytes to the end of `bytes`.
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

    /// Returns whether there are bytes to send now.
    pub(crate) fn has_sendable(&self) -> bool {
        !self.sendable().is_empty() || self.value.is_some() && self.held.is_empty()
    }

    /// Loads bytes to send, if any may be sent.
    fn load(&mut self) -> io::Result<bool> {
        // The bytes moved are at most as many as the bytes sent.
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

    /// Reads the value's next piece behind the waiting bytes. A value that fails or ends early closes the connection,
    /// because its length has been sent.
    fn load_piece(&mut self) -> io::Result<()> {
        let Some(value) = &mut self.value else { return Ok(()) };
        let (piece_bytes, start) = (value.missing_bytes.min(PIECE_BYTES_MAX), self.bytes.len());
        self.bytes.resize(start + piece_bytes as usize, 0);
        value.reader.read_exact(&mut self.bytes[start..])?;
        value.missing_bytes -= piece_bytes;
        if value.missing_bytes == 0 {
            self.value = None;
            self.reply(Protocol::default()).bulk_end();
            self.append_pushed();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a ticket that is not durable yet; `None` if the file system of temporary files supports no journal.
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
