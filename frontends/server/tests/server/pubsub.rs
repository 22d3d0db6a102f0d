//! Channels, and messages about keys.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use server::Config;

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

fn message<const N: usize>(parts: [&str; N]) -> Value {
    Value::Array(parts.iter().map(bulk).collect())
}

fn confirmation(verb: &str, name: &str, count: i64) -> Value {
    array([bulk(verb), bulk(name), int(count)])
}

#[test]
fn messages_reach_subscribers_on_every_loop() {
    let server = TestServer::start();
    let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.say("SUBSCRIBE c"), confirmation("subscribe", "c", 1));
        assert_eq!(client.say("PSUBSCRIBE c*"), confirmation("psubscribe", "c*", 2));
    }
    let mut publisher = server.client();
    assert_eq!(publisher.say("PUBLISH c hello"), int(8));
    for client in &mut clients {
        assert_eq!(client.reply(), message(["message", "c", "hello"]));
        assert_eq!(client.reply(), message(["pmessage", "c*", "c", "hello"]));
        assert_eq!(client.say("UNSUBSCRIBE"), confirmation("unsubscribe", "c", 1));
    }
    publisher.converse([
        ("PUBLISH c again", int(4)),
        ("PUBSUB CHANNELS", array([])),
        ("PUBSUB NUMPAT", int(1)),
        ("PUBSUB NUMSUB c", array([bulk("c"), int(0)])),
    ]);
    drop(clients);
}

#[test]
fn subscribed_client_of_resp2_may_say_little() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("UNSUBSCRIBE", array([bulk("unsubscribe"), Value::Null, int(0)])),
        ("SUBSCRIBE c", confirmation("subscribe", "c", 1)),
        ("PING", array([bulk("pong"), bulk("")])),
        (
            "GET k",
            error(
                "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
                 context",
            ),
        ),
        ("RESET", Value::Simple("RESET".into())),
        ("GET k", Value::Null),
    ]);
}

#[test]
fn client_of_resp3_gets_pushes_between_replies() {
    let server = TestServer::start();
    let (mut client, mut publisher) = (server.client(), server.client());
    client.say("HELLO 3");
    assert_eq!(client.say("SUBSCRIBE c"), Value::Push(vec![bulk("subscribe"), bulk("c"), int(1)]));
    assert_eq!(client.say("SET k v"), ok());
    publisher.say("PUBLISH c hello");
    assert_eq!(client.reply(), Value::Push(vec![bulk("message"), bulk("c"), bulk("hello")]));
}

#[test]
fn key_changes_are_published() {
    let server = TestServer::start();
    let (mut client, mut listener) = (server.client(), server.client());
    assert_eq!(client.say("CONFIG SET notify-keyspace-events KEA"), ok());
    assert_eq!(client.say("CONFIG GET notify-keyspace-events"), message(["notify-keyspace-events", "AKE"]));
    listener.say("PSUBSCRIBE __key*__:*");
    client.say("SET k v EX 100");
    client.say("DEL k absent");
    client.say("INCR n");
    client.say("DECRBY n 3");
    client.say("SELECT 2");
    client.say("SET j v PX 1");
    for (kind, db, event, key) in [
        ("set", 0, "set", "k"),
        ("expire", 0, "expire", "k"),
        ("del", 0, "del", "k"),
        ("incr", 0, "incrby", "n"),
        ("decrby", 0, "incrby", "n"),
        ("set", 2, "set", "j"),
        ("expire", 2, "expire", "j"),
        ("expired", 2, "expired", "j"),
    ] {
        let space = format!("__keyspace@{db}__:{key}");
        assert_eq!(listener.reply(), message(["pmessage", "__key*__:*", &space, event]), "{kind}");
        let event_channel = format!("__keyevent@{db}__:{event}");
        assert_eq!(listener.reply(), message(["pmessage", "__key*__:*", &event_channel, key]), "{kind}");
    }
    assert_eq!(
        client.say("CONFIG SET notify-keyspace-events q"),
        error(
            "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class character. \
             Use 'Ag$lshzxeKEtmdn'."
        )
    );
}

