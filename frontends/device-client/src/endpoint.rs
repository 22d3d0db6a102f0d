//! The address of a device, and connections to it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rings::{HostEnd, PollBudget};
use rustix::net::{RecvFlags, recv};

/// Linux' default timeout of a command.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Number of polls of a socket before its reader sleeps.
const ASK_COUNT: u32 = 128;

/// The address of a device, and the timeout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    place: Place,
    /// Maximum time for connecting, sending and the next PDU; unlimited if `None`.
    timeout: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    /// The addresses of a name, which are tried in turn.
    Tcp(Vec<SocketAddr>),
    Shm(PathBuf),
}

impl From<SocketAddr> for Endpoint {
    fn from(addr: SocketAddr) -> Endpoint {
        Endpoint { place: Place::Tcp(vec![addr]), timeout: Some(TIMEOUT) }
    }
}

/// A device of this machine that shares memory, by its socket.
impl From<&Path> for Endpoint {
    fn from(path: &Path) -> Endpoint {
        Endpoint { place: Place::Shm(path.to_owned()), timeout: Some(TIMEOUT) }
    }
}

impl Endpoint {
    /// Returns the endpoint of a name; its first address that accepts a connection is used.
    ///
    /// # Errors
    /// An invalid or unknown name.
    pub fn of_name(name: impl ToSocketAddrs) -> io::Result<Endpoint> {
        let addrs: Vec<SocketAddr> = name.to_socket_addrs()?.collect();
        Ok(Endpoint { place: Place::Tcp(addrs), timeout: Some(TIMEOUT) })
    }

    /// Returns the endpoint with this timeout.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Endpoint {
        Endpoint { timeout, ..self }
    }

    pub(crate) fn open(&self) -> io::Result<Stream> {
        match &self.place {
            Place::Shm(path) => timed_out(HostEnd::connect(path, self.timeout)).map(|end| Stream::Shm(Box::new(end))),
            Place::Tcp(addrs) => {
                let mut refused = ErrorKind::NotFound.into();
                for addr in addrs {
                    match self.open_at(addr) {
                        Ok(socket) => return Ok(Stream::Tcp(socket, PollBudget::new(ASK_COUNT))),
                        Err(error) => refused = error,
                    }
                }
                Err(refused)
            }
        }
    }

    fn open_at(&self, addr: &SocketAddr) -> io::Result<TcpStream> {
        let socket = match self.timeout {
            Some(timeout) => TcpStream::connect_timeout(addr, timeout),
            None => TcpStream::connect(addr),
        }?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(self.timeout)?;
        socket.set_write_timeout(self.timeout)?;
        Ok(socket)
    }
}

/// A connection by either transport.
#[derive(Debug)]
pub enum Stream {
    /// A socket, and the state of polling it.
    Tcp(TcpStream, PollBudget),
    /// Shared memory.
    Shm(Box<HostEnd>),
}

impl Stream {
    /// Closes the connection.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn close(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(socket, _) => socket.shutdown(std::net::Shutdown::Both),
            Stream::Shm(end) => end.close(),
        }
    }
}

/// A socket reports a timeout as `WouldBlock`.
fn timed_out<T>(outcome: io::Result<T>) -> io::Result<T> {
    outcome.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, "the device does not respond")
        }
        _ => error,
    })
}

/// Reads; sleeps only after enough polls.
fn read(socket: &mut TcpStream, budget: &mut PollBudget, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match recv(&*socket, &mut *out, RecvFlags::DONTWAIT) {
            Err(rustix::io::Errno::AGAIN) if !budget.try_again() => return socket.read(out),
            Err(rustix::io::Errno::AGAIN) => {}
            read => {
                budget.reset();
                return Ok(read.map(|(len_bytes, _)| len_bytes)?);
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        timed_out(match self {
            Stream::Tcp(socket, budget) => read(socket, budget, out),
            Stream::Shm(end) => end.read(out),
        })
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        timed_out(match self {
            Stream::Tcp(socket, _) => socket.write(bytes),
            Stream::Shm(end) => end.write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
