//! A device that goes and comes again, at the same place.

use device_client::{Client, Error, Operation, Options, Outcome, StoreIf, Wire};

use crate::support::Bench;

#[test]
fn a_client_goes_on_when_its_connection_was_closed() {
    let bench = Bench::new();
    let mut client = bench.client();
    client.store("k", "1").expect("it stores");
    // The controller is shut by another hand: both of its connections close.
    let controller = client.controller().expect("it is there");
    controller.admin.wire().socket().shutdown(std::net::Shutdown::Both).expect("it is open");
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
    let options = Options { reconnect_max: std::time::Duration::ZERO, ..Options::default() };
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
    controller.admin.wire().socket().shutdown(std::net::Shutdown::Both).expect("it is open");
    // The queue closes with its controller, before the command or behind it.
    match client.store_if("k", "v", StoreIf::Absent) {
        Ok(true) | Err(Error::Unknown(_)) => {}
        other => panic!("{other:?}"),
    }
}
