//! Messages between event loops.
//!
//! Letters wait in a loop's box until it has time. Messages among them may be large and many, so the bytes of all that wait are
//! counted ([`Mail`]): while there are too many, clients whose requests would add more are postponed until loops have taken
//! messages out. No message is dropped for that, and no loop waits: each takes its letters whatever the others do.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::{Poll, Token, Waker};
use resp::{Protocol, Reply};

use crate::clients::session::Session;
use crate::connections::transport::Transport;
use crate::execution::errands::Done;
use crate::execution::pause;
use crate::shared::{Admission, Shared};
use crate::table::Entry;

/// Messages that may wait in all boxes together: what a loop sends in a fraction of a second, and less than a subscriber may leave
/// unread unless its limits are changed. So a subscriber that reads is not given up because others are quick to publish.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) loop_index: usize,
    /// Its number among the loop's connections, which a later client may get as well.
    pub(crate) key: usize,
    pub(crate) client_id: u64,
}

/// A message, as it is sent. Both versions of the protocol write it alike, but for its first byte.
pub(crate) struct Parcel {
    bytes: Vec<u8>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A push of RESP3, which is an array in RESP2.
    Push,
    /// A push that clients of RESP2 do not get.
    PushOfResp3,
    /// The same in both.
    Line,
}

