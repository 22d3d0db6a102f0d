//! Tests a server with a low limit of open files: the server reports the limit, keeps open connections, and
//! accepts new ones once others are closed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::serve::Serving;
use crate::support::{Place, hikv, left_out};

/// Longer than any reply takes: a test that hangs fails.
const ANSWER_MAX: Duration = Duration::from_secs(60);

fn limit(serving: &Serving, count: u64) {
    let limit = Rlimit { current: Some(count), maximum: Some(count.max(4_096)) };
    prlimit(Some(Pid::from_child(&serving.child)), Resource::Nofile, limit).expect("the limit is changed");
}

fn asked(socket: &mut TcpStream, request: &str, answer: &str) {
    socket.write_all(request.as_bytes()).unwrap();
    answered(socket, answer);
}

fn answered(socket: &mut TcpStream, answer: &str) {
    let mut printed = vec![0; answer.len()];
    socket.set_read_timeout(Some(ANSWER_MAX)).unwrap();
    socket.read_exact(&mut printed).unwrap();
    assert_eq!(String::from_utf8_lossy(&printed), answer);
}

#[test]
fn open_file_limit_bounds_maxclients() {
    let place = Place::new();
    let serve = hikv("serve", &place.store(), &["--addr", "127.0.0.1:0", "--threads", "2"]);
    let mut limited = Command::new("prlimit");
    if limited.arg("--version").output().is_err() {
        return left_out("there is no prlimit");
    }
    let mut limited = Command::new("prlimit");
    limited.arg("--nofile=50").arg(serve.get_program()).args(serve.get_args());
    limited.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let serving = Serving::spawned(limited);
    // 32 open files are reserved, and 3 per event loop.
    let mut clients: Vec<TcpStream> = (0..12).map(|_| serving.connect()).collect();
    clients.iter_mut().for_each(|client| asked(client, "PING\r\n", "+PONG\r\n"));
    answered(&mut serving.connect(), "-ERR max number of clients reached\r\n");
    asked(&mut clients[0], "CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n$2\r\n12\r\n");
    let refused = "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to \
                   handle the specified number of clients, try with 12\r\n";
    asked(&mut clients[0], "CONFIG SET maxclients 13\r\n", refused);
    asked(&mut clients[0], "CONFIG SET maxclients 11\r\n", "+OK\r\n");
    drop(clients);
    serving.signal(Signal::TERM);
    let ended = serving.ended();
    let messages = ended.messages();
    ended.succeeded();
    assert!(messages.contains("maxclients lowered") && messages.contains("clients_max=12"), "{messages}");
}

#[test]
fn unaccepted_clients_wait() {
    let place = Place::new();
    let serving = Serving::start(&place);
    let mut first = serving.connect();
    asked(&mut first, "SET k v\r\n", "+OK\r\n");
    for _ in 0..2 {
        // Fewer than the open files.
        limit(&serving, 8);
        let mut second = serving.connect();
        second.write_all(b"GET k\r\n").unwrap();
        (0..1_000).for_each(|_| asked(&mut first, "GET k\r\n", "$1\r\nv\r\n"));
        limit(&serving, 4_096);
        answered(&mut second, "$1\r\nv\r\n");
    }
    drop(first);
    serving.signal(Signal::TERM);
    let ended = serving.ended();
    let messages = ended.messages();
    ended.succeeded();
    let said = messages.lines().filter(|line| line.contains("cannot accept connections"));
    // One message each time, not one per attempt.
    assert_eq!(said.count(), 2, "{messages}");
    assert!(messages.contains("Too many open files"), "{messages}");
}
