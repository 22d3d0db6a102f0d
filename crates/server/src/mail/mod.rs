//! Messages between event loops.
//!
//! Letters wait in a loop's box until it has time. Messages among them may be large and many, so the bytes of all that wait are
//! counted ([`Post`]): while there are too many, clients whose requests would add more are postponed until loops have taken
//! messages out. No message is dropped for that, and no loop waits: each takes its letters whatever the others do.

mod letter;
mod mailbox;
mod parcel;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mio::Waker;

use crate::clients::Place;

pub(crate) use letter::Letter;
pub(crate) use mailbox::Mailbox;
pub(crate) use parcel::Parcel;

/// Messages that may wait in all boxes together: what a loop sends in a fraction of a second, and less than a subscriber may leave
/// unread unless its limits are changed. So a subscriber that reads is not given up because others are quick to publish.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// What a letter with a message takes. A message for several loops is there once, and counts for each.
fn bytes_of(receivers: &[Place], parcel: &Parcel) -> usize {
    parcel.len_bytes() + size_of_val(receivers)
}

/// The boxes of all loops, and what waits in them.
pub(crate) struct Post {
    /// One for each loop.
    mailboxes: Box<[Mailbox]>,
    waiting_bytes: AtomicUsize,
    /// Some are postponed until they are fewer.
    is_awaited: AtomicBool,
}

impl Post {
    pub(crate) fn new(mailboxes: Vec<Mailbox>) -> Post {
        Post { mailboxes: mailboxes.into(), waiting_bytes: AtomicUsize::new(0), is_awaited: AtomicBool::new(false) }
    }

    /// Gives a letter to the loop with this number.
    pub(crate) fn give(&self, loop_index: usize, letter: Letter) {
        self.mailboxes[loop_index].give(letter);
    }

    /// Sends a message to clients.
    pub(crate) fn send(&self, places: &[Place], parcel: Parcel) {
        let parcel = Arc::new(parcel);
        for (index, mailbox) in self.mailboxes.iter().enumerate() {
            let receivers: Vec<Place> = places.iter().filter(|place| place.loop_index == index).copied().collect();
            if !receivers.is_empty() {
                self.waiting_bytes.fetch_add(bytes_of(&receivers, &parcel), Ordering::SeqCst);
                mailbox.give(Letter::Parcel { receivers, parcel: Arc::clone(&parcel) });
            }
        }
    }

    /// Has every loop look around.
    pub(crate) fn wake_all(&self) {
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    pub(crate) fn waker(&self, loop_index: usize) -> Arc<Waker> {
        self.mailboxes[loop_index].waker()
    }

    /// Bytes of messages that wait in the boxes of all loops.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting_bytes.load(Ordering::SeqCst) >= WAITING_BYTES_MAX
    }

    /// Whether a request must wait of which messages may come.
    #[inline]
    pub(crate) fn holds(&self, may_send: impl FnOnce() -> bool) -> bool {
        self.waiting_bytes() >= WAITING_BYTES_MAX && may_send() && self.await_space()
    }

    /// False if there is room. A loop that takes a message out after this has looked sees that another waits: one of the two comes
    /// first in the order of these words.
    #[cold]
    fn await_space(&self) -> bool {
        self.is_awaited.store(true, Ordering::SeqCst);
        self.is_full()
    }

    /// A loop has taken a message out of its box; loops that wait for that are woken.
    pub(crate) fn note_taken(&self, receivers: &[Place], parcel: &Parcel) {
        let taken_bytes = bytes_of(receivers, parcel);
        let waiting_bytes = self.waiting_bytes.fetch_sub(taken_bytes, Ordering::SeqCst) - taken_bytes;
        if waiting_bytes < WAITING_BYTES_MAX && self.is_awaited.swap(false, Ordering::SeqCst) {
            self.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use resp::{Parser, Protocol, Reply};

    use super::*;
    use crate::clients::Kind;
    use crate::clients::session::Session;
    use crate::connections::buffers::Buffers;
    use crate::connections::output::Output;
    use crate::execution::errands::Errands;
    use crate::execution::pipeline::Pipeline;
    use crate::execution::worker::Worker;
    use crate::shared::Shared;
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
                self.pipeline.parse(&mut Parser::new(shared.administration.settings.limits()), &self.input, false);
            }
            let (counters, woke, buffers) = (&shared.telemetry.loops[0], Instant::now(), &mut Buffers::default());
            let errands = &Errands::default();
            let worker = Worker { shared, errands, lane: 0, counters, woke, buffers };
            self.pipeline.run(&self.input, &mut self.session, &worker, &mut Output::default());
            !self.session.is_postponed
        }
    }

    #[test]
    fn publisher_waits_for_full_mailbox() {
        let (mut server, _dir) = testing::server();
        let shared = Arc::clone(server.shared());
        let (subscriber, mut publisher) = (Place { loop_index: 1, key: 0, client_id: 2 }, Publisher::new(&shared));
        shared.observers.pubsub.subscribe(Kind::Channel, b"news", subscriber);
        for _ in 0..3 {
            let count = (0..1_000).take_while(|_| publisher.publish(&shared)).count();
            assert_eq!(count, WAITING_BYTES_MAX / MESSAGE_BYTES, "the message that reaches the bound is the last one");
            assert!(shared.post.is_awaited.load(Ordering::SeqCst) && shared.post.is_full());
            server.take_letters();
            assert!(!shared.post.is_awaited.load(Ordering::SeqCst), "who waited was woken");
            assert_eq!(shared.post.waiting_bytes(), 0);
            assert!(publisher.publish(&shared), "it goes on");
            server.take_letters();
        }
        shared.dismiss(&mut publisher.session);
    }
}
