//! What carries a connection's bytes: a socket, or TLS over one. Neither blocks.
//!
//! Both say with [`ErrorKind::WouldBlock`](io::ErrorKind::WouldBlock) that the socket takes no more; what was taken and is
//! not in the socket yet, which only TLS has, is sent by [`Transport::flush`].

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

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// As much as there was room for, or less: there may be more.
    Some,
    /// All that there was.
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

/// A socket, whatever its address is.
pub(crate) trait Socket: Source + Read + Write {
    /// Nothing more will be sent.
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
    /// TLS on a socket that a client has just connected, or the socket itself where there are no certificates.
    pub(crate) fn new(socket: TcpStream, certificates: Option<&Certificates>) -> io::Result<Transport> {
        Ok(match certificates {
            Some(certificates) => Transport::Tls(Box::new(TlsStream::accept(socket, certificates)?)),
            None => Transport::Plain(socket),
        })
    }

    pub(crate) fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        self.socket_mut().register(poll.registry(), token, Interest::READABLE | Interest::WRITABLE)
    }

    /// The address at which the client was served; none if it was a path.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Transport::Plain(socket) => socket.local_addr().ok(),
            Transport::Unix(_) => None,
            Transport::Tls(stream) => stream.socket().local_addr().ok(),
        }
    }

    /// Reads into the capacity that `bytes` has left, which must not be none.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<Arrived> {
        match self {
            Transport::Plain(socket) => plain::read(&*socket, bytes),
            Transport::Unix(socket) => plain::read(&*socket, bytes),
            Transport::Tls(stream) => stream.read(bytes),
        }
    }

    /// Takes the start of `bytes`, which are not none, and returns how many that were.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(socket) => socket.write(bytes),
            Transport::Unix(socket) => socket.write(bytes),
            Transport::Tls(stream) => stream.write(bytes),
        }
    }

    /// Sends what was taken.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Transport::Plain(_) | Transport::Unix(_) => Ok(()),
            Transport::Tls(stream) => stream.flush(),
        }
    }

    /// Whether something was taken that is not in the socket yet.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Transport::Plain(_) | Transport::Unix(_) => false,
            Transport::Tls(stream) => stream.has_unsent(),
        }
    }

    /// Whether client and server have yet to agree on keys.
    pub(crate) fn is_shaking_hands(&self) -> bool {
        match self {
            Transport::Plain(_) | Transport::Unix(_) => false,
            Transport::Tls(stream) => stream.is_shaking_hands(),
        }
    }

    /// Tells the client that nothing more will be sent, once all that was taken is.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if let Transport::Tls(stream) = self {
            stream.end()?;
        }
        self.socket_mut().end()
    }

    /// Whether the client begins as it should: with a record of TLS, where that is spoken. It takes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`](io::ErrorKind::WouldBlock) until something has come.
    pub(crate) fn begins_well(&self) -> io::Result<bool> {
        match self {
            Transport::Plain(_) | Transport::Unix(_) => Ok(true),
            Transport::Tls(stream) => stream.begins_with_tls(),
        }
    }

    /// What lies below TLS, for a client that does not speak TLS.
    pub(crate) fn socket_mut(&mut self) -> &mut dyn Socket {
        match self {
            Transport::Plain(socket) => socket,
            Transport::Unix(socket) => socket,
            Transport::Tls(stream) => stream.socket_mut(),
        }
    }
}
