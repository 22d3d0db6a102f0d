//! Accepts connections and assigns each to an event loop.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Poll, Token};

use crate::clients::Peer;
use crate::connections::admission::Admission;
use crate::connections::idle;
use crate::connections::transport::{Certificates, Transport};
use crate::connections::unix::SocketFile;
use crate::mail::Letter;
use crate::shared::Shared;

/// Delay before accepting again after the operating system ran out of files or memory. The poller reports a waiting
/// connection only once, and nothing signals that resources are available again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Starts with Redis' words, which clients match on.
const PROTECTED: &[u8] =
    b"-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default \
      user. In this mode connections are only accepted from the loopback interface. Give the user a password with CONFIG SET \
      requirepass or ACL SETUSER, from this host.\r\n";

/// A listening socket.
pub(crate) enum Door {
    Tcp(TcpListener),
    /// With its socket file, which is removed with it.
    Unix(UnixListener, SocketFile),
}

/// An accepted socket.
enum Comer {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Door {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Door::Tcp(listener) => listener,
            Door::Unix(listener, _) => listener,
        }
    }

    fn accept(&self) -> io::Result<(Comer, Peer)> {
        match self {
            Door::Tcp(listener) => listener.accept().map(|(socket, addr)| (Comer::Tcp(socket), Peer::Ip(addr))),
            Door::Unix(listener, file) => {
                listener.accept().map(|(socket, _)| (Comer::Unix(socket), Peer::Unix(Arc::clone(&file.path))))
            }
        }
    }
}

impl Comer {
    /// Returns an unencrypted transport for the message that the client is refused.
    fn plain(self) -> Transport {
        match self {
            Comer::Tcp(socket) => Transport::Plain(socket),
            Comer::Unix(socket) => Transport::Unix(socket),
        }
    }

    /// Returns the transport of a client that is served.
    fn transport(self, certificates: Option<&Certificates>) -> io::Result<Transport> {
        match self {
            Comer::Tcp(socket) => Transport::new(socket, certificates),
            Comer::Unix(_) => Ok(self.plain()),
        }
    }
}

pub(crate) struct Acceptor {
    door: Door,
    shared: Arc<Shared>,
    /// Set if connections use TLS.
    certificates: Option<Arc<Certificates>>,
    /// Connections may be waiting.
    waiting: bool,
    /// The last connection could not be accepted, and that was logged.
    is_refused: bool,
}

impl Acceptor {
    pub(crate) fn new(door: Door, shared: Arc<Shared>, certificates: Option<Arc<Certificates>>) -> Acceptor {
        Acceptor { door, shared, certificates, waiting: false, is_refused: false }
    }

    pub(crate) fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        self.door.source().register(poll.registry(), token, Interest::READABLE)
    }

    /// Records that the poller has reported a connection.
    pub(crate) fn expect_some(&mut self) {
        self.waiting = true;
    }

    /// Returns when to call [`Acceptor::accept_waiting`] again without an event.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.waiting.then_some(RETRY_AFTER)
    }

    /// Accepts all waiting clients.
    pub(crate) fn accept_waiting(&mut self) {
        while self.waiting {
            match self.door.accept() {
                Ok((comer, peer)) => {
                    self.is_refused = false;
                    self.admit(comer, peer);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => self.waiting = false,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.note_refused(&error);
                        break;
                    }
                },
            }
        }
    }

    /// Logs that the system lacks resources for waiting clients, once until it has them again.
    fn note_refused(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_refused, true) {
            tracing::warn!(%error, "clients wait that cannot be accepted; it is tried again, and those there are go on");
        }
    }

    fn admit(&self, comer: Comer, peer: Peer) {
        let administration = &self.shared.administration;
        if administration.is_closed_to(&peer) {
            administration.log.client_refused(&peer, "nobody needs a password, and it is not on this host");
            self.turn_away(comer, PROTECTED);
            return;
        }
        let Some(admission) = Admission::try_new(&self.shared.telemetry.loops, administration.settings.clients_max())
        else {
            administration.log.client_refused(&peer, "as many are connected as may be");
            self.turn_away(comer, b"-ERR max number of clients reached\r\n");
            return;
        };
        tracing::debug!(addr = %peer, client = admission.client_id, "client connected");
        // Without TCP_NODELAY, replies wait for acknowledgements. Both calls fail only on a closed connection.
        if let Comer::Tcp(socket) = &comer {
            let _ = socket.set_nodelay(true);
            let _ = idle::keep_alive(socket, administration.settings.keep_alive_seconds());
        }
        // On failure the socket is dropped, which closes it.
        if let Ok(transport) = comer.transport(self.certificates.as_deref()) {
            self.shared.post.give(admission.loop_index, Letter::Arrival(transport, peer, admission));
        }
    }

    /// Sends the reason for the refusal, which only a client without TLS can read.
    fn turn_away(&self, comer: Comer, why: &[u8]) {
        if self.certificates.is_none() {
            // Best effort: the client may be gone, and is dropped in any case.
            let _ = comer.plain().write(why);
        }
    }
}
