//! Tests the output and the end of `serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ended, Place, hikv};

/// A running server on a free port.
pub(crate) struct Serving {
    pub(crate) child: Child,
    out: BufReader<ChildStdout>,
    banner: String,
    address: String,
}

impl Serving {
    pub(crate) fn start(place: &Place) -> Serving {
        let arguments = ["--addr", "127.0.0.1:0", "--threads", "2"];
        Serving::spawned(hikv("serve", &place.store(), &arguments))
    }

    /// Starts the server by `command`.
    pub(crate) fn spawned(mut command: Command) -> Serving {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("durability") {
            assert_ne!(out.read_line(&mut banner).unwrap(), 0, "{banner}");
        }
        let address = banner.split_once("127.0.0.1:").unwrap().1.split(',').next().unwrap();
        let address = format!("127.0.0.1:{address}");
        Serving { child, out, banner, address }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the lines that the server printed at its start.
    pub(crate) fn banner(&self) -> &str {
        &self.banner
    }

    /// Returns the TLS port.
    pub(crate) fn tls_port(&self) -> &str {
        let (_, rest) = self.banner.split_once("tls         127.0.0.1:").unwrap();
        rest.split(',').next().unwrap()
    }

    /// Returns the first `len_bytes` of the reply to `request`.
    pub(crate) fn ask(&self, request: &[u8], len_bytes: usize) -> Vec<u8> {
        let mut socket = self.connect();
        socket.write_all(request).unwrap();
        let mut answer = vec![0; len_bytes];
        socket.read_exact(&mut answer).unwrap();
        answer
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops the server, checks its success, and returns the output after the banner.
    pub(crate) fn stop(self, signal: Signal) -> String {
        self.signal(signal);
        String::from_utf8(self.ended().succeeded()).unwrap()
    }

    /// Waits for the end of the process, which the caller causes.
    pub(crate) fn ended(mut self) -> Ended {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.out.read_to_end(&mut stdout).unwrap();
        if let Some(mut messages) = self.child.stderr.take() {
            messages.read_to_end(&mut stderr).unwrap();
        }
        Ended(Output { status: self.child.wait().unwrap(), stdout, stderr })
    }
}

/// Kills the server, so that a failing test leaves none behind. A stopped server is not affected.
impl Drop for Serving {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

#[test]
fn banner_names_store_address_and_durability() {
    let place = Place::new();
    place.run_with_input("load", &["-"], b"a\t1\nb\t2\n").succeeded();
    let serving = Serving::start(&place);
    for said in [
        place.store().to_str().unwrap(),
        "2 items",
        "order ",
        "medium",
        "durability",
        "power: journaled",
        &serving.address,
    ] {
        assert!(serving.banner.contains(said), "'{said}' is missing: {}", serving.banner);
    }
    serving.stop(Signal::INT);
}

#[test]
fn client_and_program_see_same_items() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        place.run("put", &["from", "terminal"]).succeeded();
        let serving = Serving::start(&place);
        assert_eq!(serving.ask(b"GET from\r\n", 14), b"$8\r\nterminal\r\n");
        assert_eq!(serving.ask(b"*3\r\n$3\r\nSET\r\n$4\r\n\0\xff\r\n\r\n$6\r\nclient\r\n", 5), b"+OK\r\n");
        assert!(serving.stop(signal).contains("2 items"));
        let dumped = String::from_utf8(place.run("dump", &["--bare"]).succeeded()).unwrap();
        assert!(dumped.lines().any(|line| line == "\\0\\xff\\r\\n\tclient"), "{dumped}");
    }
}

#[test]
fn the_holder_is_named_while_it_serves() {
    let place = Place::new();
    let serving = Serving::start(&place);
    let holder = serving.child.id().to_string();
    let port = serving.address().rsplit(':').next().unwrap().to_owned();
    for (command, arguments) in [
        ("put", &["k", "v"][..]),
        ("scan", &[]),
        ("check", &[]),
        ("dump", &[]),
        ("stats", &["--json"]),
        ("serve", &["--addr", "127.0.0.1:0"]),
    ] {
        place.run(command, arguments).failed(2, &["store", &holder, "redis-cli -h 127.0.0.1 -p", &port, "BGSAVE"]);
    }
    place.run("backup", &[place.file("backup")]).failed(2, &["store", &holder, &port, "BGSAVE"]);
    serving.stop(Signal::TERM);
    place.run("get", &["k"]).failed(1, &["'k'"]);
}

#[test]
fn served_store_is_read_through_server() {
    let place = Place::new();
    let value: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let file = place.write("value", &value);
    place.run("put", &["k", "--value-file", file.to_str().unwrap()]).succeeded();
    place.run("put", &["soon", "v", "--ttl", "1000"]).succeeded();
    // The second address does not use the Redis protocol.
    let serving = Serving::spawned(hikv(
        "serve",
        &place.store(),
        &["--addr", "127.0.0.1:0", "--http", "127.0.0.1:0", "--threads", "1"],
    ));
    assert_eq!(place.run("get", &["k"]).succeeded(), value);
    place.run("get", &["absent"]).failed(1, &["'absent'"]);
    assert_eq!(place.run("ttl", &["k"]).succeeded(), b"unlimited\n");
    assert!(place.run("ttl", &["soon"]).succeeded().starts_with(b"9"));
    place.run("ttl", &["absent"]).failed(1, &["'absent'"]);
    let stats = String::from_utf8(place.run("stats", &[""; 0]).succeeded()).unwrap();
    assert!(stats.contains("db0:keys=2"), "{stats}");
    serving.stop(Signal::TERM);
}

#[test]
fn password_server_is_named_not_asked() {
    let place = Place::new();
    let password = place.write("password", "hush\n");
    let arguments = ["--addr", "127.0.0.1:0", "--password-file", password.to_str().unwrap()];
    let serving = Serving::spawned(hikv("serve", &place.store(), &arguments));
    place.run("get", &["k"]).failed(2, &["redis-cli -h 127.0.0.1 -p"]);
    serving.stop(Signal::TERM);
}

#[test]
fn unavailable_address_is_named() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    place.run("serve", &["--addr", &taken]).failed(2, &[&taken, "another program listens on this address"]);
    place.run("serve", &["--addr", "nowhere"]).failed(2, &["nowhere"]);
    assert!(!place.store().exists(), "what cannot be served makes no store");
}

