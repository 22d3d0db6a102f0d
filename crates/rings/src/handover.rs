//! A Unix socket on which a device hands memory to the hosts that may connect.
//!
//! The device says one message, a greeting with two files behind it: the memory, and the eventfd that the host wakes it by. The host
//! says nothing on the socket, then or later.

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
use crate::untaken::{UNTAKEN_COUNT_MAX, Untaken};

/// What the device says: what it is, and the version of the memory's layout.
const GREETING: [u8; 16] = *b"hikv rings\0\0\0\0\0\x01";
const BACKLOG: i32 = 128;

/// Why a device does not listen at a path.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// Something lies there that is no socket.
    NoSocket,
    /// Another process listens there.
    InUse,
    /// The operating system refused.
    Io(io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::NoSocket => write!(f, "what lies there is no socket"),
            ListenError::InUse => write!(f, "another process listens there"),
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

/// A socket that hosts connect to. It is removed with the listener, if it lies there still.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// What was made at the path.
    made: Option<(u64, u64)>,
    untaken: Arc<Untaken>,
}

impl Listener {
    /// Listens at `path`, where processes may connect that may write to a file of these permissions: nobody can before they are set. A
    /// socket of a process that is gone is replaced.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn bind(path: &Path, mode: u32) -> Result<Listener, ListenError> {
        remove_dead(path)?;
        let socket = unconnected(SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        let (made, untaken) = (found_at(path), Arc::default());
        let listener = Listener { socket: socket.into(), path: path.to_owned(), made, untaken };
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o777))?;
        listen(&listener.socket, BACKLOG)?;
        Ok(listener)
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What becomes readable when a host waits.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Takes a host that waits, and hands it memory of its own.
    ///
    /// # Errors
    /// `WouldBlock` if none waits; `ConnectionAborted` if one was turned away, since too many others have not taken what they were handed;
    /// else what the operating system refused.
    pub fn accept(&self) -> io::Result<DeviceEnd> {
        let (socket, _) = self.socket.accept()?;
        if self.untaken.count() >= UNTAKEN_COUNT_MAX {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        socket.set_nonblocking(true)?;
        let (memory, file) = Memory::make()?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        send(&socket, &[file.as_fd(), bell.as_fd()])?;
        Ok(DeviceEnd::new(memory, socket, bell, &self.untaken))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // What has come there since is another's. If it is gone already, that is as well.
        if self.made.is_some() && self.made == found_at(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file that lies at a path, by its numbers.
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
        // As many wait there as may.
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
    /// Connects to the device at `path`; that, reads and writes wait so long.
    ///
    /// # Errors
    /// The operating system's; `WouldBlock` if nobody accepts or greets in that time; `InvalidData` if what listens there is no such
    /// device.
    pub fn connect(path: &Path, timeout: Option<Duration>) -> io::Result<HostEnd> {
        let socket = UnixStream::from(unconnected(SocketFlags::empty())?);
        socket.set_read_timeout(timeout)?;
        // How long connecting waits where as many wait already as may.
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
            _ => Err(io::Error::new(ErrorKind::InvalidData, "what listens there is no device with rings")),
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
        // As a device leaves it that was killed.
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

    /// A device that is stopped, or hangs, and as many hosts before its door as may be.
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
    fn more_than_a_ring_goes_both_ways_and_an_end_is_told() {
        let (_dir, _listener, mut device, mut host) = pair();
        let bytes: Vec<u8> = (0..3 * crate::RING_BYTES + 5).map(|at| (at % 251) as u8).collect();
        let len = bytes.len();
        thread::scope(|scope| {
            // What the host sends comes back.
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
        device.write_all(b"last").expect("there is space");
        drop(device);
        let mut said = Vec::new();
        host.read_to_end(&mut said).expect("it ends in order");
        assert_eq!(said, b"last");
    }

    /// What has rung since it was asked last.
    fn rung(device: &DeviceEnd) -> Option<u64> {
        let mut count = [0; 8];
        // SAFETY: the device has it open.
        let bell = unsafe { std::os::fd::BorrowedFd::borrow_raw(device.fds()[1]) };
        rustix::io::read(bell, &mut count).is_ok().then(|| u64::from_ne_bytes(count))
    }

    /// A host rings for a device that sleeps, and for no other; and a device that looks comes to sleep.
    #[test]
    fn host_rings_for_device_that_sleeps() {
        let (_dir, _listener, mut device, mut host) = pair();
        let mut said = [0; 10];
        for _ in 0..3 {
            host.write_all(b"awake").expect("there is space");
            assert!(device.is_awake() && rung(&device).is_none());
            assert_eq!(device.poll(), Readiness::Ready);
            assert_eq!(device.read(&mut said).expect("it was sent"), 5);
            assert_eq!(device.read(&mut said).expect_err("nothing more").kind(), ErrorKind::WouldBlock);
            let poll_count =
                std::iter::repeat_with(|| device.poll()).take_while(|poll| *poll == Readiness::Pending).count();
            assert!(!device.is_awake() && poll_count < 1 << 20);
            host.write_all(b"asleep").expect("there is space");
            assert_eq!(rung(&device), Some(1));
            assert_eq!(device.read(&mut said).expect("it was sent"), 6);
            // Woken by something else, it takes its word back.
            while device.poll() != Readiness::Sleeping {}
            host.write_all(b"more").expect("there is space");
            rung(&device);
            host.forge(true, 2, 1);
            assert_eq!(device.read(&mut said).expect("it was sent"), 4);
        }
    }

    /// What is staged wakes nobody before it is told.
    #[test]
    fn sleeping_host_is_woken_by_publish() {
        let (_dir, _listener, mut device, mut host) = pair();
        host.forge(false, 2, 1);
        assert!(device.stage(b"bytes") && host.says_that_it_sleeps());
        device.publish(5);
        assert!(!host.says_that_it_sleeps());
        assert_eq!(host.read(&mut [0; 10]).expect("it was told"), 5);
    }

    /// A host that was late has rung for bytes that were read, and taken the word of a later sleep.
    #[test]
    fn device_woken_spuriously_is_rung_again() {
        let (_dir, _listener, mut device, mut host) = pair();
        while device.poll() != Readiness::Sleeping {}
        host.forge(true, 2, 0);
        assert_eq!(device.read(&mut [0; 8]).expect_err("nothing was sent").kind(), ErrorKind::WouldBlock);
        assert!(device.is_awake(), "nobody would ring");
        while device.poll() != Readiness::Sleeping {}
        host.write_all(b"more").expect("there is space");
        assert_eq!(rung(&device), Some(1));
    }

    /// They connect, take nothing, and stay when the device has closed.
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
            assert!(idle.len() <= UNTAKEN_COUNT_MAX, "as many as like keep the device's files");
        };
        assert_eq!((refused.kind(), idle.len()), (ErrorKind::ConnectionAborted, UNTAKEN_COUNT_MAX + 1));
        // They are told that their connections are over, and one that takes what it was handed makes place for another.
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
        host.write_all(b"last").expect("there is space");
        assert!(matches!(device.write(b"x"), Ok(1)));
        drop(host);
        let mut said = [0; 10];
        assert_eq!(device.read(&mut said).expect("it was sent"), 4);
        device.doubt();
        assert_eq!(device.read(&mut said).expect("it is the end"), 0);
    }
}
