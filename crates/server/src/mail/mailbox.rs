//! The way of letters to one event loop.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::{Poll, Token, Waker};

use super::letter::Letter;

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
