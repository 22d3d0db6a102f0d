//! The queue of messages to one event loop.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::{Poll, Token, Waker};

use super::loop_message::LoopMessage;

/// Sends messages to an event loop.
pub(crate) struct Mailbox {
    sender: Sender<LoopMessage>,
    waker: Arc<Waker>,
}

impl Mailbox {
    /// Creates a mailbox, and the receiver for the loop of `poll`.
    pub(crate) fn new(poll: &Poll, token: Token) -> io::Result<(Mailbox, Receiver<LoopMessage>)> {
        let (sender, messages) = channel();
        Ok((Mailbox { sender, waker: Arc::new(Waker::new(poll.registry(), token)?) }, messages))
    }

    /// Sends a message. If the loop has ended, the message is dropped, and with it a new client.
    pub(crate) fn send(&self, message: LoopMessage) {
        let _ = self.sender.send(message);
        self.wake();
    }

    /// Wakes the loop.
    pub(crate) fn wake(&self) {
        // This fails only if the loop has ended.
        let _ = self.waker.wake();
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }
}
