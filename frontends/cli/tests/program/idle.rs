//! Tests a server with ten thousand idle clients.

use std::fs;
use std::net::TcpStream;

use rustix::process::{Resource, Signal, getrlimit, setrlimit};

use crate::serve::Serving;
use crate::support::{Place, hikv, left_out};

const CLIENT_COUNT: u64 = 10_000;
/// Open files in addition to the connections.
const OTHER_FILE_COUNT: u64 = 200;
/// The maximum memory per idle client.
const CLIENT_BYTES_MAX: u64 = 4 << 10;

fn resident_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn ten_thousand_idle_clients_cost_little() {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = CLIENT_COUNT + OTHER_FILE_COUNT;
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return left_out("the process may not open so many files");
    }
    limit.current = limit.current.map(|current| current.max(wanted));
    setrlimit(Resource::Nofile, limit).unwrap();
    let place = Place::new();
    let arguments = ["--addr", "127.0.0.1:0", "--threads", "2", "--max-clients", "10200"];
    let serving = Serving::spawned(hikv("serve", &place.store(), &arguments));
    assert_eq!(serving.ask(b"SET k v\r\n", 5), b"+OK\r\n");
    let before_bytes = resident_bytes(serving.child.id());
    let clients: Vec<TcpStream> = (0..CLIENT_COUNT).map(|_| serving.connect()).collect();
    for _ in 0..100 {
        assert_eq!(serving.ask(b"GET k\r\n", 7), b"$1\r\nv\r\n");
    }
    let client_bytes = resident_bytes(serving.child.id()).saturating_sub(before_bytes) / CLIENT_COUNT;
    assert!(client_bytes < CLIENT_BYTES_MAX, "{client_bytes} bytes a client");
    drop(clients);
    serving.stop(Signal::TERM);
}
