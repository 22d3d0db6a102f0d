//! Hosts that authenticate, or do not: a line of `conformance`.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use device::Config;
use device_client::{Client, Error, Host, Options, Queue, Secret, Secrets, discover};
use nvme::dhchap::{Challenge, Failure, Hash, Negotiate, Reply, Success, Transaction};
use nvme::{Admin, ConnectData, Digests, Fabrics, Feature, Kv, Property, Status};

use crate::support::{self, Bench, run_raw, status_of};

const HOSTS: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const DEVICES: &str = "DHHC-1:00:wS+mm6ZuwVZtQGor9xVUptbzY7Uf7F8wqkEO23lnNc/nwr1X:";

fn secret(text: &str) -> Secret {
    Secret::parse(text).expect("it is one")
}

fn bench() -> Bench {
    let secrets = device::Secrets { host: secret(HOSTS), controller: Some(secret(DEVICES)) };
    Bench::with(Config { secrets: Some(secrets), ..Config::default() }, hikv::Options::new())
}

fn host(own: Option<&str>, other: Option<&str>) -> Host {
    let secrets = own.map(|own| Secrets { host: secret(own), controller: other.map(secret) });
    Host { secrets, ..Host::new() }
}

fn connected(bench: &Bench, host: Host) -> Result<Client, Error> {
    Client::connect(bench.addr, Options { host, ..Options::default() })
}

pub(crate) fn authentication(_: &Bench) {
    let bench = bench();
    for host in [host(Some(HOSTS), None), host(Some(HOSTS), Some(DEVICES))] {
        let mut client = connected(&bench, host).expect("it knows the secret");
        client.store("k", "v").expect("it stores");
        assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"v"[..]));
    }
    assert!(status_of(connected(&bench, host(None, None))).is(Status::AUTHENTICATION_REQUIRED));
    for (own, other) in [(DEVICES, None), (HOSTS, Some(HOSTS))] {
        let refused = connected(&bench, host(Some(own), other));
        assert!(matches!(refused, Err(Error::Authentication(_))), "{refused:?}");
    }
    // Discovery needs no secret, and neither do hosts with permission to use the socket.
    assert_eq!(discover(bench.addr).expect("the device answers").entries.len(), 1);
    Client::connect_shm(&bench.shm, Options::default()).expect("it connects").store("k", "w").expect("it stores");
}

/// A program that impersonates a device omits authentication.
#[test]
fn host_refuses_unauthenticated_device() {
    let bench = Bench::new();
    let wanting = host(Some(HOSTS), Some(DEVICES));
    let refused = connected(&bench, wanting.clone());
    assert!(matches!(refused, Err(Error::Authentication(_))), "{refused:?}");
    let refused = Client::connect_shm(&bench.shm, Options { host: wanting, ..Options::default() });
    assert!(matches!(refused, Err(Error::Authentication(_))), "{refused:?}");
    connected(&bench, host(Some(HOSTS), None)).expect("it wants to know nothing");
}

/// Connects an admin queue without authentication.
fn unknown(bench: &Bench) -> Queue {
    let host = Host { name: NAME.to_owned(), ..Host::new() };
    unknown_of(bench, &host, (ConnectData::ANY_CONTROLLER, 0))
}

/// Connects this queue of a controller in this host's name, without authentication.
fn unknown_of(bench: &Bench, host: &Host, (controller, queue): (u16, u16)) -> Queue {
    // A host without secrets stops when authentication is required.
    let mut wire = device_client::Wire::open(bench.addr, Digests::default()).expect("it connects");
    let connect = Fabrics::Connect(nvme::Connect { queue, queue_entries: 31, keep_alive_ms: 0, attributes: 0 });
    let data =
        ConnectData { host_id: host.id, controller, subsystem: bench.subsystem.clone(), host: host.name.clone() };
    let command = connect.command(1).with_sgl(nvme::Sgl::InCapsule { offset: 0, len_bytes: ConnectData::BYTES as u32 });
    let result = support::send(&mut wire, &command, &data.encode()).result;
    assert_eq!(result >> 16, 2, "authentication is asked for");
    Queue::of(wire)
}

const NAME: &str = "nqn.2024-01.org.example:host";

fn send(queue: &mut Queue, message: &[u8]) -> Status {
    run_raw(queue, Fabrics::AuthSend { len_bytes: message.len() as u32 }.command(0), message, 0).status
}

fn receive(queue: &mut Queue) -> Vec<u8> {
    run_raw(queue, Fabrics::AuthReceive { len_bytes: 4096 }.command(0), &[], 4096).data
}

#[test]
fn unauthenticated_host_executes_nothing() {
    let bench = bench();
    let mut queue = unknown(&bench);
    let property = Fabrics::PropertyGet { offset: 0, len_bytes: Property::Capabilities.len_bytes() };
    let enable = Fabrics::PropertySet { offset: 0x14, len_bytes: 4, value: nvme::Configuration::ENABLED.0.into() };
    for command in [property.command(0), enable.command(0), Admin::KeepAlive.command(0, 0)] {
        assert!(run_raw(&mut queue, command, &[], 0).status.is(Status::AUTHENTICATION_REQUIRED));
    }
    // A reply without a challenge, and a correct one to another challenge.
    let reply = Reply { id: 1, response: vec![0; 32], challenge: None }.encode();
    assert!(send(&mut queue, &reply).is_success());
    assert!(Failure::decode(&receive(&mut queue)).is_some());
    assert!(
        send(&mut queue, &Negotiate { id: 1, hashes: vec![Hash::Sha256] }.encode()).is(Status::COMMAND_SEQUENCE_ERROR)
    );
    bench_is_alive(&bench);
}

