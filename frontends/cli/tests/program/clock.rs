//! Tests a server whose clock is set forward and back. libfaketime reads the clock's offset from a file; the monotonic
//! clock is not changed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::serve::Serving;
use crate::support::{Place, hikv, left_out};

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
const HOUR_S: i64 = 3_600;
const YEAR_S: i64 = 365 * 24 * HOUR_S;
/// The maximum duration of a test, in seconds.
const SLACK_S: i64 = 300;

/// A server with a clock that the test sets.
struct Clocked {
    serving: Serving,
    /// The file with the offset of the clock from the machine's, in seconds.
    set: PathBuf,
    client: BufReader<TcpStream>,
}

impl Clocked {
    fn start(place: &Place) -> Option<Clocked> {
        let libraries = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
        let Some(library) = libraries.map(|dir| dir.join(LIBRARY)).find(|path| path.exists()) else {
            left_out("there is no libfaketime");
            return None;
        };
        let set = place.write("clock", "+0");
        let arguments = ["--addr", "127.0.0.1:0", "--threads", "2", "--http", "127.0.0.1:0"];
        let mut serve = hikv("serve", &place.store(), &arguments);
        serve.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &set);
        serve.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let serving = Serving::spawned(serve);
        let client = BufReader::new(serving.connect());
        Some(Clocked { serving, set, client })
    }

    /// Sets the clock. Replaces the file atomically, because the server may read it at any time.
    fn set(&self, from_machine_s: i64) {
        let new = self.set.with_extension("new");
        std::fs::write(&new, format!("{from_machine_s:+}")).unwrap();
        std::fs::rename(new, &self.set).unwrap();
    }

    fn send(&mut self, request: &str) {
        self.client.get_mut().write_all(format!("{request}\r\n").as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.client.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    /// Sends a request whose reply is one line.
    fn ask(&mut self, request: &str) -> String {
        self.send(request);
        self.line()
    }

    fn number(&mut self, request: &str) -> i64 {
        self.ask(request)[1..].parse().unwrap()
    }

    /// Returns the server's time in seconds.
    fn time_s(&mut self) -> i64 {
        self.send("TIME");
        let [_, _, seconds, _, _] = [0; 5].map(|_| self.line());
        seconds.parse().unwrap()
    }

    #[track_caller]
    fn lives_for(&mut self, key: &str, seconds: i64) {
        let left = self.number(&format!("TTL {key}"));
        assert!((seconds - SLACK_S..=seconds).contains(&left), "{key} has {left} s left instead of {seconds}");
    }

    #[track_caller]
    fn is_gone(&mut self, key: &str) {
        assert_eq!((self.number(&format!("TTL {key}")), self.number(&format!("EXISTS {key}"))), (-2, 0), "{key}");
    }

    /// Ends the server, and checks that no thread panicked.
    fn stop(self) {
        self.serving.signal(Signal::TERM);
        let ended = self.serving.ended();
        let messages = ended.messages();
        ended.succeeded();
        assert!(!messages.contains("panicked"), "{messages}");
    }
}

#[test]
fn clock_set_back_keeps_time_to_live() {
    let place = Place::new();
    let Some(mut server) = Clocked::start(&place) else { return };
    assert_eq!(server.ask("SET before v EX 1000"), "+OK");
    assert_eq!(server.ask("SET soon v PX 1"), "+OK");
    while server.number("EXISTS soon") == 1 {}
    server.set(-HOUR_S);
    let now = server.time_s();
    server.lives_for("before", 1_000);
    server.is_gone("soon");
    assert_eq!(server.ask("SET after v EX 1000"), "+OK");
    server.lives_for("after", 1_000);
    // By the server's clock, which is an hour behind.
    let until = now + 1_000;
    assert_eq!(server.ask(&format!("SET at v EXAT {until}")), "+OK");
    assert_eq!((server.ask("SET later v"), server.number(&format!("EXPIREAT later {until}"))), ("+OK".into(), 1));
    for key in ["at", "later"] {
        server.lives_for(key, 1_000);
        let printed = server.number(&format!("EXPIRETIME {key}"));
        assert!((until - 1..=until + 1).contains(&printed), "{key} expires at {printed}, and was to at {until}");
    }
    assert_eq!(server.number(&format!("EXPIREAT later {}", now - 1)), 1);
    server.is_gone("later");
    server.stop();
}

#[test]
fn clock_set_forward_and_corrected_continues() {
    let place = Place::new();
    let Some(mut server) = Clocked::start(&place) else { return };
    assert_eq!(server.ask("SET stays v"), "+OK");
    assert_eq!(server.ask("SET short v EX 1000"), "+OK");
    assert_eq!(server.ask("SET watched v EX 1000"), "+OK");
    assert_eq!(["WATCH watched", "MULTI", "SET done v"].map(|request| server.ask(request)), ["+OK", "+OK", "+QUEUED"]);
    server.set(YEAR_S);
    assert_eq!(server.ask("EXEC"), "*-1", "the watched key has expired");
    server.is_gone("short");
    assert_eq!(server.ask("SET during v EX 1000"), "+OK");
    server.set(0);
    server.is_gone("short");
    server.lives_for("during", 1_000);
    assert_eq!(server.ask("SET after v PX 100"), "+OK");
    while server.number("EXISTS after") == 1 {}
    assert_eq!(server.number("EXISTS stays"), 1);
    server.stop();
}

/// The samples of the last minutes stay in order.
#[test]
fn samples_stay_in_order() {
    let place = Place::new();
    let Some(mut server) = Clocked::start(&place) else { return };
    assert_eq!(server.ask("CONFIG SET latency-monitor-threshold 1"), "+OK");
    assert_eq!(server.ask("CONFIG SET slowlog-log-slower-than 0"), "+OK");
    let (_, address) = server.serving.banner().split_once("http://").unwrap();
    let address = address.split('/').next().unwrap().to_owned();
    for set_s in [0, YEAR_S, -HOUR_S, 0] {
        server.set(set_s);
        for request in ["LATENCY GRAPH command", "LATENCY DOCTOR", "SLOWLOG LEN", "LASTSAVE", "PING"] {
            server.send(request);
        }
        while server.line() != "+PONG" {}
        let before = uptimes(&address).len();
        while uptimes(&address).len() < before + 2 {}
    }
    let uptimes = uptimes(&address);
    assert!(uptimes.is_sorted() && uptimes.iter().all(|ms| *ms < SLACK_S as u64 * 1_000), "{uptimes:?}");
    server.stop();
}

/// Returns the uptimes of the samples for the live page.
fn uptimes(address: &str) -> Vec<u64> {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"GET /live.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let found = answer.split("\"uptime_ms\":").skip(1);
    found.map(|rest| rest.split(',').next().unwrap().parse().unwrap()).collect()
}
