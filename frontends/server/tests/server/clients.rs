//! CLIENT, RESET, CONFIG, SLOWLOG and other commands about the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hikv::{Clock, Options};
use server::Config;

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};

fn list(client: &mut Client) -> String {
    let Value::Bulk(text) = client.say("CLIENT LIST") else { panic!("not a text") };
    String::from_utf8(text).expect("a text")
}

#[test]
fn clients_are_named_and_listed() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.converse([
        ("CLIENT GETNAME", Value::Null),
        ("CLIENT SETNAME me", ok()),
        ("CLIENT SETNAME 'a b'", error("ERR Client names cannot contain spaces, newlines or special characters.")),
        ("CLIENT GETNAME", bulk("me")),
        ("CLIENT ID", int(1)),
        ("CLIENT SETINFO LIB-NAME lib", ok()),
        ("CLIENT NO-EVICT on", ok()),
        ("CLIENT NOTHING", error("ERR unknown subcommand 'NOTHING'. Try CLIENT HELP.")),
        ("MULTI", ok()),
    ]);
    let text = list(&mut other);
    assert!(text.lines().count() == 2 && text.starts_with("id=1 addr=127.0.0.1:"), "{text}");
    let line = text.lines().next().expect("two lines");
    for part in [" name=me ", " flags=xe ", " multi=0 ", " lib-name=lib ", " user=default ", " cmd=multi "] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert_eq!(client.say("RESET"), Value::Simple("RESET".into()));
    assert!(list(&mut other).lines().next().is_some_and(|line| line.contains(" name= ") && line.contains(" flags=N ")));
}

#[test]
fn replies_can_be_silenced() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(
        b"CLIENT REPLY SKIP\r\nSET k 1\r\nGET k\r\nCLIENT REPLY OFF\r\nGET k\r\nBAD\r\nCLIENT REPLY ON\r\nPING\r\n",
    );
    assert_eq!(client.reply(), bulk("1"));
    assert_eq!(client.reply(), ok());
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
    // RESET ends the silence, but does not answer itself if its reply is to be skipped.
    client.send(b"CLIENT REPLY SKIP\r\nRESET\r\nGET k\r\nCLIENT REPLY OFF\r\nRESET\r\nGET k\r\n");
    assert_eq!(client.reply(), bulk("1"));
    assert_eq!(client.reply(), Value::Simple("RESET".into()));
    assert_eq!(client.reply(), bulk("1"));
    // A subscription is confirmed in any case, but not that it is queued.
    client.send(b"CLIENT REPLY OFF\r\nMULTI\r\nSUBSCRIBE c\r\nSSUBSCRIBE s\r\nDISCARD\r\nCLIENT REPLY ON\r\nGET k\r\n");
    assert_eq!(client.reply(), ok());
    assert_eq!(client.reply(), bulk("1"));
    // EXEC confirms the subscriptions that it makes, and nothing else.
    client.send(b"WATCH k\r\nCLIENT REPLY OFF\r\nSET k 2\r\nMULTI\r\nSUBSCRIBE c\r\nEXEC\r\n");
    client.send(b"MULTI\r\nSET k 3\r\nSUBSCRIBE c\r\nSSUBSCRIBE s\r\nGET k\r\nUNSUBSCRIBE c\r\nEXEC\r\n");
    client.send(b"MULTI\r\nNONE\r\nSUBSCRIBE c\r\nEXEC\r\nCLIENT REPLY ON\r\nGET k\r\n");
    assert_eq!(client.reply(), ok());
    assert_eq!(client.reply(), array([bulk("subscribe"), bulk("c"), int(1)]));
    assert_eq!(client.reply(), array([bulk("unsubscribe"), bulk("c"), int(0)]));
    assert_eq!(client.reply(), ok());
    assert_eq!(client.reply(), bulk("3"));
}

#[test]
fn parameters_are_set_all_or_none() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("CONFIG SET slowlog-max-len 5 timeout -1", {
            error("ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive")
        }),
        ("CONFIG GET slowlog-max-len", array([bulk("slowlog-max-len"), bulk("128")])),
        ("CONFIG SET slowlog-max-len 5", ok()),
        ("CONFIG GET SLOWLOG-MAX-*", array([bulk("slowlog-max-len"), bulk("5")])),
        ("CONFIG SET nothing 1", error("ERR Unknown option or number of arguments for CONFIG SET - 'nothing'")),
        (
            "CONFIG SET port 1",
            error("ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config"),
        ),
        (
            "CONFIG SET timeout 1 TIMEOUT 2",
            error("ERR CONFIG SET failed (possibly related to argument 'TIMEOUT') - duplicate parameter"),
        ),
        ("CONFIG GET timeout", array([bulk("timeout"), bulk("0")])),
        ("CONFIG REWRITE", error("ERR The server is running without a config file")),
        ("CONFIG RESETSTAT", ok()),
    ]);
}

