//! Tests a server whose journal syncs fail while replies wait for them. strace makes the system call fail; everything
//! else is real.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustix::process::Signal;

use crate::serve::Serving;
use crate::strace::Strace;
use crate::support::{Place, hikv};

/// From now on a sync takes so long that all requests wait for it, and then fails.
const FAILING: &str = "inject=fdatasync,fsync:error=EIO:delay_enter=500000";
/// The same delay, without the failure.
const SLOW: &str = "inject=fdatasync,fsync:delay_enter=500000";

/// Longer than any reply takes: a test that hangs fails.
const ANSWER_MAX: Duration = Duration::from_secs(60);

const KEPT_COUNT: u32 = 200;

/// Concurrent requests, each on a separate connection, and their replies without a failure. Later requests depend on
/// the writes of earlier ones.
const REQUESTS: [(&str, &str); 6] = [
    ("SET lost plain\r\n", "+OK\r\n"),
    ("ECHO before\r\nSET other 1\r\nINCR other\r\nECHO after\r\n", "$6\r\nbefore\r\n+OK\r\n:2\r\n$5\r\nafter\r\n"),
    ("MULTI\r\nSET left 1\r\nSET right 1\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n"),
    ("SET asked for DURABLE power\r\n", "+OK\r\n"),
    ("GET lost\r\n", "$5\r\nplain\r\n"),
    ("MGET left right\r\n", "*2\r\n$1\r\n1\r\n$1\r\n1\r\n"),
];

/// The replies that are allowed although no write becomes durable.
const HARMLESS: [&str; 6] = ["", "$6\r\nbefore\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n", "", "", ""];

fn serve(place: &Place) -> Serving {
    let arguments = ["--addr", "127.0.0.1:0", "--threads", "1", "--http", "127.0.0.1:0", "--durability", "power"];
    Serving::spawned(hikv("serve", &place.store(), &arguments))
}

/// Opens a connection and sends only `request`.
fn asking(address: &str, request: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(ANSWER_MAX)).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    socket
}

/// Returns all bytes received until the connection is closed.
fn printed(mut socket: TcpStream) -> String {
    let mut answer = Vec::new();
    if let Err(error) = socket.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    String::from_utf8(answer).unwrap()
}

fn ask(serving: &Serving, request: &str) -> String {
    printed(asking(serving.address(), request))
}

fn health(serving: &Serving) -> String {
    let (_, address) = serving.banner().split_once("http://").unwrap();
    printed(asking(
        address.split('/').next().unwrap(),
        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ))
}

/// Serves acknowledged writes, then sends `REQUESTS` while strace applies `injection` to the disk. Returns the replies.
fn printed_by(place: &Place, injection: &str) -> Option<(Serving, Strace, Vec<String>)> {
    let serving = serve(place);
    let kept: String = (0..KEPT_COUNT).map(|key| format!("SET kept:{key} {key}\r\n")).collect();
    assert_eq!(ask(&serving, &kept), "+OK\r\n".repeat(KEPT_COUNT as usize));
    // Reserves space for the batch: a growth would be refused before anything is written.
    let batch = ask(&serving, "MULTI\r\nSET first 1\r\nSET second 1\r\nEXEC\r\nDEL first second\r\n");
    assert!(batch.ends_with(":2\r\n"), "{batch}");
    let strace = Strace::attach(place, &serving, &["trace=fdatasync,fsync", injection])?;
    let sockets = REQUESTS.map(|(request, _)| asking(serving.address(), request));
    Some((serving, strace, sockets.map(printed).into()))
}

fn assert_kept(serving: &Serving) {
    for key in 0..KEPT_COUNT {
        let answer = ask(serving, &format!("GET kept:{key}\r\n"));
        assert!(answer.ends_with(&format!("\r\n{key}\r\n")), "kept:{key} was acknowledged: {answer}");
    }
}

#[test]
fn slow_disk_answers_all_clients() {
    let place = Place::new();
    let Some((serving, _strace, answers)) = printed_by(&place, SLOW) else { return };
    assert_eq!(answers, REQUESTS.map(|(_, answer)| answer));
    serving.stop(Signal::TERM);
}