impl Parcel {
    /// A message of these parts.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Parcel {
        let mut bytes = Vec::new();
        let mut reply = Reply::new(&mut bytes, Protocol::Resp3);
        reply.push(parts.len());
        parts.iter().for_each(|part| reply.bulk(part));
        Parcel { bytes, form: Form::Push }
    }

    /// A push that `write` writes; clients of RESP2 have no place for it.
    pub(crate) fn of_resp3(write: impl FnOnce(&mut Reply<'_>)) -> Parcel {
        let mut bytes = Vec::new();
        write(&mut Reply::new(&mut bytes, Protocol::Resp3));
        Parcel { bytes, form: Form::PushOfResp3 }
    }

    pub(crate) fn of_line(line: String) -> Parcel {
        Parcel { bytes: line.into_bytes(), form: Form::Line }
    }

    /// What a client of this version gets.
    pub(crate) fn parts(&self, protocol: Protocol) -> [&[u8]; 2] {
        match (self.form, protocol) {
            (Form::Push, Protocol::Resp2) => [b"*", &self.bytes[1..]],
            (Form::PushOfResp3, Protocol::Resp2) => [&[], &[]],
            _ => [&self.bytes, &[]],
        }
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Sends a message to clients.
pub(crate) fn send(shared: &Shared, places: &[Place], parcel: Parcel) {
    let parcel = Arc::new(parcel);
    for (index, mailbox) in shared.mailboxes.iter().enumerate() {
        let receivers: Vec<Place> = places.iter().filter(|place| place.loop_index == index).copied().collect();
        if !receivers.is_empty() {
            shared.mail.waiting_bytes.fetch_add(bytes_of(&receivers, &parcel), Ordering::SeqCst);
            mailbox.give(Letter::Parcel { receivers, parcel: Arc::clone(&parcel) });
        }
    }
}

/// What a letter with a message takes. A message for several loops is there once, and counts for each.
fn bytes_of(receivers: &[Place], parcel: &Parcel) -> usize {
    parcel.len_bytes() + size_of_val(receivers)
}

/// Messages that wait in the boxes of all loops.
#[derive(Default)]
pub(crate) struct Mail {
    waiting_bytes: AtomicUsize,
    /// Some are postponed until they are fewer.
    is_awaited: AtomicBool,
}

impl Mail {
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting_bytes.load(Ordering::SeqCst) >= WAITING_BYTES_MAX
    }

    /// Whether the request must wait since messages may come of it.
    #[inline]
    pub(crate) fn holds(&self, entry: Entry, session: &Session, shared: &Shared) -> bool {
        self.waiting_bytes() >= WAITING_BYTES_MAX
            && (pause::changes(entry, session) || !shared.monitors.is_empty())
            && self.await_room()
    }

    /// False if there is room. A loop that takes a message out after this has looked sees that another waits: one of the two comes
    /// first in the order of these words.
    #[cold]
    fn await_room(&self) -> bool {
        self.is_awaited.store(true, Ordering::SeqCst);
        self.is_full()
    }

    /// A loop has taken a message out of its box; loops that wait for that are woken.
    pub(crate) fn note_taken(&self, receivers: &[Place], parcel: &Parcel, mailboxes: &[Mailbox]) {
        let taken_bytes = bytes_of(receivers, parcel);
        let waiting_bytes = self.waiting_bytes.fetch_sub(taken_bytes, Ordering::SeqCst) - taken_bytes;
        if waiting_bytes < WAITING_BYTES_MAX && self.is_awaited.swap(false, Ordering::SeqCst) {
            mailboxes.iter().for_each(Mailbox::wake);
        }
    }
}

pub(crate) enum Letter {
    /// A new client.
    Arrival(Transport, SocketAddr, Admission),
    /// The reply to a client that was away.
    Done(Place, Box<Done>),
    /// A message for clients of this loop.
    Parcel { receivers: Vec<Place>, parcel: Arc<Parcel> },
    /// A client's connection is to be closed.
    Close(Place),
}

/// Gives letters to an event loop.
pub(crate) struct Mailbox {
    sender: Sender<Letter>,
    waker: Arc<Waker>,
}

impl Mailbox {
    /// A mailbox, and the end at which the loop of `poll` takes letters out.
    pub(crate) fn new(poll: &Poll, token: Token) -> io::Result<(Mailbox, Receiver<Letter>)> {
        let (sender, letters) = channel();
        Ok((Mailbox { sender, waker: Arc::new(Waker::new(poll.registry(), token)?) }, letters))
    }

    /// A loop that has ended drops the letter, and a new client with it.
    pub(crate) fn give(&self, letter: Letter) {
        let _ = self.sender.send(letter);
        self.wake();
    }

    /// Has the loop look around.
    pub(crate) fn wake(&self) {
        // The only failure is a loop that is gone.
        let _ = self.waker.wake();
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use resp::Parser;

    use super::*;
    use crate::connections::buffers::Buffers;
    use crate::connections::connection::Worker;
    use crate::connections::output::Output;
    use crate::execution::pipeline::Pipeline;
    use crate::observers::pubsub::Kind;
    use crate::testing;

    const MESSAGE_BYTES: usize = 1 << 20;

    /// A client of the first loop that publishes as long as it may.
    struct Publisher {
        session: Session,
        pipeline: Pipeline,
        input: Vec<u8>,
    }

    impl Publisher {
        fn new(shared: &Shared) -> Publisher {
            let mut input = Vec::new();
            let mut request = Reply::new(&mut input, Protocol::Resp2);
            request.array(3);
            [b"PUBLISH", &b"news"[..], &[b'x'; MESSAGE_BYTES]].iter().for_each(|argument| request.bulk(argument));
            Publisher { session: testing::session(shared), pipeline: Pipeline::default(), input }
        }

        /// Publishes once, or goes on with what waits; false if that has to wait.
        fn publish(&mut self, shared: &Shared) -> bool {
            if self.pipeline.is_done() {
                self.pipeline.restart();
                self.pipeline.parse(&mut Parser::new(shared.settings.limits()), &self.input, false);
            }
            let (counters, woke, buffers) = (&shared.loops[0], Instant::now(), &mut Buffers::default());
            let worker = Worker { shared, lane: 0, counters, woke, buffers };
            self.pipeline.run(&self.input, &mut self.session, &worker, &mut Output::default());
            !self.session.is_postponed
        }
    }

    #[test]
    fn who_publishes_waits_while_a_loop_takes_no_letters() {
        let (mut server, _dir) = testing::server();
        let shared = Arc::clone(server.shared());
        let (subscriber, mut publisher) = (Place { loop_index: 1, key: 0, client_id: 2 }, Publisher::new(&shared));
        shared.pubsub.subscribe(Kind::Channel, b"news", subscriber);
        for _ in 0..3 {
            let count = (0..1_000).take_while(|_| publisher.publish(&shared)).count();
            assert_eq!(count, WAITING_BYTES_MAX / MESSAGE_BYTES, "the message that reaches the bound is the last one");
            assert!(shared.mail.is_awaited.load(Ordering::SeqCst) && shared.mail.is_full());
            server.take_letters();
            assert!(!shared.mail.is_awaited.load(Ordering::SeqCst), "who waited was woken");
            assert_eq!(shared.mail.waiting_bytes(), 0);
            assert!(publisher.publish(&shared), "it goes on");
            server.take_letters();
        }
        publisher.session.leave(&shared);
    }
}
