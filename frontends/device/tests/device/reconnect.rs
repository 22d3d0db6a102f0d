//! A device that stops and restarts at the same address.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use device_client::{Client, Error, Operation, Options, Outcome, StoreIf, Wire};

use crate::support::Bench;

#[test]
fn client_continues_after_connection_loss() {
    [false, true].into_iter().for_each(goes_on_when_closed);
}

fn goes_on_when_closed(by_shm: bool) {
    let bench = Bench::new().by_shm(by_shm);
    let mut client = bench.client();
    client.store("k", "1").expect("it stores");
    // Another thread shuts down the controller: both of its connections close.
    let controller = client.controller().expect("it is there");
    controller.admin.wire().socket().close().expect("it is open");
    client.store("k", "2").expect("it stores, by another connection");
    let operations: Vec<Operation> = (0..300u16)
        .map(|n| Operation::Store { key: n.to_be_bytes().into(), value: vec![7; 100], when: StoreIf::Always })
        .collect();
    assert!(client.run(&operations).expect("they are done").iter().all(|outcome| *outcome == Outcome::Done));
    assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"2"[..]));
}

/// Like `localhost`, whose first address may have no listener.
#[test]
fn client_tries_each_address_of_name() {
    let bench = Bench::new();
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let addrs = [closed, bench.addr];
    let mut client = Client::connect(&addrs[..], Options::default()).expect("the second takes it");
    client.store("k", "v").expect("it stores");
    assert_eq!(device_client::discover(&addrs[..]).expect("the device answers").entries.len(), 1);
    assert!(Client::connect(&addrs[..1], Options::default()).is_err());
}

#[test]
fn client_without_device_says_so() {
    let bench = Bench::new();
    let addr = bench.addr;
    let options = Options { reconnect_max: Duration::ZERO, ..Options::default() };
    let mut client = Client::connect(addr, options.clone()).expect("it connects");
    drop(bench);
    assert!(matches!(client.store("k", "v"), Err(Error::Io(_))));
    assert!(matches!(Client::connect(addr, options), Err(Error::Io(_))));
    assert!(Wire::open(addr, nvme::Digests::default()).is_err());
}

#[test]
fn possibly_done_command_is_not_repeated() {
    let bench = Bench::new();
    let mut client = bench.client();
    let controller = client.controller().expect("it is there");
    controller.admin.wire().socket().close().expect("it is open");
    // The queue closes with its controller, before or after the command.
    match client.store_if("k", "v", StoreIf::Absent) {
        Ok(true) | Err(Error::Unknown(_)) => {}
        other => panic!("{other:?}"),
    }
}

/// Peers that never answer: a listener that accepts nothing, and a device that sends nothing.
#[test]
fn client_does_not_wait_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let options = Options {
        timeout: Some(Duration::from_millis(50)),
        reconnect_max: Duration::ZERO,
        subsystem: Some("nqn.2024-01.org.example:a".into()),
        ..Options::default()
    };
    let is_timeout = |error: &Error| matches!(error, Error::Io(error) if error.kind() == ErrorKind::TimedOut);
    let refused = Client::connect(listener.local_addr().expect("it listens"), options.clone());
    assert!(refused.is_err_and(|error| is_timeout(&error)));
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    let _silent = std::os::unix::net::UnixListener::bind(&path).expect("a path");
    assert!(Client::connect_shm(&path, options).is_err_and(|error| is_timeout(&error)));
}

/// The marker that a relay looks for in clients' data.
const HELD: &[u8] = b"held back";

fn shut(socket: &TcpStream) {
    // It may already be shut down.
    let _ = socket.shutdown(Shutdown::Both);
}

/// Forwards bytes, but not the end of the stream: each side has its own view of a network failure. `keep` decides
/// whether it fails here.
fn pass(mut from: TcpStream, mut to: TcpStream, keep: impl Fn(&mut [u8]) -> bool) {
    let mut bytes = [0; 8192];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        if keep(&mut bytes[..len]) || to.write_all(&bytes[..len]).is_err() {
            return;
        }
    }
}

fn copy_of(socket: &TcpStream) -> TcpStream {
    socket.try_clone().expect("a file")
}

/// Returns the options of a client that connects to a relay: only its admin queue, then one other.
fn through(bench: &Bench) -> Options {
    Options { subsystem: Some(bench.subsystem.clone()), reconnect_max: Duration::ZERO, ..Options::default() }
}