#[test]
fn monitor_sees_requests() {
    let server = TestServer::start();
    let (mut monitor, mut client) = (server.client(), server.client());
    assert_eq!(monitor.say("MONITOR"), ok());
    client.say("SET k \"a\\x01\"");
    let line = monitor.line();
    assert!(line.starts_with('+') && line.ends_with("\"SET\" \"k\" \"a\\x01\""), "{line}");
}

/// Redis shows a request after its execution: `EXEC` after its commands, `SELECT` with the database that it has
/// selected.
#[test]
fn monitor_sees_order_of_redis() {
    let server = TestServer::start();
    let (mut monitor, mut client) = (server.client(), server.client());
    assert_eq!(monitor.say("MONITOR"), ok());
    for line in ["MULTI", "SET k 1", "INCR k", "EXEC", "SELECT 1", "INCR k", "EXEC", "MULTI", "EXEC x", "BAD"] {
        client.say(line);
    }
    client.say("PING");
    let wanted = [
        "0 MULTI",
        "0 SET k 1",
        "0 INCR k",
        "0 EXEC",
        "1 SELECT 1",
        "1 INCR k",
        "1 EXEC",
        "1 MULTI",
        "1 EXEC x",
        "1 PING",
    ];
    for wanted in wanted {
        let line = monitor.line();
        let (db, words) = wanted.split_once(' ').expect("two parts");
        let words: String = words.split(' ').map(|word| format!(" \"{word}\"")).collect();
        assert!(line.contains(&format!(" [{db} 127.0.0.1:")) && line.ends_with(&words), "{line} is not {wanted}");
    }
}

