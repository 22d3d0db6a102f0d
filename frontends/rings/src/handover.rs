//! A Unix socket through which a device passes shared memory to permitted hosts.
//!
//! The device sends one message: a greeting with two files, the memory and the eventfd by which the host wakes it. The
//! host never sends anything on the socket.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, recvmsg, sendmsg, socket_with,
};

use crate::end::{DeviceEnd, HostEnd};
use crate::memory::Memory;
use crate::unclaimed::{UNCLAIMED_COUNT_MAX, Unclaimed};

/// The device's greeting: its identity, and the version of the memory's layout.
const GREETING: [u8; 16] = *b"hikv rings\0\0\0\0\0\x01";
const BACKLOG: i32 = 128;

/// Why a device cannot listen at a path.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// The path is not a socket.
    NoSocket,
    /// Another process listens there.
    InUse,
    /// An error of the operating system.
    Io(io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::NoSocket => write!(f, "the path exists and is not a socket"),
            ListenError::InUse => write!(f, "another process listens on this socket"),
            ListenError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ListenError {}

impl From<io::Error> for ListenError {
    fn from(error: io::Error) -> ListenError {
        ListenError::Io(error)
    }
}

impl From<Errno> for ListenError {
    fn from(error: Errno) -> ListenError {
        ListenError::Io(error.into())
    }
}

/// A socket that hosts connect to. It is removed with the listener, unless it was replaced.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode number of the file created at the path.
    made: Option<(u64, u64)>,
    unclaimed: Arc<Unclaimed>,
}

impl Listener {
    /// Listens at `path`. Processes may connect that may write to a file of these permissions; none can before they are
    /// set. A socket left by an ended process is replaced.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn bind(path: &Path, mode: u32) -> Result<Listener, ListenError> {
        remove_dead(path)?;
        let socket = unconnected(SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        let (made, unclaimed) = (found_at(path), Arc::default());
        let listener = Listener { socket: socket.into(), path: path.to_owned(), made, unclaimed };
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o777))?;
        listen(&listener.socket, BACKLOG)?;
        Ok(listener)
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file that becomes readable when a host is waiting.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Accepts a waiting host, and passes it its own memory.
    ///
    /// # Errors
    /// `WouldBlock` if none is waiting; `ConnectionAborted` if one was refused because too many others have not
    /// received their files; otherwise an error of the operating system.
    pub fn accept(&self) -> io::Result<DeviceEnd> {
        let (socket, _) = self.socket.accept()?;
        if self.unclaimed.count() >= UNCLAIMED_COUNT_MAX {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        socket.set_nonblocking(true)?;
        let (memory, file) = Memory::make()?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        send(&socket, &[file.as_fd(), bell.as_fd()])?;
        Ok(DeviceEnd::new(memory, socket, bell, &self.unclaimed))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // A later file belongs to another process. A missing one needs no removal.
        if self.made.is_some() && self.made == found_at(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns device and inode number of the file at a path.
fn found_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn remove_dead(path: &Path) -> Result<(), ListenError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
        Ok(metadata) if !metadata.file_type().is_socket() => return Err(ListenError::NoSocket),
        Ok(_) => {}
    }
    match connect(&unconnected(SocketFlags::NONBLOCK)?, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => Ok(fs::remove_file(path)?),
        // Its queue of waiting hosts is full.
        Ok(()) | Err(Errno::AGAIN) => Err(ListenError::InUse),
        Err(error) => Err(error.into()),
    }
}

fn unconnected(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | flags, None)
}

fn send(socket: &UnixStream, files: &[std::os::fd::BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(files));
    let sent = sendmsg(socket, &[IoSlice::new(&GREETING)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == GREETING.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

impl HostEnd {
    /// Connects to the device at `path`; `timeout` applies to that, and to reads and writes.
    ///
    /// # Errors
    /// Errors of the operating system; `WouldBlock` if no device accepts or greets in time; `InvalidData` if the
    /// listener is not such a device.
    pub fn connect(path: &Path, timeout: Option<Duration>) -> io::Result<HostEnd> {
        let socket = UnixStream::from(unconnected(SocketFlags::empty())?);
        socket.set_read_timeout(timeout)?;
        // The timeout for connecting while the listener's queue is full.
        socket.set_write_timeout(timeout)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut greeting = [0; GREETING.len()];
        let received = recvmsg(&socket, &mut [IoSliceMut::new(&mut greeting)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let files: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(files) => Some(files),
                _ => None,
            })
            .flatten()
            .collect();
        if received.bytes == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match <[OwnedFd; 2]>::try_from(files) {
            Ok([file, bell]) if greeting == GREETING => Ok(HostEnd::new(Memory::of(file)?, socket, bell, timeout)),
            _ => Err(io::Error::new(ErrorKind::InvalidData, "the listener is not a device with shared memory")),
        }
    }
}

#[cfg(test)]
mod tests;
