//! A device that goes and comes again, at the same place.

use std::io::ErrorKind;
use std::time::Duration;

use device_client::{Client, Error, Operation, Options, Outcome, StoreIf, Wire};

use crate::support::Bench;

#[test]
fn a_client_goes_on_when_its_connection_was_closed() {
    [false, true].into_iter().for_each(goes_on_when_closed);
}

fn goes_on_when_closed(by_shm: bool) {
    let bench = Bench::new().by_shm(by_shm);
    let mut client = bench.client();
    client.store("k", "1").expect("it stores");
    // The controller is shut by another hand: both of its connections close.
    let controller = client.controller().expect("it is there");
    controller.admin.wire().socket().close().expect("it is open");
    client.store("k", "2").expect("it stores, by another connection");
    let operations: Vec<Operation> = (0..300u16)
        .map(|n| Operation::Store { key: n.to_be_bytes().into(), value: vec![7; 100], when: StoreIf::Always })
        .collect();
    assert!(client.run(&operations).expect("they are done").iter().all(|outcome| *outcome == Outcome::Done));
    assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_client_without_a_device_says_so() {
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
fn what_may_have_been_done_is_not_repeated() {
    let bench = Bench::new();
    let mut client = bench.client();
    let controller = client.controller().expect("it is there");
    controller.admin.wire().socket().close().expect("it is open");
    // The queue closes with its controller, before the command or behind it.
    match client.store_if("k", "v", StoreIf::Absent) {
        Ok(true) | Err(Error::Unknown(_)) => {}
        other => panic!("{other:?}"),
    }
}

/// What answers to nothing: a listener that nobody accepts from, and a socket whose device says nothing.
#[test]
fn a_client_does_not_wait_for_ever() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
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
    assert!(Client::connect_shm(&path, options).is_err_and(|error| matches!(error, Error::Io(_))));
}