#[test]
fn slow_requests_are_logged_without_secrets() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 2", ok()),
        ("ACL SETUSER ada >hush", ok()),
        ("SLOWLOG LEN", int(2)),
    ]);
    let Value::Array(requests) = client.say("SLOWLOG GET") else { panic!("not an array") };
    assert_eq!(requests.len(), 2);
    assert!(!format!("{requests:?}").contains("hush"));
    client.converse([
        ("CONFIG SET slowlog-log-slower-than -1", ok()),
        ("SLOWLOG RESET", ok()),
        ("SLOWLOG LEN", int(0)),
    ]);
}

#[test]
fn latencies_are_kept_from_a_threshold_on() {
    let server = TestServer::debugging();
    let mut client = server.client();
    client.converse([("CONFIG SET latency-monitor-threshold 1", ok()), ("DEBUG SLEEP 0.01", ok())]);
    let Value::Array(events) = client.say("LATENCY LATEST") else { panic!("not an array") };
    assert!(matches!(&events[..], [Value::Array(event)] if event[0] == bulk("command")));
    client.converse([("LATENCY RESET command", int(1)), ("LATENCY HISTORY command", array([]))]);
}

#[test]
fn getkeys_finds_keys() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("COMMAND GETKEYS MSET a 1 b 2", array([bulk("a"), bulk("b")])),
        ("COMMAND GETKEYS PING x", error("ERR The command has no key arguments")),
        ("COMMAND GETKEYS GET a b", error("ERR Invalid number of arguments specified for command")),
        ("COMMAND GETKEYS NOTHING a", error("ERR Invalid command specified")),
        ("COMMAND LIST FILTERBY PATTERN get*x", array([bulk("getex")])),
        ("COMMAND LIST FILTERBY PATTERN config|re*", array(["config|resetstat", "config|rewrite"].map(bulk))),
    ]);
}

#[test]
fn shutdown_ends_the_server() {
    let mut server = TestServer::start();
    let mut client = server.client();
    client.send(b"SHUTDOWN NOSAVE\r\n");
    assert!(client.is_at_end());
    server.join().expect("the server ends well");
}

#[test]
fn memory_growth_over_limit_is_refused() {
    let server = TestServer::start();
    let mut client = server.client();
    let refused = "OOM command not allowed when used memory > 'maxmemory'.";
    client.converse([("SET k v", ok()), ("MULTI", ok()), ("SET k w", Value::Simple("QUEUED".into()))]);
    assert_eq!(server.client().say("CONFIG SET maxmemory 1"), ok());
    client.converse([
        ("EXEC", error(&format!("EXECABORT Transaction discarded because of: {refused}"))),
        ("SET k w", error(refused)),
        ("GET k", bulk("v")),
        ("DEL k", int(1)),
        ("CONFIG SET maxmemory 1gb", ok()),
        ("SET k w", ok()),
    ]);
}

#[test]
fn client_that_tracks_is_reported_once() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    let invalid = |keys: Value| Value::Push(vec![bulk("invalidate"), keys]);
    client.say("HELLO 3");
    client.converse([
        ("CLIENT TRACKING ON", ok()),
        ("GET k", Value::Null),
        ("MGET k j", array([Value::Null, Value::Null])),
    ]);
    other.converse([("SET k 1", ok()), ("SET k 2", ok()), ("SET j 1 PX 1", ok())]);
    assert_eq!(client.reply(), invalid(array([bulk("k")])));
    assert_eq!(client.reply(), invalid(array([bulk("j")])));
    assert_eq!(client.say("GET k"), bulk("2"));
    for all in ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1"] {
        assert_eq!(other.say(all), ok());
        assert_eq!(client.reply(), invalid(Value::Null), "{all}");
    }
}

/// By the store's clock, which stands still until the client has read it.
#[test]
fn tracking_client_learns_of_expired_key() {
    let clock = Clock::manual(1);
    let server = TestServer::of(&Options::new().clock(clock.clone()), Config { threads: 2, ..Config::default() });
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(other.say("SET k v EX 1000"), ok());
    client.say("HELLO 3");
    client.converse([("CLIENT TRACKING ON", ok()), ("GET k", bulk("v"))]);
    // Later than the commands' clock.
    clock.advance(Duration::from_secs(1 << 33));
    // Wakes the background thread.
    assert_eq!(other.say("SET other v EX 1000"), ok());
    assert_eq!(client.reply(), Value::Push(vec![bulk("invalidate"), array([bulk("k")])]));
}

