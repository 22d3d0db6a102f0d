//! What event loops are told by each other.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::{Poll, Token, Waker};

use crate::shared::Admission;
use crate::transport::Transport;

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) loop_index: usize,
    /// Its number among the loop's connections, which a later client may get as well.
    pub(crate) key: usize,
    pub(crate) client_id: u64,
}

/// A message as it is sent, in both versions of the protocol.
pub(crate) struct Parcel {
    pub(crate) resp2: Vec<u8>,
    pub(crate) resp3: Vec<u8>,
}

pub(crate) enum Letter {
    /// A new client.
    Arrival(Transport, SocketAddr, Admission),
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
