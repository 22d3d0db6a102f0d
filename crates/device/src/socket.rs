//! What carries a connection: a TCP socket, or memory that is shared with the host.

use std::io::{self, Read, Write};

use mio::event::Event;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rings::{DeviceEnd, Readiness};

use crate::limits;
use crate::output::Carrier;

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Shm(Box<DeviceEnd>),
}

impl Socket {
    /// Has the poller tell when there may be something to do.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => registry.register(socket, token, Interest::READABLE | Interest::WRITABLE),
            Socket::Shm(end) => {
                let register = |fd: &i32| registry.register(&mut SourceFd(fd), token, Interest::READABLE);
                end.fds().iter().try_for_each(register)
            }
        }
    }
}

impl Socket {
    /// The poller has told of it.
    pub(crate) fn note(&mut self, event: &Event) {
        if let Socket::Shm(end) = self
            && event.is_read_closed()
        {
            end.doubt();
        }
    }

    /// Whether it has to be looked at, since the poller tells of nothing that comes.
    pub(crate) fn is_awake(&self) -> bool {
        matches!(self, Socket::Shm(end) if end.is_awake())
    }

    /// Looks whether there is something to read.
    pub(crate) fn look(&mut self) -> Readiness {
        match self {
            Socket::Tcp(_) => Readiness::Sleeping,
            Socket::Shm(end) => end.poll(),
        }
    }

    /// PDUs of a turn. Of memory it takes a group and sends what came of that, and the host goes on beside the next group; to a socket a call
    /// is dearer than the wait.
    pub(crate) fn turn_count_max(&self) -> usize {
        match self {
            Socket::Tcp(_) => usize::MAX,
            Socket::Shm(_) => limits::GROUP_COUNT,
        }
    }

    /// Whether the poller tells of whatever comes after a read that did not fill its room, but for an end that it has told of with what was
    /// read. Memory has to be looked at once more.
    pub(crate) fn tells_of_more(&self) -> bool {
        matches!(self, Socket::Tcp(_))
    }
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.read(out),
            Socket::Shm(end) => end.read(out),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Shm(end) => end.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Carrier for Socket {
    fn stage(&mut self, bytes: &[u8]) -> bool {
        match self {
            Socket::Tcp(_) => false,
            Socket::Shm(end) => end.stage(bytes),
        }
    }

    fn tell(&mut self, len_bytes: usize) {
        if let Socket::Shm(end) = self {
            end.publish(len_bytes);
        }
    }
}
