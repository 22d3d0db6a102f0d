//! The transport of a connection's bytes: a socket, or TLS over a socket. Neither blocks.
//!
//! Both return [`ErrorKind::WouldBlock`](io::ErrorKind::WouldBlock) when the socket accepts no more.
//! [`Transport::flush`] sends bytes that were accepted but are not in the socket yet, which only TLS has.

mod certificates;
mod handshakes;
mod plain;
mod refusal;
mod tls;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Poll, Token};

pub(crate) use certificates::Certificates;
pub use certificates::{ClientCertificate, TlsFiles, TlsReload};
pub(crate) use handshakes::Handshakes;
use tls::TlsStream;

/// The outcome of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// The buffer is full or part of the data was read: there may be more.
    Some,
    /// All available data was read.
    All,
    /// The client will send no more.
    End,
}

pub(crate) enum Transport {
    Plain(TcpStream),
    /// A client of this host, by a path.
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

/// A socket of any address family.
pub(crate) trait Socket: Source + Read + Write {
    /// Shuts down the sending side.
    fn end(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Socket for UnixStream {
    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Transport {
    /// Creates a TLS transport for a new connection, or a plain one if there are no certificates.
    pub(crate) fn new(socket: TcpStream, certificates: Option<&Certificates>) -> io::Result<Transport> {
        Ok(match certificates {
            Some(certificates) => Transport::Tls(Box::new(TlsStream::accept(socket, certificates)?)),
            None => Transport::Plain(socket),
        })
    }

    pub(crate) fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        self.socket_mut().register(poll.registry(), token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Returns the local address; `None` for a Unix socket.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Transport::Plain(socket) => socket.local_addr().ok(),
            Transport::Unix(_) => None,
            Transport::Tls(stream) => stream.socket().local_addr().ok(),
        }
    }

    /// Reads into the remaining capacity of `bytes`, which must not be 0.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<Arrived> {
        match self {
            Transport::Plain(socket) => plain::read(&*socket, bytes),
            Transport::Unix(socket) => plain::read(&*socket, bytes),
            Transport::Tls(stream) => stream.read(bytes),
        }
    }

    /// Accepts the start of `bytes`, which must not be empty, and returns its length.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(socket) => socket.write(bytes),
            Transport::Unix(socket) => socket.write(bytes),
            Transport::Tls(stream) => stream.write(bytes),
        }
    }

    /// Sends accepted bytes.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Transport::Plain(_) | Transport::Unix(_) => Ok(()),
            Transport::Tls(stream) => stream.flush(),
        }
    }

    /// Returns whether accepted bytes are not in the socket yet.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Transport::Plain(_) | Transport::Unix(_) => false,
            Transport::Tls(stream) => stream.has_unsent(),
        }
    }

    /// Returns whether the handshake is incomplete.
    pub(crate) fn is_shaking_hands(&self) -> bool {
        match self {
            Transport::Plain(_) | Transport::Unix(_) => false,
            Transport::Tls(stream) => stream.is_shaking_hands(),
        }
    }

    /// Signals the end of the stream to the client, after all accepted bytes.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if let Transport::Tls(stream) = self {
            stream.end()?;
        }
        self.socket_mut().end()
    }

    /// Returns whether the client begins with a TLS record, if TLS is expected. Consumes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`](io::ErrorKind::WouldBlock) until data has arrived.
    pub(crate) fn begins_well(&self) -> io::Result<bool> {
        match self {
            Transport::Plain(_) | Transport::Unix(_) => Ok(true),
            Transport::Tls(stream) => stream.begins_with_tls(),
        }
    }

    /// Returns the socket below TLS, for a client that does not speak TLS.
    pub(crate) fn socket_mut(&mut self) -> &mut dyn Socket {
        match self {
            Transport::Plain(socket) => socket,
            Transport::Unix(socket) => socket,
            Transport::Tls(stream) => stream.socket_mut(),
        }
    }
}
