//! Messages between event loops, and to their clients.
//!
//! Messages wait in a loop's mailbox until the loop has time. Messages to clients may be large and many, so their
//! waiting bytes are counted ([`Mailboxes`]). While too many bytes wait, requests that would add more are postponed
//! until loops have taken messages out. No message is dropped for this reason, and no loop blocks: each takes its
//! messages independently of the others.

mod client_message;
mod loop_message;
mod mailbox;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mio::Waker;

use crate::clients::Place;

pub(crate) use client_message::ClientMessage;
pub(crate) use loop_message::LoopMessage;
pub(crate) use mailbox::Mailbox;

/// Maximum bytes of client messages that wait in all mailboxes together: as many as a loop sends in a fraction of a
/// second, and fewer than a subscriber may leave unread by default. So a subscriber that reads is not disconnected
/// because publishers are fast.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Returns the size of a message and its receivers. A message for several loops is stored once but counted for each.
fn bytes_of(receivers: &[Place], message: &ClientMessage) -> usize {
    message.len_bytes() + size_of_val(receivers)
}

/// The mailboxes of all loops, and the bytes that wait in them.
pub(crate) struct Mailboxes {
    /// One for each loop.
    mailboxes: Box<[Mailbox]>,
    waiting_bytes: AtomicUsize,
    /// A postponed request waits until there are fewer bytes.
    is_awaited: AtomicBool,
}

impl Mailboxes {
    pub(crate) fn new(mailboxes: Vec<Mailbox>) -> Mailboxes {
        Mailboxes {
            mailboxes: mailboxes.into(),
            waiting_bytes: AtomicUsize::new(0),
            is_awaited: AtomicBool::new(false),
        }
    }

    /// Sends a message to loop number `loop_index`.
    pub(crate) fn send_to_loop(&self, loop_index: usize, message: LoopMessage) {
        self.mailboxes[loop_index].send(message);
    }

    /// Sends a message to clients.
    pub(crate) fn send(&self, places: &[Place], message: ClientMessage) {
        let message = Arc::new(message);
        for (index, mailbox) in self.mailboxes.iter().enumerate() {
            let receivers: Vec<Place> = places.iter().filter(|place| place.loop_index == index).copied().collect();
            if !receivers.is_empty() {
                self.waiting_bytes.fetch_add(bytes_of(&receivers, &message), Ordering::SeqCst);
                mailbox.send(LoopMessage::Deliver { receivers, message: Arc::clone(&message) });
            }
        }
    }

    /// Wakes every loop.
    pub(crate) fn wake_all(&self) {
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    pub(crate) fn waker(&self, loop_index: usize) -> Arc<Waker> {
        self.mailboxes[loop_index].waker()
    }

    /// Returns the bytes of client messages that wait in all mailboxes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting_bytes.load(Ordering::SeqCst) >= WAITING_BYTES_MAX
    }

    /// Returns whether a request must wait because it may send messages and too many wait already.
    #[inline]
    pub(crate) fn holds(&self, may_send: impl FnOnce() -> bool) -> bool {
        self.waiting_bytes() >= WAITING_BYTES_MAX && may_send() && self.await_space()
    }

    /// Registers a waiter and returns whether the mailboxes are still full. All these words are sequentially
    /// consistent: either this load sees the space, or the loop that makes space sees the waiter.
    #[cold]
    fn await_space(&self) -> bool {
        self.is_awaited.store(true, Ordering::SeqCst);
        self.is_full()
    }

    /// Records that a loop has taken a message out of its mailbox, and wakes the loops that wait for space.
    pub(crate) fn note_received(&self, receivers: &[Place], message: &ClientMessage) {
        let taken_bytes = bytes_of(receivers, message);
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
    use crate::execution::background::BackgroundJobs;
    use crate::execution::pipeline::Pipeline;
    use crate::execution::worker::Worker;
    use crate::shared::Shared;
    use crate::testing;

    const MESSAGE_BYTES: usize = 1 << 20;

    /// A client of the first loop that publishes as long as it is permitted.
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

        /// Publishes once, or continues the pending request; returns false if it has to wait.
        fn publish(&mut self, shared: &Shared) -> bool {
            if self.pipeline.is_done() {
                self.pipeline.restart();
                self.pipeline.parse(&mut Parser::new(shared.administration.settings.limits()), &self.input, false);
            }
            let (counters, woke, buffers) = (&shared.telemetry.loops[0], Instant::now(), &mut Buffers::default());
            let background = &BackgroundJobs::default();
            let worker = Worker { shared, background, lane: 0, counters, woke, buffers };
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
            assert!(shared.mailboxes.is_awaited.load(Ordering::SeqCst) && shared.mailboxes.is_full());
            server.take_messages();
            assert!(!shared.mailboxes.is_awaited.load(Ordering::SeqCst), "who waited was woken");
            assert_eq!(shared.mailboxes.waiting_bytes(), 0);
            assert!(publisher.publish(&shared), "it goes on");
            server.take_messages();
        }
        shared.dismiss(&mut publisher.session);
    }
}
