//! Accepting connections and handing each to an event loop.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Poll, Token};

use crate::connections::admission::Admission;
use crate::connections::idle;
use crate::connections::transport::{Certificates, Transport};
use crate::mail::Letter;
use crate::shared::Shared;

/// How long to leave the backlog alone after the operating system ran out of files or memory: it reports a waiting
/// connection only once, and nothing tells when there is room again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// In the first words of Redis, which clients match on.
const PROTECTED: &[u8] =
    b"-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default \
      user. In this mode connections are only accepted from the loopback interface. Give the user a password with CONFIG SET \
      requirepass or ACL SETUSER, from this host.\r\n";

pub(crate) struct Acceptor {
    listener: TcpListener,
    shared: Arc<Shared>,
    /// By TLS, if there are any.
    certificates: Option<Arc<Certificates>>,
    /// Connections wait, as far as is known.
    waiting: bool,
    /// The last one that waited could not be accepted, and that was said.
    is_refused: bool,
}

impl Acceptor {
    pub(crate) fn new(listener: TcpListener, shared: Arc<Shared>, certificates: Option<Arc<Certificates>>) -> Acceptor {
        Acceptor { listener, shared, certificates, waiting: false, is_refused: false }
    }

    pub(crate) fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        self.listener.register(poll.registry(), token, Interest::READABLE)
    }

    /// Takes note that the poller reports a connection.
    pub(crate) fn expect_some(&mut self) {
        self.waiting = true;
    }

    /// When to call [`Acceptor::accept_waiting`] again though nothing is reported.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.waiting.then_some(RETRY_AFTER)
    }

    /// Accepts all clients that wait.
    pub(crate) fn accept_waiting(&mut self) {
        while self.waiting {
            match self.listener.accept() {
                Ok((socket, addr)) => {
                    self.is_refused = false;
                    self.admit(socket, addr);
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

    /// Says once that the system has no room for the clients that wait, until it has.
    fn note_refused(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_refused, true) {
            tracing::warn!(%error, "clients wait that cannot be accepted; it is tried again, and those there are go on");
        }
    }

    fn admit(&self, socket: TcpStream, addr: SocketAddr) {
        let administration = &self.shared.administration;
        if administration.is_closed_to(addr.ip()) {
            administration.log.client_refused(addr, "nobody needs a password, and it is not on this host");
            self.turn_away(socket, PROTECTED);
            return;
        }
        let Some(admission) = Admission::try_new(&self.shared.telemetry.loops, administration.settings.clients_max())
        else {
            administration.log.client_refused(addr, "as many are connected as may be");
            self.turn_away(socket, b"-ERR max number of clients reached\r\n");
            return;
        };
        tracing::debug!(%addr, client = admission.client_id, "client connected");
        // Without the one replies wait for acknowledgements; both can only fail on a connection that is gone.
        let _ = socket.set_nodelay(true);
        let _ = idle::keep_alive(&socket, administration.settings.keep_alive_seconds());
        // A failure leaves the socket to be dropped, which closes it.
        if let Ok(transport) = Transport::new(socket, self.certificates.as_deref()) {
            self.shared.post.give(admission.loop_index, Letter::Arrival(transport, addr, admission));
        }
    }

    /// Says why, which only a client without TLS can read.
    fn turn_away(&self, socket: TcpStream, why: &[u8]) {
        if self.certificates.is_none() {
            // A courtesy: the client may be gone, and is dropped in any case.
            let _ = Transport::Plain(socket).write(why);
        }
    }
}