#[test]
fn invalid_option_creates_no_store() {
    let place = Place::new();
    let (gone, bad) = (place.file("gone"), place.write("bad.acl", "user ada +nothing\n"));
    let [gone, bad] = [&gone, &bad].map(|path| path.to_str().unwrap());
    place.run("serve", &["--split", "0-2"]).misused(&["--split", "no serving thread"]);
    let cases: [(&[&str], &str); 7] = [
        (&["--split", "2-1", "--threads", "2"], "split 2-1 contradicts --threads 2"),
        (&["--addr", "0.0.0.0:0"], "no password is required"),
        (&["--acl-file", gone], "gone"),
        (&["--acl-file", bad], "Unknown command"),
        (&["--password-file", gone], "gone"),
        (&["--tls-addr", "127.0.0.1:0", "--tls-cert", gone, "--tls-key", gone], "gone"),
        (&["--http", "0.0.0.0:0"], "no password is required"),
    ];
    for (arguments, word) in cases {
        place.run("serve", &[&["--addr", "127.0.0.1:0"], arguments].concat()).failed(2, &[word]);
        assert!(!place.store().exists(), "{arguments:?}");
    }
}

/// The split is in effect, and both clients and `stats` report it.
#[test]
fn split_option_counts_loops_and_store_threads() {
    let place = Place::new();
    let printed = |split: &str, threads: &[&str]| {
        let arguments = [&["--addr", "127.0.0.1:0", "--split", split], threads].concat();
        let serving = Serving::spawned(hikv("serve", &place.store(), &arguments));
        let reply = format!("*2\r\n$5\r\nsplit\r\n${}\r\n{split}\r\n", split.len());
        assert_eq!(serving.ask(b"CONFIG GET split\r\n", reply.len()), reply.as_bytes());
        let stats = String::from_utf8(place.run("stats", &[""; 0]).succeeded()).unwrap();
        serving.stop(Signal::TERM);
        stats
    };
    let fixed = printed("2-1", &[]);
    for line in ["split:2-1", "io_threads:2", "serving_loop_count:2", "backend_loop_count:0", "worker_count:1"] {
        assert!(fixed.lines().any(|printed| printed == line), "{line} is missing in {fixed}");
    }
    let adaptive = printed("adaptive", &["--threads", "3"]);
    for line in ["split:adaptive", "io_threads:3", "serving_loop_count:2", "backend_loop_count:1"] {
        assert!(adaptive.lines().any(|printed| printed == line), "{line} is missing in {adaptive}");
    }
}

#[test]
fn hangup_ends_no_process() {
    let place = Place::new();
    let mut serving = Serving::start(&place);
    kill_process(Pid::from_child(&serving.child), Signal::HUP).unwrap();
    let mut log = BufReader::new(serving.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line.contains("SIGHUP")));
    assert_eq!(serving.ask(b"PING\r\n", 7), b"+PONG\r\n");
    serving.stop(Signal::TERM);
}

/// The server also has a socket in the file system.
#[test]
fn port_and_bind_are_those_of_redis() {
    let place = Place::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let path = place.file("hikv.sock");
    let socket = ["--unix", path.to_str().unwrap(), "--unix-perm", "700"];
    let arguments = [&["--port", &port, "--bind", "127.0.0.1", "--bind", "-::1"][..], &socket].concat();
    let serving = Serving::spawned(hikv("serve", &place.store(), &arguments));
    assert_eq!(serving.address(), format!("127.0.0.1:{port}"));
    assert!(
        serving.banner().contains(&format!("unix        {}, Redis protocol", path.display())),
        "{}",
        serving.banner()
    );
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
    serving.stop(Signal::TERM);
    assert!(!path.exists());
    let both = Ended(hikv("serve", &place.store(), &["--port", "1", "--addr", "127.0.0.1:1"]).output().unwrap());
    assert!(both.0.status.code() == Some(2) && both.messages().contains("cannot be used with"), "{}", both.messages());
    place.run("serve", &["--bind", "0.0.0.0"]).failed(2, &["0.0.0.0:6379", "--password-file", "--unprotected"]);
}