/// A store that the network holds back is repeated on a new connection. When the network finally delivers it, a newer
/// value exists.
#[test]
fn repeated_command_is_not_done_again() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("it listens");
    let (keep, kept) = mpsc::channel();
    let was_held = AtomicBool::new(false);
    thread::scope(|scope| {
        let (bench, was_held) = (&bench, &was_held);
        let relay = scope.spawn(move || {
            // Two connections before the network fails, and two after.
            let link = |_| {
                let (client, _) = listener.accept().expect("a client comes");
                let device = TcpStream::connect(bench.addr).expect("it listens");
                let (keep, at_client) = (keep.clone(), copy_of(&client));
                let is_held = move |bytes: &mut [u8]| {
                    let is_held = bytes.ends_with(HELD) && !was_held.swap(true, Ordering::Relaxed);
                    if is_held {
                        keep.send(bytes.to_vec()).expect("the test waits");
                        shut(&at_client);
                    }
                    is_held
                };
                let (from, to) = (copy_of(&client), copy_of(&device));
                scope.spawn(move || pass(from, to, is_held));
                let from = copy_of(&device);
                (device, scope.spawn(move || pass(from, client, |_| false)))
            };
            (0..4).map(link).collect::<Vec<_>>()
        });
        let mut client = Client::connect(addr, through(bench)).expect("it connects");
        client.store("k", HELD).expect("it is repeated");
        client.store("k", "newer").expect("it stores");
        let mut links = relay.join().expect("it passes all on");
        let (mut old, answered) = links.swap_remove(1);
        // The device may have closed the connection.
        let _ = old.write_all(&kept.recv().expect("it was held"));
        answered.join().expect("the device has answered, or closed");
        let value = bench.store.get("k").expect("it reads");
        drop(client);
        links.iter().for_each(|(device, _)| shut(device));
        assert_eq!(value.as_deref(), Some(&b"newer"[..]));
    });
}

/// Connections that break at the first command are not retried endlessly.
#[test]
fn client_does_not_connect_for_ever() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("it listens");
    thread::scope(|scope| {
        let bench = &bench;
        scope.spawn(move || {
            for _ in 0..4 {
                let (client, _) = listener.accept().expect("a client comes");
                let device = TcpStream::connect(bench.addr).expect("it listens");
                let (at_client, at_device) = (copy_of(&client), copy_of(&device));
                let breaks = move |bytes: &mut [u8]| {
                    let breaks = bytes.ends_with(HELD);
                    if breaks {
                        shut(&at_client);
                        shut(&at_device);
                    }
                    breaks
                };
                let (from, to, back) = (copy_of(&client), copy_of(&device), device);
                scope.spawn(move || {
                    pass(from, copy_of(&to), breaks);
                    shut(&to);
                });
                scope.spawn(move || pass(back, client, |_| false));
            }
        });
        let mut client = Client::connect(addr, through(bench)).expect("it connects");
        let broken = client.store("k", HELD);
        assert!(matches!(broken, Err(Error::Unknown(_))), "{broken:?}");
    });
}

/// A corrupted value is sent again although the store is conditional: the device has reported that nothing was done.
#[test]
fn corrupt_value_is_sent_again() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("it listens");
    let was_spoilt = AtomicBool::new(false);
    let stored = thread::scope(|scope| {
        let (bench, was_spoilt) = (&bench, &was_spoilt);
        scope.spawn(move || {
            // Two connections before the value is corrupted, and two after.
            for _ in 0..4 {
                let (client, _) = listener.accept().expect("a client comes");
                let device = TcpStream::connect(bench.addr).expect("it listens");
                let spoils = move |bytes: &mut [u8]| {
                    let at = bytes.windows(HELD.len()).position(|window| window == HELD);
                    if let Some(at) = at.filter(|_| !was_spoilt.swap(true, Ordering::Relaxed)) {
                        bytes[at] ^= 1;
                    }
                    false
                };
                let (from, to) = (copy_of(&client), copy_of(&device));
                scope.spawn(move || {
                    pass(from, copy_of(&to), spoils);
                    shut(&to);
                });
                scope.spawn(move || pass(device, client, |_| false));
            }
        });
        let digests = nvme::Digests { header: false, data: true };
        let mut client = Client::connect(addr, Options { digests, ..through(bench) }).expect("it connects");
        let stored = client.store_if("k", HELD, StoreIf::Absent);
        drop(client);
        // Unblocks a relay that waits for a client which has not reconnected.
        (0..4).for_each(|_| drop(TcpStream::connect(addr)));
        stored
    });
    assert!(was_spoilt.into_inner() && stored.expect("it is sent again"));
    assert_eq!(bench.store.get("k").expect("it reads").as_deref(), Some(HELD));
}

/// One of several keys is invalid: the next command must not send the others, over newer values.
#[test]
fn refused_command_leaves_nothing() {
    let bench = Bench::new();
    let mut client = bench.client();
    let store = |key| Operation::Store { key, value: "old", when: StoreIf::Always };
    assert!(matches!(client.run(&[store("k"), store("")]), Err(Error::KeyLength { len_bytes: 0 })));
    bench.store.put("k", "newer").expect("it stores");
    assert_eq!(client.retrieve("another").expect("it reads"), None);
    assert_eq!(bench.store.get("k").expect("it reads").as_deref(), Some(&b"newer"[..]));
}