fn negotiated(bench: &Bench) -> (Queue, Challenge) {
    let mut queue = unknown(bench);
    let challenge = challenge_of(&mut queue);
    (queue, challenge)
}

fn challenge_of(queue: &mut Queue) -> Challenge {
    assert!(send(queue, &Negotiate { id: 1, hashes: vec![Hash::Sha256] }.encode()).is_success());
    Challenge::decode(&receive(queue)).expect("it is asked")
}

/// Host names and identifiers are no secrets: a host that knows another one's takes no queue from it.
#[test]
fn queue_belongs_to_authenticated_host() {
    let bench = bench();
    let host = host(Some(HOSTS), None);
    let controller = bench.controller_of(&host, 0);
    let number = controller.admin.controller;
    let mut early = unknown_of(&bench, &host, (number, 1));
    let mut queue = controller.queue(1, 8).expect("nobody has it");
    // This host also has the secret, but the queue is taken by now.
    let asked = challenge_of(&mut early);
    let by = Transaction {
        hash: asked.hash,
        id: 1,
        sequence: asked.sequence,
        host: &host.name,
        subsystem: &bench.subsystem,
    };
    let reply = Reply { id: 1, response: secret(HOSTS).host_response(&asked.value, &by), challenge: None };
    assert!(send(&mut early, &reply.encode()).is_success());
    let response = run_raw(&mut early, Fabrics::AuthReceive { len_bytes: 4096 }.command(0), &[], 4096).status;
    assert!(response.is(Status::CONNECT_BUSY), "{response}");
    let flush = || Kv::Flush.command(0, 1);
    assert!(run_raw(&mut early, flush(), &[], 0).status.is(Status::AUTHENTICATION_REQUIRED));
    drop(early);
    assert!(run_raw(&mut queue, flush(), &[], 0).status.is_success());
    assert!(status_of(controller.queue(1, 8)).is(Status::CONNECT_BUSY), "it is the host's still");
}

/// Nor does it keep a controller alive after its host has disconnected.
#[test]
fn controller_belongs_to_authenticated_host() {
    let bench = bench();
    let host = host(Some(HOSTS), None);
    let mut controller = bench.controller_of(&host, 0);
    let number = controller.admin.controller;
    let silent = Admin::SetFeature { number: Feature::KEEP_ALIVE, value: 300, save: false };
    controller.admin(silent, 0, 0).expect("the device accepts it");
    let (is_over, unproven) = (AtomicBool::new(false), Host { secrets: None, ..host.clone() });
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                assert!(bench.connect(&unproven, &bench.subsystem, (number, 1), 8).is_err());
            }
        });
        let ended = controller.admin.wire().socket().read(&mut [0; 8]);
        is_over.store(true, Ordering::Release);
        assert_eq!(ended.expect("it is closed in order"), 0);
    });
}

/// Messages observed on one connection are useless on another.
#[test]
fn response_is_good_for_one_challenge() {
    let bench = bench();
    let (mut queue, asked) = negotiated(&bench);
    let by = Transaction { hash: asked.hash, id: 1, sequence: asked.sequence, host: NAME, subsystem: &bench.subsystem };
    let heard = Reply { id: 1, response: secret(HOSTS).host_response(&asked.value, &by), challenge: None }.encode();
    assert!(send(&mut queue, &heard).is_success());
    assert!(matches!(Success::decode(&receive(&mut queue)), Some(Success::Controller { response: None, .. })));
    let (mut queue, other) = negotiated(&bench);
    assert_ne!(asked.value, other.value);
    assert!(send(&mut queue, &heard).is_success());
    assert_eq!(Failure::decode(&receive(&mut queue)).map(|failure| failure.why), Some(1));
    assert!(run_raw(&mut queue, Admin::KeepAlive.command(0, 0), &[], 0).status.is(Status::AUTHENTICATION_REQUIRED));
    bench_is_alive(&bench);
}

/// The host's last message must belong to the same transaction.
#[test]
fn the_last_word_is_of_its_transaction() {
    let bench = bench();
    for (id, status) in [(1, Status::COMMAND_SEQUENCE_ERROR), (2, Status::AUTHENTICATION_REQUIRED)] {
        let (mut queue, asked) = negotiated(&bench);
        let by =
            Transaction { hash: asked.hash, id: 1, sequence: asked.sequence, host: NAME, subsystem: &bench.subsystem };
        let response = secret(HOSTS).host_response(&asked.value, &by);
        let reply = Reply { id: 1, response, challenge: Some((7, vec![1; 32])) };
        assert!(send(&mut queue, &reply.encode()).is_success());
        assert!(matches!(Success::decode(&receive(&mut queue)), Some(Success::Controller { response: Some(_), .. })));
        assert!(send(&mut queue, &Success::Host { id }.encode()).is_success());
        // It is not enabled, or not authenticated.
        assert!(run_raw(&mut queue, Admin::KeepAlive.command(0, 0), &[], 0).status.is(status), "{id}");
    }
}

fn bench_is_alive(bench: &Bench) {
    connected(bench, host(Some(HOSTS), None)).expect("it knows the secret").store("alive", "yes").expect("it stores");
}