#[test]
fn writes_wait_for_pause_end() {
    let server = TestServer::start();
    let (mut admin, mut writer, mut reader) = (server.client(), server.client(), server.client());
    admin.converse([
        ("CLIENT PAUSE x", error("ERR timeout is not an integer or out of range")),
        ("CLIENT PAUSE -1", error("ERR timeout is negative")),
        ("CLIENT PAUSE 9223372036854775807", error("ERR timeout is out of range")),
        ("CLIENT PAUSE 1 SOME", error("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        ("CLIENT PAUSE 1000000 WRITE", ok()),
    ]);
    writer.send(b"PING\r\nSET k 1\r\nGET k\r\nMULTI\r\nINCR k\r\nEXEC\r\n");
    assert_eq!(writer.reply(), Value::Simple("PONG".into()));
    reader.converse([("GET k", Value::Null), ("MULTI", ok()), ("GET k", Value::Simple("QUEUED".into()))]);
    assert_eq!(reader.say("EXEC"), array([Value::Null]));
    let Value::Bulk(text) = reader.say("INFO clients") else { panic!("not a text") };
    assert!(String::from_utf8(text).expect("a text").contains("blocked_clients:1\r\n"), "the writer waits");
    assert_eq!(admin.say("CLIENT UNPAUSE"), ok());
    assert_eq!((writer.reply(), writer.reply(), writer.reply()), (ok(), bulk("1"), ok()));
    assert_eq!((writer.reply(), writer.reply()), (Value::Simple("QUEUED".into()), array([int(2)])));
}

/// Two writers send endless pipelines, one on the administrator's event loop and one on another.
#[test]
fn no_write_after_pause_has_replied() {
    const ROUNDS: usize = 60;
    let server = TestServer::start();
    let (mut admin, mut reader) = (server.client(), server.client());
    let stops = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (mut writer, stops) = (server.client(), &stops);
            scope.spawn(move || {
                let pipeline = b"INCR count\r\n".repeat(200);
                while !stops.load(Ordering::Relaxed) {
                    writer.send(&pipeline);
                    (0..200).for_each(|_| drop(writer.reply()));
                }
            });
        }
        for round in 0..ROUNDS {
            let lines: &[&str] = match round % 2 {
                0 => &["CLIENT PAUSE 1000000 WRITE"],
                _ => &["MULTI", "KEYS absent", "CLIENT PAUSE 1000000 WRITE", "EXEC"],
            };
            lines.iter().for_each(|line| drop(admin.say(line)));
            let count = server.store.get("count").expect("the store answers");
            (0..20).for_each(|_| drop(reader.say("PING")));
            assert_eq!(server.store.get("count").expect("the store answers"), count, "{lines:?} in round {round}");
            assert_eq!(admin.say("CLIENT UNPAUSE"), ok());
        }
        stops.store(true, Ordering::Relaxed);
    });
}

#[test]
fn pause_ends_by_timeout_or_stop() {
    let server = TestServer::start();
    let (mut admin, mut other) = (server.client(), server.client());
    let asked = std::time::Instant::now();
    assert_eq!(admin.say("CLIENT PAUSE 100"), ok());
    assert_eq!(other.say("PING"), Value::Simple("PONG".into()));
    assert!(asked.elapsed() >= std::time::Duration::from_millis(100));
    assert_eq!(admin.say("CLIENT PAUSE 1000000"), ok());
    other.send(b"SET k v\r\n");
    server.stop.stop();
    assert_eq!(other.reply(), ok());
}

/// As in Redis, a later pause neither shortens an earlier one nor reduces its scope.
#[test]
fn pause_is_not_weakened_by_another() {
    let server = TestServer::start();
    let (mut admin, mut writer) = (server.client(), server.client());
    admin.converse([("CLIENT PAUSE 1000000 WRITE", ok()), ("CLIENT PAUSE 1 WRITE", ok())]);
    writer.send(b"PING\r\nSET k 1\r\n");
    assert_eq!(writer.reply(), Value::Simple("PONG".into()));
    // The shorter pause is over by then.
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_millis(20) {
        assert_eq!(admin.say("GET k"), Value::Null);
    }
    assert_eq!(admin.say("CLIENT UNPAUSE"), ok());
    assert_eq!(writer.reply(), ok());
}

#[test]
fn replies_without_redirection_or_blocking() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("CLIENT GETREDIR", int(-1)),
        ("CLIENT UNBLOCK 1", int(0)),
        ("CLIENT UNBLOCK 1 SOON", error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        ("CLIENT NO-TOUCH on", ok()),
        ("CLIENT NO-TOUCH maybe", error("ERR syntax error")),
        ("CLIENT TRACKING on", ok()),
        ("CLIENT GETREDIR", int(0)),
    ]);
    let wanted = [bulk("flags"), array([bulk("on")]), bulk("redirect"), int(0), bulk("prefixes"), array([])];
    assert_eq!(client.say("CLIENT TRACKINGINFO"), array(wanted));
}
