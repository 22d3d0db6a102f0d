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
fn unclaimed_connections_are_bounded() {
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
