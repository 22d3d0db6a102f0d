//! Tests the memory use of a server.

use std::io::Write;

use rustix::process::Signal;

use crate::serve::Serving;
use crate::support::{Place, hikv};

const CLIENT_COUNT: usize = 500;
const HALF_BYTES: usize = 200_000;

/// Returns a number in INFO.
pub(crate) fn figure(serving: &Serving, name: &str) -> u64 {
    let request = b"INFO\r\n";
    let length = String::from_utf8(serving.ask(request, 7)).unwrap();
    let (digits, _) = length[1..].split_once('\r').unwrap();
    let answer = serving.ask(request, digits.parse().unwrap());
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {answer}")).parse().unwrap()
}

#[test]
fn memory_of_a_burst_is_given_back() {
    let place = Place::new();
    let arguments = ["--addr", "127.0.0.1:0", "--threads", "1"];
    let serving = Serving::spawned(hikv("serve", &place.store(), &arguments));
    let before = figure(&serving, "used_memory_rss");
    let half = [b"*2\r\n$4\r\nECHO\r\n$400000\r\n".as_slice(), &[b'x'; HALF_BYTES]].concat();
    let mut clients: Vec<_> = (0..CLIENT_COUNT).map(|_| serving.connect()).collect();
    clients.iter_mut().for_each(|client| client.write_all(&half).unwrap());
    // The server has read all requests once its memory has grown by their length.
    while figure(&serving, "used_memory_rss") < before + (CLIENT_COUNT * HALF_BYTES) as u64 {}
    drop(clients);
    while figure(&serving, "connected_clients") > 1 {}
    let after = figure(&serving, "used_memory_rss");
    assert!(after < before + (CLIENT_COUNT * HALF_BYTES) as u64 / 2, "{before} before, {after} after");
    serving.stop(Signal::INT);
}
