//! The transport of a connection: a TCP socket, or memory shared with the host.

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
    /// Registers it with the poller.
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
    /// Records an event of the poller.
    pub(crate) fn note(&mut self, event: &Event) {
        if let Socket::Shm(end) = self
            && event.is_read_closed()
        {
            end.note_hangup();
        }
    }

    /// Returns whether it has to be polled, because the poller reports no arriving data.
    pub(crate) fn is_awake(&self) -> bool {
        matches!(self, Socket::Shm(end) if end.is_awake())
    }

    /// Polls for data to read.
    pub(crate) fn poll(&mut self) -> Readiness {
        match self {
            Socket::Tcp(_) => Readiness::Sleeping,
            Socket::Shm(end) => end.poll(),
        }
    }

    /// Returns the number of PDUs per turn. With shared memory it is one group, so that the host can continue while the
    /// next group is executed; with a socket a system call costs more than the wait.
    pub(crate) fn turn_count_max(&self) -> usize {
        match self {
            Socket::Tcp(_) => usize::MAX,
            Socket::Shm(_) => limits::GROUP_COUNT,
        }
    }

    /// Returns whether the poller reports everything that arrives after a partial read, except an end of stream that it
    /// reported with the data. Shared memory has to be polled once more.
    pub(crate) fn reports_later_data(&self) -> bool {
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

    fn publish(&mut self, len_bytes: usize) {
        if let Socket::Shm(end) = self {
            end.publish(len_bytes);
        }
    }
}
