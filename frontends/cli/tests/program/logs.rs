//! Tests the server's log: it has the events for operators, and no secrets.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::serve::Serving;
use crate::support::{Place, hikv};

const PASSWORD: &str = "open-sesame";
const GUESS: &str = "wrong-guess";
const KEY: &str = "private-key";
const VALUE: &str = "private-value";

/// Encodes a request.
fn request(words: &[&str]) -> Vec<u8> {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), words.collect::<String>()).into()
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    hikv("serve", &place.store(), &[&["--addr", "127.0.0.1:0", "--threads", "1"], arguments].concat())
}

/// Stops the server and returns its log.
fn log_of(serving: Serving) -> String {
    serving.signal(Signal::TERM);
    let output = serving.ended().0;
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn log_reports_events_without_secrets() {
    let place = Place::new();
    let password_file = place.store().with_extension("password");
    fs::write(&password_file, PASSWORD).unwrap();
    let secured = ["--password-file", password_file.to_str().unwrap(), "--log-format", "json", "--log-level", "debug"];
    let serving = Serving::spawned(command(&place, &secured));
    let requests = [
        request(&["AUTH", GUESS]),
        request(&["AUTH", GUESS, GUESS]),
        request(&["AUTH", PASSWORD]),
        request(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]),
        request(&["SET", KEY, VALUE]),
        request(&["INCR", KEY]),
    ];
    let refusal = "-WRONGPASS invalid username-password pair or user is disabled.\r\n".repeat(2);
    let answer = format!("{refusal}+OK\r\n+OK\r\n+OK\r\n-ERR value is not an integer or out of range\r\n");
    assert_eq!(String::from_utf8(serving.ask(&requests.concat(), answer.len())).unwrap(), answer);
    let log = log_of(serving);
    for secret in [PASSWORD, GUESS, KEY, VALUE] {
        assert!(!log.contains(secret), "'{secret}' is in {log}");
    }
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let printed = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    for message in ["starting", "recovered", "ready", "client connected", "client left", "stopped"] {
        assert_eq!(printed(message).len(), 1, "{message}: {log}");
    }
    assert_eq!((&printed("recovered")[0]["items"], &printed("stopped")[0]["items"]), (&0.into(), &1.into()));
    let users: Vec<&Value> = printed("authentication failed").iter().map(|line| &line["user"]).collect();
    assert_eq!(users, ["default", "(unknown)"]);
    assert!(printed("slow command").iter().any(|line| line["command"] == "set"), "{log}");
}

#[test]
fn log_level_changes_at_run_time() {
    let place = Place::new();
    let serving = Serving::spawned(command(&place, &["--log-level", "warning"]));
    let shown = b"*2\r\n$8\r\nloglevel\r\n$7\r\nwarning\r\n";
    assert_eq!(serving.ask(b"CONFIG GET loglevel\r\n", shown.len()), shown);
    assert_eq!(serving.ask(b"CONFIG SET loglevel verbose\r\nPING\r\n", 12), b"+OK\r\n+PONG\r\n");
    assert_eq!(serving.ask(b"PING\r\n", 7), b"+PONG\r\n");
    let log = log_of(serving);
    assert!(!log.contains("starting") && log.contains("client connected") && log.contains("stopped"), "{log}");
    let mut quiet = command(&place, &[]);
    quiet.env("HIKV_LOG_LEVEL", "warning");
    assert_eq!(log_of(Serving::spawned(quiet)), "");
}

#[test]
fn client_too_many_is_logged() {
    let place = Place::new();
    let serving = Serving::spawned(command(&place, &["--max-clients", "1"]));
    let first = serving.connect();
    assert!(String::from_utf8(serving.ask(b"", 34)).unwrap().contains("max number of clients"));
    drop(first);
    assert!(log_of(serving).contains("client refused"));
}
