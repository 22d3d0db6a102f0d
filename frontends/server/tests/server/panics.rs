//! Requests that panic, and those that once did: the client gets an error and is disconnected, and all others are still
//! served.

use server::{Config, HttpPort, Parameters};

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

fn panicked() -> Value {
    error("ERR internal error: the request may or may not have been executed; the connection is closed")
}

fn panic_count(client: &mut Client) -> u64 {
    let Value::Bulk(text) = client.say("INFO stats") else { panic!("not a text") };
    let text = String::from_utf8(text).expect("a text");
    let count = text.lines().find_map(|line| line.strip_prefix("total_panics:"));
    count.expect("it is shown").parse().expect("a number")
}

/// Starts a server with two event loops and DEBUG.
fn server() -> TestServer {
    let mut parameters = Parameters::default();
    parameters.set("enable-debug-command", "local").expect("a parameter");
    TestServer::with(Config { threads: 2, parameters, ..Config::default() })
}

/// Returns the reply to a transaction of these lines, if there is one.
fn transaction(client: &mut Client, lines: &[&str]) -> Value {
    assert_eq!(client.say("MULTI"), ok());
    lines.iter().for_each(|line| assert_eq!(client.say(line), queued(), "{line}"));
    client.say("EXEC")
}

/// The database number is first used where the transaction's duration is estimated.
#[test]
fn transaction_selects_no_database_that_is_missing() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(client.say("SET k value"), ok());
    let commands =
        ["GET k", "APPEND k !", "COPY k l", "DUMP k", "RENAME k l", "GETRANGE k 0 -1", "BITCOUNT k", "MGET k l"];
    for number in ["16", "17", "255", "256", "-1", "9223372036854775807", "x"] {
        for command in commands {
            let Value::Array(replies) = transaction(&mut client, &[&format!("SELECT {number}"), command]) else {
                panic!("SELECT {number}, {command}: no array")
            };
            assert!(matches!(replies[0], Value::Error(_)), "{number}: {replies:?}");
        }
        assert!(client.is_listed("db=0"), "{number}");
        client.say("FLUSHALL");
        client.say("SET k value");
    }
    assert_eq!(transaction(&mut client, &["SELECT 15", "GET k", "SELECT 0", "GET k"]), {
        array([ok(), Value::Null, ok(), bulk("value")])
    });
}

#[test]
fn request_that_panics_ends_its_client_alone() {
    let server = server();
    let mut others: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for round in 1..=5 {
        let mut client = server.client();
        client.send(b"SET before 1\r\nDEBUG PANIC\r\nSET behind 1\r\n");
        assert_eq!((client.reply(), client.reply()), (ok(), panicked()));
        assert!(client.is_at_end());
        for other in &mut others {
            other.converse([("GET before", bulk("1")), ("GET behind", Value::Null), ("INCR count", int(round))]);
            other.say("DECR count");
        }
        others[0].say("INCR count");
        assert_eq!(panic_count(&mut others[1]), round as u64);
    }
    let errors = others[0].say("INFO commandstats");
    assert!(
        matches!(&errors, Value::Bulk(text) if String::from_utf8_lossy(text).contains("cmdstat_debug:calls=0")
        && String::from_utf8_lossy(text).contains("failed_calls=5")),
        "{errors:?}"
    );
}

/// `KEYS` makes it a background job, whose thread and claim others need afterwards.
#[test]
fn transaction_that_panics_has_written_nothing() {
    let server = server();
    let mut other = server.client();
    other.converse([("SET k old", ok()), ("SELECT 1", ok()), ("SET k one", ok()), ("SELECT 0", ok())]);
    for lines in [
        &["SET k new", "SWAPDB 0 1", "SELECT 7", "SET k x", "DEBUG PANIC"][..],
        &["KEYS *", "SET k new", "DEBUG PANIC"],
    ] {
        for _ in 0..3 {
            let (mut client, mut watcher) = (server.client(), server.client());
            watcher.converse([("WATCH k", ok()), ("MULTI", ok()), ("GET k", queued())]);
            assert_eq!(transaction(&mut client, lines), panicked());
            assert!(client.is_at_end());
            other.converse([("GET k", bulk("old")), ("SELECT 1", ok()), ("GET k", bulk("one")), ("SELECT 0", ok())]);
            other.converse([("KEYS k", array([bulk("k")])), ("RENAME k l", ok()), ("RENAME l k", ok())]);
            assert_eq!(watcher.say("EXEC"), Value::Null, "RENAME has touched it");
        }
    }
    assert_eq!(panic_count(&mut other), 6);
}

#[test]
fn write_that_panics_leaves_reads() {
    let mut parameters = Parameters::default();
    parameters.set("enable-debug-command", "local").expect("a parameter");
    let http = Some("127.0.0.1:0".into());
    let server = TestServer::with(Config { threads: 2, parameters, http, ..Config::default() });
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(other.say("SET k v"), ok());
    client.send(b"DEBUG PANIC half\r\n");
    assert_eq!(client.reply(), panicked());
    assert!(client.is_at_end());
    let refused = error(
        "ERR a write panicked and may have left a change unfinished; writes fail until the store is opened again",
    );
    other.converse([
        ("SET k w", refused.clone()),
        ("GET k", bulk("v")),
        ("DEL k", refused.clone()),
        ("GET half", Value::Null),
    ]);
    assert_eq!(transaction(&mut other, &["SET k w"]), refused);
    let health = health(server.http.as_ref().expect("it was asked for"));
    assert!(health.contains("503") && health.contains("unfinished"), "{health}");
    let server = server.restarted();
    server.client().converse([("GET k", bulk("v")), ("SET k w", ok()), ("GET half", Value::Null)]);
}

fn health(port: &HttpPort) -> String {
    let mut probe = Client::connect(port.local_addr());
    probe.send(b"GET /health HTTP/1.0\r\n\r\n");
    String::from_utf8(probe.rest()).expect("a text")
}
