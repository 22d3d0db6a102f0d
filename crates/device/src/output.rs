//! What is to be sent on a connection. Some of it waits until what is told is durable; what follows waits, too, so completions
//! keep their order.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};

use hikv::{Error, Store, Ticket};

use crate::limits;

#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// The bytes before it have been sent.
    sent: usize,
    /// Parts that wait: from where on, to the next one's start or the end, and for what.
    held: VecDeque<(usize, Ticket)>,
}

impl Output {
    /// Where PDUs are written.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Nothing more is carried out until some of it is sent.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() - self.sent >= limits::OUTPUT_BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == self.sent
    }

    /// What was written from `start` on waits for `ticket`.
    pub(crate) fn hold(&mut self, start: usize, ticket: Ticket) {
        if start < self.bytes.len() && ticket != Ticket::default() {
            self.held.push_back((start, ticket));
        }
    }

    /// What has to be durable until nothing waits; `None` if nothing does.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.held.iter().map(|(_, ticket)| *ticket).reduce(Ticket::and)
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
    pub(crate) fn send(&mut self, socket: &mut impl Write) -> io::Result<bool> {
        let end = self.held.front().map_or(self.bytes.len(), |(start, _)| *start);
        while self.sent < end {
            match socket.write(&self.bytes[self.sent..end]) {
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
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(limits::OUTPUT_BYTES_MAX);
        } else {
            self.bytes.drain(..self.sent);
            self.held.iter_mut().for_each(|(start, _)| *start -= self.sent);
        }
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use hikv::{Durability, Options};

    use super::*;

    /// Takes so much at a time, and then no more for now.
    struct Slow {
        has_room: bool,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.has_room = !self.has_room;
            if self.has_room { Err(ErrorKind::WouldBlock.into()) } else { Ok(bytes.len().min(100 << 10)) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_peer_that_is_always_a_little_behind_costs_no_more_than_one_that_has_stopped() {
        let (mut output, mut socket) = (Output::default(), Slow { has_room: true });
        for _ in 0..1000 {
            while !output.is_full() {
                output.bytes().extend_from_slice(&[7; 64 << 10]);
            }
            assert!(!output.send(&mut socket).expect("it takes some"));
            assert!(output.len() <= limits::OUTPUT_BYTES_MAX + (64 << 10), "{} bytes", output.len());
        }
    }

    #[test]
    fn what_is_not_durable_is_not_sent_nor_what_follows() {
        // A journal, if the directory lies on a disk; where writes are durable at once there is nothing to hold.
        let dir = tempfile::tempdir_in(".").expect("a directory");
        let store = Options::new().durability(Durability::Power).open(dir.path());
        let Ok(store) = store else { return };
        let (written, ticket) = store.deferred(|store| store.put("k", "v"));
        written.expect("it is written");
        let (mut output, mut socket) = (Output::default(), Vec::new());
        output.bytes().extend_from_slice(b"before");
        output.bytes().extend_from_slice(b"completion");
        output.hold(6, ticket);
        output.bytes().extend_from_slice(b"after");
        output.send(&mut socket).expect("it takes all");
        let is_held = ticket != Ticket::default();
        assert_eq!(socket == b"before", is_held, "{socket:?}");
        assert_eq!(output.ticket().is_some(), is_held);
        store.wait(ticket).expect("it becomes durable");
        output.release(&store).expect("the disk is well");
        assert!(output.send(&mut socket).expect("it takes all"));
        assert_eq!(socket, b"beforecompletionafter");
        assert!(output.is_empty() && output.ticket().is_none());
    }
}
