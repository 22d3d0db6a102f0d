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
mod tests {
    use std::io::{Read, Write};
    use std::thread;

    use super::*;
    use crate::end::Readiness;

    fn pair() -> (tempfile::TempDir, Listener, DeviceEnd, HostEnd) {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = Listener::bind(&dir.path().join("socket"), 0o600).expect("a path");
        let host = thread::scope(|scope| {
            let connecting = scope.spawn(|| HostEnd::connect(listener.path(), Some(Duration::from_secs(60))));
            let device = loop {
                match listener.accept() {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                    accepted => break accepted.expect("a host"),
                }
            };
            (device, connecting.join().expect("it ends").expect("it connects"))
        });
        (dir, listener, host.0, host.1)
    }

    #[test]
    fn socket_is_for_whom_its_permissions_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let listener = Listener::bind(&path, 0o660).expect("a path");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o660);
        assert!(matches!(Listener::bind(&path, 0o600), Err(ListenError::InUse)));
        // As a killed device leaves it.
        let left = dir.path().join("left");
        fs::rename(&path, &left).expect("it is there");
        drop(listener);
        let listener = Listener::bind(&left, 0o600).expect("nobody listens there");
        drop(listener);
        assert!(!left.exists());
        fs::write(&path, "a file").expect("it is written");
        assert!(matches!(Listener::bind(&path, 0o600), Err(ListenError::NoSocket)));
        assert_eq!(fs::read(&path).expect("it is there"), b"a file");
    }

    #[test]
    fn listener_leaves_foreign_socket() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let first = Listener::bind(&path, 0o600).expect("a path");
        fs::remove_file(&path).expect("it is there");
        let _second = Listener::bind(&path, 0o600).expect("nothing lies there");
        drop(first);
        assert!(path.exists());
    }

    /// A device that is stopped or hangs, and the maximum number of waiting hosts.
    #[test]
    fn unaccepted_connect_times_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let _listener = Listener::bind(&path, 0o600).expect("a path");
        let addr = SocketAddrUnix::new(&path).expect("it is short");
        let mut waiting = Vec::new();
        while let Ok(socket) = unconnected(SocketFlags::NONBLOCK)
            && connect(&socket, &addr).is_ok()
        {
            waiting.push(socket);
        }
        assert!(waiting.len() >= BACKLOG as usize);
        let refused = HostEnd::connect(&path, Some(Duration::from_millis(20)));
        assert!(refused.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
        assert!(matches!(Listener::bind(&path, 0o600), Err(ListenError::InUse)));
    }

    #[test]
    fn transfers_exceed_ring_and_end_is_reported() {
        let (_dir, _listener, mut device, mut host) = pair();
        let bytes: Vec<u8> = (0..3 * crate::RING_BYTES + 5).map(|at| (at % 251) as u8).collect();
        let len = bytes.len();
        thread::scope(|scope| {
            // The host's data comes back.
            scope.spawn(|| {
                let (mut echoed, mut buffer) = (0, vec![0; 1000]);
                while echoed < len {
                    let Ok(read) = device.read(&mut buffer) else {
                        thread::yield_now();
                        continue;
                    };
                    let mut rest = &buffer[..read];
                    while !rest.is_empty() {
                        match device.write(rest) {
                            Ok(written) => rest = &rest[written..],
                            Err(_) => thread::yield_now(),
                        }
                    }
                    echoed += read;
                }
            });
            let mut back = vec![0; len];
            for (sent, read) in bytes.chunks(5000).zip(back.chunks_mut(5000)) {
                host.write_all(sent).expect("there is room in the end");
                host.read_exact(read).expect("it comes back");
            }
            assert!(back == bytes);
        });
        device.write_all(b"last").expect("there is room");
        drop(device);
        let mut said = Vec::new();
        host.read_to_end(&mut said).expect("it ends in order");
        assert_eq!(said, b"last");
    }

    /// Returns the number of signals since the last call.
    fn rung(device: &DeviceEnd) -> Option<u64> {
        let mut count = [0; 8];
        // SAFETY: the device has it open.
        let bell = unsafe { std::os::fd::BorrowedFd::borrow_raw(device.fds()[1]) };
        rustix::io::read(bell, &mut count).is_ok().then(|| u64::from_ne_bytes(count))
    }

    /// A host signals only a sleeping device; and a polling device eventually sleeps.
    #[test]
    fn host_rings_for_device_that_sleeps() {
        let (_dir, _listener, mut device, mut host) = pair();
        let mut said = [0; 10];
        for _ in 0..3 {
            host.write_all(b"awake").expect("there is room");
            assert!(device.is_awake() && rung(&device).is_none());
            assert_eq!(device.poll(), Readiness::Ready);
            assert_eq!(device.read(&mut said).expect("it was sent"), 5);
            assert_eq!(device.read(&mut said).expect_err("nothing more").kind(), ErrorKind::WouldBlock);
            let poll_count =
                std::iter::repeat_with(|| device.poll()).take_while(|poll| *poll == Readiness::Pending).count();
            assert!(!device.is_awake() && poll_count < 1 << 20);
            host.write_all(b"asleep").expect("there is room");
            assert_eq!(rung(&device), Some(1));
            assert_eq!(device.read(&mut said).expect("it was sent"), 6);
            // Woken by another event, it clears its word.
            while device.poll() != Readiness::Sleeping {}
            host.write_all(b"more").expect("there is room");
            rung(&device);
            host.forge(true, 2, 1);
            assert_eq!(device.read(&mut said).expect("it was sent"), 4);
        }
    }

    /// Staged bytes wake no reader before they are published.
    #[test]
    fn sleeping_host_is_woken_by_publish() {
        let (_dir, _listener, mut device, mut host) = pair();
        host.forge(false, 2, 1);
        assert!(device.stage(b"bytes") && host.is_marked_asleep());
        device.publish(5);
        assert!(!host.is_marked_asleep());
        assert_eq!(host.read(&mut [0; 10]).expect("it is published"), 5);
    }

    /// A late host has signalled for bytes that were already read, and cleared the word of a later sleep.
    #[test]
    fn device_woken_spuriously_is_rung_again() {
        let (_dir, _listener, mut device, mut host) = pair();
        while device.poll() != Readiness::Sleeping {}
        host.forge(true, 2, 0);
        assert_eq!(device.read(&mut [0; 8]).expect_err("nothing was sent").kind(), ErrorKind::WouldBlock);
        assert!(device.is_awake(), "nobody would ring");
        while device.poll() != Readiness::Sleeping {}
        host.write_all(b"more").expect("there is room");
        assert_eq!(rung(&device), Some(1));
    }

    /// They connect, receive nothing, and stay after the device has closed.
    #[test]
    fn hosts_that_take_nothing_are_no_more_than_a_bound() {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = Listener::bind(&dir.path().join("socket"), 0o600).expect("a path");
        let connect = || UnixStream::connect(listener.path()).expect("it listens");
        let mut idle = Vec::new();
        let refused = loop {
            idle.push(connect());
            match listener.accept() {
                Ok(end) => drop(end),
                Err(error) => break error,
            }
            assert!(idle.len() <= UNCLAIMED_COUNT_MAX, "as many as like keep the device's files");
        };
        assert_eq!((refused.kind(), idle.len()), (ErrorKind::ConnectionAborted, UNCLAIMED_COUNT_MAX + 1));
        // They are notified that their connections are over; one that receives its files makes space for another.
        let mut greeting = Vec::new();
        idle[0].read_to_end(&mut greeting).expect("it ends in order");
        assert_eq!(greeting, GREETING);
        let _host = connect();
        let device = listener.accept().expect("there is place for one");
        drop(device);
        let _other = connect();
        assert_eq!(listener.accept().err().map(|error| error.kind()), Some(ErrorKind::ConnectionAborted));
        idle.clear();
        let _third = connect();
        listener.accept().expect("they are gone");
    }

    #[test]
    fn host_that_is_gone_is_noticed() {
        let (_dir, _listener, mut device, mut host) = pair();
        host.write_all(b"last").expect("there is room");
        assert!(matches!(device.write(b"x"), Ok(1)));
        drop(host);
        let mut said = [0; 10];
        assert_eq!(device.read(&mut said).expect("it was sent"), 4);
        device.note_hangup();
        assert_eq!(device.read(&mut said).expect("it is the end"), 0);
    }
}
