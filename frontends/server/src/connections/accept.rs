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
use crate::messages::LoopMessage;
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
pub(crate) enum ListeningSocket {
    Tcp(TcpListener),
    /// With its socket file, which is removed with it.
    Unix(UnixListener, SocketFile),
}

/// An accepted socket.
enum AcceptedSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ListeningSocket {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            ListeningSocket::Tcp(listener) => listener,
            ListeningSocket::Unix(listener, _) => listener,
        }
    }

    fn accept(&self) -> io::Result<(AcceptedSocket, Peer)> {
        match self {
            ListeningSocket::Tcp(listener) => {
                listener.accept().map(|(socket, addr)| (AcceptedSocket::Tcp(socket), Peer::Ip(addr)))
            }
            ListeningSocket::Unix(listener, file) => {
                listener.accept().map(|(socket, _)| (AcceptedSocket::Unix(socket), Peer::Unix(Arc::clone(&file.path))))
            }
        }
    }
}

impl AcceptedSocket {
    /// Returns an unencrypted transport for the message that the client is refused.
    fn plain(self) -> Transport {
        match self {
            AcceptedSocket::Tcp(socket) => Transport::Plain(socket),
            AcceptedSocket::Unix(socket) => Transport::Unix(socket),
        }
    }

    /// Returns the transport of a client that is served.
    fn transport(self, certificates: Option<&Certificates>) -> io::Result<Transport> {
        match self {
            AcceptedSocket::Tcp(socket) => Transport::new(socket, certificates),
            AcceptedSocket::Unix(_) => Ok(self.plain()),
        }
    }
}

pub(crate) struct Acceptor {
    listening: ListeningSocket,
    shared: Arc<Shared>,
    /// Set if connections use TLS.
    certificates: Option<Arc<Certificates>>,
    /// Connections may be waiting.
    waiting: bool,
    /// The last connection could not be accepted, and that was logged.
    is_refused: bool,
}

impl Acceptor {
    pub(crate) fn new(
        listening: ListeningSocket,
        shared: Arc<Shared>,
        certificates: Option<Arc<Certificates>>,
    ) -> Acceptor {
        Acceptor { listening, shared, certificates, waiting: false, is_refused: false }
    }

    pub(crate) fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        self.listening.source().register(poll.registry(), token, Interest::READABLE)
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
            match self.listening.accept() {
                Ok((accepted, peer)) => {
                    self.is_refused = false;
                    self.admit(accepted, peer);
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
            tracing::warn!(%error, "cannot accept connections; retrying, connected clients are not affected");
        }
    }

    fn admit(&self, accepted: AcceptedSocket, peer: Peer) {
        let administration = &self.shared.administration;
        if administration.is_closed_to(&peer) {
            administration
                .log
                .client_refused(&peer, "protected mode: no password is set, and the client is on another host");
            self.refuse(accepted, PROTECTED);
            return;
        }
        let Some(admission) = Admission::try_new(&self.shared.telemetry.loops, administration.settings.clients_max())
        else {
            administration.log.client_refused(&peer, "maxclients reached");
            self.refuse(accepted, b"-ERR max number of clients reached\r\n");
            return;
        };
        tracing::debug!(addr = %peer, client = admission.client_id, "client connected");
        // Without TCP_NODELAY, replies wait for acknowledgements. Both calls fail only on a closed connection.
        if let AcceptedSocket::Tcp(socket) = &accepted {
            let _ = socket.set_nodelay(true);
            let _ = idle::keep_alive(socket, administration.settings.keep_alive_seconds());
        }
        // On failure the socket is dropped, which closes it.
        if let Ok(transport) = accepted.transport(self.certificates.as_deref()) {
            self.shared.mailboxes.send_to_loop(admission.loop_index, LoopMessage::Arrival(transport, peer, admission));
        }
    }

    /// Sends the reason for the refusal, which only a client without TLS can read.
    fn refuse(&self, accepted: AcceptedSocket, why: &[u8]) {
        if self.certificates.is_none() {
            // Best effort: the client may be gone, and is dropped in any case.
            let _ = accepted.plain().write(why);
        }
    }
}
