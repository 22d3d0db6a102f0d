//! Transactions and watched keys.

use std::thread;

use crate::common::{TestServer, Value, array, bulk, error, int, ok};

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

#[test]
fn requests_are_executed_together() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("EXEC", error("ERR EXEC without MULTI")),
        ("DISCARD", error("ERR DISCARD without MULTI")),
        ("MULTI", ok()),
        ("MULTI", error("ERR MULTI calls can not be nested")),
        ("SET k v", queued()),
        ("INCR k", queued()),
        ("GET k", queued()),
        ("EXEC", array([ok(), error("ERR value is not an integer or out of range"), bulk("v")])),
        ("MULTI", ok()),
        ("NOTHING", error("ERR unknown command 'NOTHING', with args beginning with: ")),
        ("SET k w", queued()),
        ("EXEC", error("EXECABORT Transaction discarded because of previous errors.")),
        ("MULTI", ok()),
        ("SET k w", queued()),
        ("DISCARD", ok()),
        ("GET k", bulk("v")),
        ("MULTI", ok()),
        ("SAVE", error("ERR Command not allowed inside a transaction")),
        ("DISCARD", ok()),
    ]);
}

#[test]
fn refused_exec_ends_the_transaction() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    let abort = |why: &str| error(&format!("EXECABORT Transaction discarded because of: {why}"));
    let arguments = abort("wrong number of arguments for 'exec' command");
    client.converse([
        ("EXEC x", arguments.clone()),
        ("WATCH k", ok()),
        ("MULTI", ok()),
        ("SET k v", queued()),
        ("EXEC x", arguments),
        ("EXEC", error("ERR EXEC without MULTI")),
        ("GET k", Value::Null),
    ]);
    // No key is watched any more.
    assert_eq!(other.say("SET k other"), ok());
    client.converse([("MULTI", ok()), ("GET k", queued()), ("EXEC", array([bulk("other")]))]);

    client.converse([("MULTI", ok()), ("SUBSCRIBE news", queued())]);
    assert_eq!(client.say("EXEC"), array([array([bulk("subscribe"), bulk("news"), int(1)])]));
    let why = "Can't execute 'exec': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";
    assert_eq!(client.say("EXEC"), abort(why));
    let mut admin = server.client();
    assert_eq!(admin.say("ACL SETUSER ada on nopass ~* +@all"), ok());
    client = server.client();
    client.converse([("AUTH ada x", ok()), ("MULTI", ok()), ("SET k v", queued())]);
    assert_eq!(admin.say("ACL SETUSER ada -exec"), ok());
    assert_eq!(client.say("EXEC"), abort("NOPERM this user has no permissions to run the 'exec' command"));
    assert_eq!(client.say("GET k"), bulk("other"));
}

#[test]
fn watched_key_that_changes_stops_transaction() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    for (change, is_stopped) in [
        ("SET k other", true),
        ("DEL k", true),
        ("EXPIRE k 100", true),
        ("FLUSHDB", true),
        ("RENAME k l", true),
        ("SET l other", false),
        ("GET k", false),
        ("DEL absent", false),
    ] {
        client.converse([("SET k v", ok()), ("WATCH k", ok())]);
        other.say(change);
        client.converse([("MULTI", ok()), ("PING", queued())]);
        let wanted = if is_stopped { Value::Null } else { array([Value::Simple("PONG".into())]) };
        assert_eq!(client.say("EXEC"), wanted, "{change}");
    }
    client.converse([("WATCH k", ok()), ("SET k v", ok()), ("UNWATCH", ok()), ("MULTI", ok()), ("EXEC", array([]))]);
    client.converse([("MULTI", ok()), ("WATCH k", error("ERR WATCH inside MULTI is not allowed")), ("DISCARD", ok())]);
}

/// Two accounts, and clients that move money between them; a reading client always sees the same sum.
#[test]
fn transaction_is_never_half_visible() {
    let server = TestServer::start();
    server.client().say("MSET a 1000 b 0");
    thread::scope(|scope| {
        let movers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = server.client();
                    for _ in 0..100 {
                        client.converse([("MULTI", ok()), ("DECR a", queued()), ("INCR b", queued())]);
                        assert!(matches!(client.say("EXEC"), Value::Array(_)));
                    }
                })
            })
            .collect();
        let mut client = server.client();
        while !movers.iter().all(thread::ScopedJoinHandle::is_finished) {
            client.converse([("MULTI", ok()), ("GET a", queued()), ("GET b", queued())]);
            let Value::Array(values) = client.say("EXEC") else { panic!("not an array") };
            let sum: i64 = values.iter().map(number).sum();
            assert_eq!(sum, 1000);
        }
    });
    server.client().converse([("GET a", bulk("700")), ("GET b", bulk("300")), ("INCRBY b 1", int(301))]);
}

fn number(value: &Value) -> i64 {
    let Value::Bulk(text) = value else { panic!("not a value: {value:?}") };
    str::from_utf8(text).ok().and_then(|text| text.parse().ok()).expect("a number")
}

/// A key is watched in a database, whatever namespace that is.
#[test]
fn watch_is_per_database() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    // The initial keys, another client's commands between WATCH and EXEC in database 0, and whether EXEC is executed.
    let cases: [(&[&str], &[&str], bool); 12] = [
        (&[], &["SWAPDB 0 1"], true),
        (&[], &["SWAPDB 0 1", "SET k 1"], false),
        (&[], &["SWAPDB 0 1", "SELECT 1", "SET k 1"], true),
        (&[], &["SWAPDB 1 0", "SWAPDB 0 2", "SET k 1", "DEL k"], false),
        (&["SET k 1"], &["SWAPDB 0 1"], false),
        (&["SELECT 1", "SET k 1"], &["SWAPDB 0 1"], false),
        (&["SET k 1"], &["SWAPDB 1 2"], true),
        (&["SET k 1", "SELECT 1", "SET k 1"], &["SWAPDB 0 1"], false),
        (&["SET k 1"], &["SWAPDB 0 0"], true),
        (&["SET k 1"], &["SWAPDB 0 0", "SET k 1"], false),
        (&[], &["MULTI", "SWAPDB 0 1", "SET k 1", "EXEC"], false),
        (&[], &["MULTI", "SELECT 1", "SET k 1", "SWAPDB 0 1", "EXEC"], false),
    ];
    for (before, during, is_executed) in cases {
        for line in [&["FLUSHALL", "SELECT 0"], before, &["SELECT 0"]].concat() {
            other.say(line);
        }
        client.converse([("WATCH k", ok()), ("MULTI", ok()), ("SET mine 1", queued())]);
        during.iter().for_each(|line| drop(other.say(line)));
        let wanted = if is_executed { array([ok()]) } else { Value::Null };
        assert_eq!(client.say("EXEC"), wanted, "{before:?} {during:?}");
    }
}
