//! Tests a server that is still reading its base from a disk that strace makes slow: it serves all items, and a read
//! error is an error reply.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::serve::Serving;
use crate::support::{Place, hikv, left_out};

/// Each value is as long as one read, so that opening reads few of the pages that begin with a header.
const VALUE_BYTES: usize = 1 << 20;
const ITEM_COUNT: usize = 24;
/// The delay of each read: reading all of the base takes much longer than requests for parts of it.
const SLOW: &str = "inject=pread64:delay_enter=40000";
/// Attempts: on a busy machine, the server may have read everything before the first request.
const START_COUNT_MAX: usize = 10;

fn value(number: usize) -> String {
    format!("{number:04}").repeat(VALUE_BYTES / 4)
}

/// Creates a store of keys 0, 1, ….
fn filled() -> Place {
    let place = Place::new();
    let lines: String = (0..ITEM_COUNT).map(|number| format!("{number}\t{}\n", value(number))).collect();
    place.run_with_input("load", &["-"], lines.as_bytes()).succeeded();
    place
}

/// A server on a slow disk; its parent is strace.
struct Slow(Serving);

impl Slow {
    fn start(place: &Place) -> Option<Slow> {
        if Command::new("strace").args(["-qq", "true"]).output().is_ok_and(|ended| ended.status.success()) {
            let serve = hikv("serve", &place.store(), &["--addr", "127.0.0.1:0", "--threads", "1"]);
            let mut strace = Command::new("strace");
            strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64", "-e", SLOW, "-P"]);
            strace.arg(place.store().join("store.hikv")).arg(serve.get_program()).args(serve.get_args());
            strace.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            return Some(Slow(Serving::spawned(strace)));
        }
        left_out("strace cannot watch");
        None
    }

    fn ask(&self, request: &str) -> String {
        let (mut socket, mut answer) = (self.0.connect(), Vec::new());
        socket.write_all(request.as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        socket.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn is_loaded(&self) -> bool {
        let info = self.ask("INFO persistence\r\n");
        let figure = |name: &str| -> u64 {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_else(|| panic!("no {name} in {info}")).parse().unwrap()
        };
        figure("loaded_bytes") >= figure("base_bytes")
    }

    /// Kills the server; strace then ends.
    fn killed(self) {
        self.signal(Signal::KILL);
        self.0.ended();
    }

    /// Sends a signal to the server, not to strace.
    fn signal(&self, signal: Signal) {
        let strace = self.0.child.id();
        let children = std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).unwrap();
        let server = children.split_whitespace().next().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(server).unwrap(), signal).unwrap();
    }
}

/// Repeats `attack` until it returns true: it reached a server that had not read all of its base.
fn until_met(mut attack: impl FnMut(&Place, Slow) -> bool) {
    let met = |_| {
        let place = filled();
        let Some(slow) = Slow::start(&place) else { return true };
        attack(&place, slow)
    };
    assert!((0..START_COUNT_MAX).any(met), "all was read each time");
}

#[test]
fn requests_during_load_are_answered() {
    until_met(|place, slow| {
        let is_met = !slow.is_loaded();
        let last = ITEM_COUNT - 1;
        assert_eq!(
            slow.ask(&format!("GET {last}\r\nGET absent\r\n")),
            format!("${VALUE_BYTES}\r\n{}\r\n$-1\r\n", value(last))
        );
        let transaction = "MULTI\r\nSET 3 new\r\nGET 3\r\nSTRLEN 20\r\nDEL 4\r\nDBSIZE\r\nEXEC\r\n";
        let queued = format!("+OK\r\n{}", "+QUEUED\r\n".repeat(5));
        let done = format!("{queued}*5\r\n+OK\r\n$3\r\nnew\r\n:{VALUE_BYTES}\r\n:1\r\n:{last}\r\n");
        assert_eq!(slow.ask(transaction), done);
        assert_eq!(slow.ask("KEYS *\r\n").lines().count(), 1 + 2 * last);
        assert_eq!(slow.ask("SAVE\r\nSHUTDOWN\r\n"), "+OK\r\n");
        slow.0.ended().succeeded();
        for store in [place.store(), place.store().join("backup")] {
            let checked = hikv("check", &store, &["--deep"]).output().unwrap();
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        }
        is_met
    });
}

#[test]
fn kill_during_load_loses_nothing() {
    until_met(|place, slow| {
        assert_eq!(slow.ask("SET 5 new\r\nDEL 6\r\n"), "+OK\r\n:1\r\n");
        let is_met = !slow.is_loaded();
        slow.killed();
        assert_eq!(place.run("get", &["5"]).succeeded(), b"new");
        place.run("get", &["6"]).failed(1, &["'6'"]);
        for number in (0..ITEM_COUNT).filter(|number| ![5, 6].contains(number)) {
            assert_eq!(place.run("get", &[number.to_string()]).succeeded(), value(number).as_bytes());
        }
        is_met
    });
}

/// The server's file is truncated, so that reads in it fail.
#[test]
fn unreadable_region_is_an_error_during_load() {
    until_met(|place, slow| {
        let path = place.store().join("store.hikv");
        let whole = std::fs::read(&path).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(whole.len() as u64 / 2).unwrap();
        // A request for an absent key fails once a read error has occurred.
        while !slow.ask("GET absent\r\n").starts_with("-ERR ") && !slow.is_loaded() {}
        let is_met = slow.ask("GET absent\r\n").starts_with("-ERR ");
        let mut lost_count = 0;
        for number in 0..ITEM_COUNT {
            let answer = slow.ask(&format!("GET {number}\r\n"));
            let is_lost = answer.starts_with("-ERR ");
            assert!(is_lost || answer == format!("${VALUE_BYTES}\r\n{}\r\n", value(number)), "{number}");
            lost_count += usize::from(is_lost);
        }
        assert!(!is_met || lost_count > 0 && lost_count < ITEM_COUNT, "{lost_count} are lost");
        if is_met {
            for request in ["SET k v", "DEL 1", "KEYS *", "DBSIZE", "EXISTS absent", "RENAME absent k", "SAVE"] {
                let answer = slow.ask(&format!("{request}\r\nPING\r\n"));
                assert!(answer.starts_with("-ERR ") && answer.ends_with("\r\n+PONG\r\n"), "{request}: {answer}");
                assert_eq!(answer.lines().count(), 2, "{request}: {answer}");
            }
            let answer = slow.ask("MULTI\r\nSET k v\r\nEXEC\r\nPING\r\n");
            assert!(answer.starts_with("+OK\r\n+QUEUED\r\n-ERR ") && answer.lines().count() == 4, "{answer}");
        }
        slow.killed();
        std::fs::write(&path, whole).unwrap();
        for number in 0..ITEM_COUNT {
            assert_eq!(place.run("get", &[number.to_string()]).succeeded(), value(number).as_bytes());
        }
        is_met
    });
}