#[test]
fn channels_of_the_shard_are_apart() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("SUNSUBSCRIBE", array([bulk("sunsubscribe"), Value::Null, int(0)])),
        ("SUBSCRIBE c", confirmation("subscribe", "c", 1)),
        ("SSUBSCRIBE c", confirmation("ssubscribe", "c", 1)),
        ("SSUBSCRIBE c", confirmation("ssubscribe", "c", 1)),
        ("PSUBSCRIBE *", confirmation("psubscribe", "*", 2)),
    ]);
    let mut publisher = server.client();
    publisher.converse([
        ("SPUBLISH c to-shard", int(1)),
        ("SPUBLISH other x", int(0)),
        ("PUBSUB SHARDCHANNELS", array([bulk("c")])),
        ("PUBSUB SHARDCHANNELS d*", array([])),
        ("PUBSUB SHARDNUMSUB c d", array([bulk("c"), int(1), bulk("d"), int(0)])),
        ("PUBSUB SHARDNUMSUB", array([])),
        ("PUBLISH c to-all", int(2)),
    ]);
    assert_eq!(client.reply(), message(["smessage", "c", "to-shard"]));
    assert_eq!(client.reply(), message(["message", "c", "to-all"]));
    assert_eq!(client.reply(), message(["pmessage", "*", "c", "to-all"]));
    let Value::Bulk(list) = publisher.say("CLIENT LIST TYPE pubsub") else { panic!("not a text") };
    let list = String::from_utf8(list).expect("a text");
    assert!(list.contains(" sub=1 psub=1 ssub=1 "), "{list}");
    client.converse([
        ("SUNSUBSCRIBE", confirmation("sunsubscribe", "c", 0)),
        ("UNSUBSCRIBE", confirmation("unsubscribe", "c", 1)),
        ("PUNSUBSCRIBE", confirmation("punsubscribe", "*", 0)),
        ("SSUBSCRIBE a", confirmation("ssubscribe", "a", 1)),
        ("RESET", Value::Simple("RESET".into())),
        ("PUBSUB SHARDCHANNELS", array([])),
        ("MULTI", ok()),
        ("SSUBSCRIBE a", Value::Simple("QUEUED".into())),
        ("EXEC", array([error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")])),
    ]);
}

#[test]
fn channel_rights_include_shard_channels() {
    let server = TestServer::start();
    let denied = error("NOPERM this user has no permissions to access one of the channels used as arguments");
    server.client().converse([
        ("ACL SETUSER ada on nopass +@all resetchannels &ours*", ok()),
        ("AUTH ada x", ok()),
        ("SPUBLISH ours:1 x", int(0)),
        ("SPUBLISH theirs x", denied.clone()),
        ("SSUBSCRIBE ours:1 theirs", denied),
        ("SSUBSCRIBE ours:1 ours:2", confirmation("ssubscribe", "ours:1", 1)),
    ]);
}

/// The publisher is executed before the subscriber in each round of the loop.
#[test]
fn no_message_follows_unsubscribe() {
    let server = TestServer::single();
    let (mut publisher, mut client) = (server.client(), server.client());
    assert_eq!(server.client().call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0"]), ok());
    let publications = encode(&["PUBLISH", "news", &"x".repeat(10_000)]).repeat(100);
    for end in ["UNSUBSCRIBE", "RESET"] {
        client.say("SUBSCRIBE news");
        assert_eq!(server.client().say("CLIENT PAUSE 200 ALL"), ok());
        publisher.send(&publications);
        client.send(format!("{end}\r\nECHO done\r\n").as_bytes());
        (0..100).for_each(|_| drop(publisher.reply()));
        while matches!(client.reply(), Value::Array(parts) if parts[0] == bulk("message")) {}
        assert_eq!(client.reply(), bulk("done"), "{end}");
        assert_eq!(client.say("ECHO more"), bulk("more"), "{end}");
    }
}

/// A message that a client sends to itself precedes the reply that ends its subscription.
#[test]
fn own_messages_precede_unsubscribe() {
    let server = TestServer::start();
    let push = |parts: [&str; 3]| Value::Push(parts.iter().map(bulk).collect());
    assert_eq!(server.client().say("CONFIG SET notify-keyspace-events KA"), ok());
    for (sends, result, received) in [
        ("PUBLISH c hello", int(1), push(["message", "c", "hello"])),
        ("SET k v", ok(), push(["message", "__keyspace@0__:k", "set"])),
    ] {
        for end in ["UNSUBSCRIBE c __keyspace@0__:k", "RESET", "MULTI\r\nUNSUBSCRIBE c\r\nEXEC"] {
            let mut client = server.client();
            client.say("HELLO 3");
            client.send(b"SUBSCRIBE c __keyspace@0__:k\r\n");
            (0..2).for_each(|_| drop(client.reply()));
            client.send(format!("{sends}\r\n{end}\r\nECHO done\r\n").as_bytes());
            assert_eq!(client.reply(), result, "{sends}, {end}");
            if end.starts_with("MULTI") {
                assert_eq!([client.reply(), client.reply()], [ok(), Value::Simple("QUEUED".into())]);
            }
            assert_eq!(client.reply(), received, "{sends}, {end}");
            while client.reply() != bulk("done") {}
        }
    }
}

/// Otherwise the client would take a late message for the reply to its next request.
#[test]
fn no_message_follows_end_of_subscription() {
    let server = TestServer::with(Config { threads: 2, ..Config::default() });
    let (is_over, message) = (AtomicBool::new(false), "x".repeat(2_000));
    assert_eq!(server.client().call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0"]), ok());
    let publications = encode(&["PUBLISH", "news", &message]).repeat(100);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut publisher = server.client();
            for _ in (0..5_000).take_while(|_| !is_over.load(Ordering::SeqCst)) {
                publisher.send(&publications);
                (0..100).for_each(|_| drop(publisher.reply()));
            }
        });
        let mut late_count = 0;
        for end in ["UNSUBSCRIBE", "RESET", "UNSUBSCRIBE news"].into_iter().cycle().take(60) {
            let mut client = server.client();
            client.say("SUBSCRIBE news");
            (0..50).for_each(|_| drop(client.reply()));
            client.send(format!("{end}\r\nECHO done\r\n").as_bytes());
            let is_end = |reply: &Value| match reply {
                Value::Simple(text) => text == "RESET",
                Value::Array(parts) => parts[0] == bulk("unsubscribe"),
                _ => false,
            };
            while !is_end(&client.reply()) {}
            late_count += u32::from(client.reply() != bulk("done") || client.say("ECHO more") != bulk("more"));
        }
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(late_count, 0);
    });
}
