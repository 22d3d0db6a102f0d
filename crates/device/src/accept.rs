//! Taking connections, and dealing them out to the loops.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token, Waker};

use crate::limits;
use crate::shared::Shared;

/// A loop's box for connections.
pub(crate) struct Mailbox {
    pub(crate) sender: Sender<TcpStream>,
    pub(crate) waker: Arc<Waker>,
}

pub(crate) struct Acceptor {
    listener: TcpListener,
    mailboxes: Vec<Mailbox>,
    next: usize,
}

impl Acceptor {
    pub(crate) fn new(listener: TcpListener, mailboxes: Vec<Mailbox>) -> Acceptor {
        Acceptor { listener, mailboxes, next: 0 }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.listener, token, Interest::READABLE)
    }

    /// Takes all that wait; false if some wait that cannot be taken now.
    pub(crate) fn accept(&mut self, shared: &Shared) -> bool {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => self.admit(socket, shared),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    tracing::warn!(%error, "hosts wait that cannot be accepted; it is tried again");
                    return false;
                }
            }
        }
    }

    /// Gives a connection to the next loop; closes it if there are as many as may be.
    fn admit(&mut self, socket: TcpStream, shared: &Shared) {
        if shared.connection_count.fetch_add(1, Ordering::Relaxed) >= limits::CONNECTION_COUNT_MAX {
            shared.connection_count.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(
                most = limits::CONNECTION_COUNT_MAX,
                "a host is turned away: as many are connected as may be"
            );
            return;
        }
        // A connection that is gone already is found so when it is read.
        let _ = socket.set_nodelay(true);
        let mailbox = &self.mailboxes[self.next];
        self.next = (self.next + 1) % self.mailboxes.len();
        // The only failure of either is a loop that is gone.
        let _ = mailbox.sender.send(socket);
        let _ = mailbox.waker.wake();
    }
}
