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
    pub(crate) fn send(&mut self, carrier: &mut impl Carrier) -> io::Result<bool> {
        let end = self.held.front().map_or(self.len(), |(start, _)| *start);
        if self.sent < self.staged_bytes {
            let told = end.min(self.staged_bytes);
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
mod tests {
    use hikv::{Durability, Options};

    use super::*;

    /// Takes so much at a time, and then no more for now.
    struct Slow {
        has_room: bool,
    }

    impl Carrier for Slow {}

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
                output.put(&mut socket, &[7; 64 << 10]);
            }
            assert!(!output.send(&mut socket).expect("it takes some"));
            assert!(output.len() <= limits::OUTPUT_BYTES_MAX + (64 << 10), "{} bytes", output.len());
        }
    }

    /// Memory with so much room, and what the peer was told of it.
    struct Staging {
        room_bytes: usize,
        staged: Vec<u8>,
        told: Vec<u8>,
    }

    impl Carrier for Staging {
        fn stage(&mut self, bytes: &[u8]) -> bool {
            let has_room = self.told.len() + self.staged.len() + bytes.len() <= self.room_bytes;
            if has_room {
                self.staged.extend_from_slice(bytes);
            }
            has_room
        }

        fn tell(&mut self, len_bytes: usize) {
            self.told.extend(self.staged.drain(..len_bytes));
        }
    }

    impl Write for Staging {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            assert!(self.staged.is_empty(), "what was staged comes first");
            self.told.extend_from_slice(&bytes[..bytes.len().min(4)]);
            Ok(bytes.len().min(4))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Wherever the room ends.
    #[test]
    fn what_is_not_durable_is_not_sent_nor_what_follows() {
        // A journal, if the directory lies on a disk; where writes are durable at once there is nothing to hold.
        let dir = tempfile::tempdir_in(".").expect("a directory");
        let store = Options::new().durability(Durability::Power).open(dir.path());
        let Ok(store) = store else { return };
        for room_bytes in [0, 6, 10, 16, 18, 21, 64] {
            let (written, ticket) = store.deferred(|store| store.put("k", "v"));
            written.expect("it is written");
            let mut carrier = Staging { room_bytes, staged: Vec::new(), told: Vec::new() };
            let mut output = Output::default();
            output.put(&mut carrier, b"before");
            output.put(&mut carrier, b"completion");
            output.hold(6, ticket);
            output.put(&mut carrier, b"after");
            output.send(&mut carrier).expect("it takes all");
            let is_held = ticket != Ticket::default();
            assert_eq!(carrier.told == b"before", is_held, "{:?}", carrier.told);
            assert_eq!(output.ticket().is_some(), is_held);
            output.put(&mut carrier, b"!");
            store.wait(ticket).expect("it becomes durable");
            output.release(&store).expect("the disk is well");
            assert!(output.send(&mut carrier).expect("it takes all"));
            assert_eq!(carrier.told, b"beforecompletionafter!", "room for {room_bytes}");
            assert!(output.is_empty() && output.ticket().is_none());
        }
    }
}