#[test]
fn failed_sync_is_never_acknowledged() {
    let place = Place::new();
    let Some((serving, strace, answers)) = printed_by(&place, FAILING) else { return };
    for ((answer, harmless), (request, _)) in answers.iter().zip(HARMLESS).zip(REQUESTS) {
        assert!(harmless.starts_with(answer), "{request} is answered {answer}");
    }
    for request in [
        "SET k v\r\n",
        "DEL kept:1\r\n",
        "SET k v DURABLE process\r\n",
        "MULTI\r\nSET left 2\r\nSET right 2\r\nEXEC\r\n",
        "GET lost\r\n",
        "MGET left right\r\n",
        "DBSIZE\r\n",
        "KEYS *\r\n",
    ] {
        let answer = ask(&serving, request);
        let is_refused = answer.contains("-ERR writing to the disk failed (error number 5)");
        assert!(is_refused && !answer.contains('$'), "{request} is answered {answer}");
    }
    assert_kept(&serving);
    let info = ask(&serving, "INFO\r\n");
    assert!(info.contains("\naof_last_write_status:err\r\n"), "{info}");
    assert!(!info.contains("\ndb0:"), "keys are counted that may be lost: {info}");
    let health = health(&serving);
    assert!(health.starts_with("HTTP/1.1 503 ") && health.contains("\"poisoned\""), "{health}");
    drop(strace);
    serving.signal(Signal::TERM);
    serving.ended().failed(2, &["error number 5"]);

    let again = serve(&place);
    assert_kept(&again);
    let pair = ask(&again, "MGET left right\r\n");
    assert!(["*2\r\n$-1\r\n$-1\r\n", REQUESTS[5].1].contains(&&*pair), "a transaction is half there: {pair}");
    again.stop(Signal::TERM);
}

/// The table of databases cannot be read when the transaction is rolled back: its last write may be lost.
#[test]
fn unwritable_transaction_has_one_answer() {
    let place = Place::new();
    let serving = serve(&place);
    assert_eq!(ask(&serving, "SET first 1\r\nSELECT 1\r\nSET second 2\r\n"), "+OK\r\n".repeat(3));
    let Some(strace) = Strace::attach(&place, &serving, &["trace=fdatasync,fsync", FAILING]) else { return };
    assert_eq!(ask(&serving, "SWAPDB 2 3\r\n"), "");
    for commands in [&["SET k v"][..], &["SWAPDB 0 1", "SET k v"], &["FLUSHALL", "SET k v"]] {
        let answer = ask(&serving, &format!("MULTI\r\n{}\r\nEXEC\r\nPING\r\n", commands.join("\r\n")));
        let queued = format!("+OK\r\n{}-ERR ", "+QUEUED\r\n".repeat(commands.len()));
        let lines = answer.lines().count();
        let is_refused = answer.starts_with(&queued) && answer.ends_with("\r\n+PONG\r\n");
        assert!(is_refused && lines == commands.len() + 3, "{commands:?} are answered {answer}");
        let held = ask(&serving, "GET first\r\nSELECT 1\r\nGET second\r\n");
        assert_eq!(held, "$1\r\n1\r\n+OK\r\n$1\r\n2\r\n", "after {commands:?}");
    }
    drop(strace);
    serving.signal(Signal::TERM);
    serving.ended().failed(2, &["error number 5"]);
}

/// `EXEC` replies null if another client has changed a watched key, but only once that change is durable.
#[test]
fn transaction_hides_failed_sync() {
    let place = Place::new();
    let serving = serve(&place);
    assert_eq!(ask(&serving, "SET watched before\r\n"), "+OK\r\n");
    let mut watcher = serving.connect();
    watcher.set_read_timeout(Some(ANSWER_MAX)).unwrap();
    watcher.write_all(b"WATCH watched\r\nMULTI\r\nECHO other\r\n").unwrap();
    let queued = b"+OK\r\n+OK\r\n+QUEUED\r\n";
    let mut answer = vec![0; queued.len()];
    watcher.read_exact(&mut answer).unwrap();
    assert_eq!(answer, queued);
    let Some(_strace) = Strace::attach(&place, &serving, &["trace=fdatasync,fsync", FAILING]) else { return };
    let writer = asking(serving.address(), "SET watched after\r\n");
    // INFO does not wait for the disk: it shows when the write is in memory.
    while !ask(&serving, "INFO commandstats\r\n").contains("cmdstat_set:calls=2,") {}
    watcher.write_all(b"EXEC\r\n").unwrap();
    watcher.shutdown(Shutdown::Write).unwrap();
    assert_eq!((printed(watcher), printed(writer)), (String::new(), String::new()));
}
