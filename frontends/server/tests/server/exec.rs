//! `EXEC`: the same effect as its commands one after the other, in one step, or none.

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};
use fastrand::Rng;
use hikv::{EngineKind, Options};
use server::Config;

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

const KEYS: [&str; 5] = ["a", "b", "c", "{long}:key", "n"];

/// Returns a random command that reads or changes items.
fn command(rng: &mut Rng) -> Vec<String> {
    let mut key = || KEYS[rng.usize(..KEYS.len())];
    let (key, other, third) = (key(), key(), key());
    let value = format!("value {}", rng.u32(..1000));
    let line = match rng.u8(..40) {
        0..4 => format!("SET {key} {}", rng.u32(..100)),
        4 => format!("SET {key} x NX GET"),
        5 => format!("SET {key} y XX KEEPTTL"),
        6 => format!("SET {key} z EXAT 4000000000"),
        7 => format!("GETDEL {key}"),
        8 => format!("APPEND {key} {}", rng.u32(..100)),
        9 | 10 => format!("INCRBY {key} 7"),
        11 => format!("INCRBYFLOAT {key} 0.5"),
        12 | 13 => format!("DEL {key} {other}"),
        14 | 15 => format!("RENAME {key} {other}"),
        16 => format!("RENAMENX {key} {other}"),
        17 => format!("COPY {key} {other} REPLACE"),
        18 => format!("MOVE {key} {}", rng.u8(..3)),
        19 => format!("EXPIREAT {key} 4000000000 NX"),
        20 => format!("EXPIREAT {key} 5000000000 GT"),
        21 => format!("EXPIREAT {key} 1"),
        22 => format!("PERSIST {key}"),
        23 => format!("EXPIRETIME {key}"),
        24 => format!("MSETNX {key} 1 {other} 2"),
        25 => format!("SETRANGE {key} 3 abc"),
        26 => format!("BITOP XOR {key} {other} {third}"),
        27 => format!("EXISTS {key} {other} {key}"),
        28 => "DBSIZE".into(),
        29 => "KEYS *".into(),
        30 => "SCAN 0 COUNT 10000".into(),
        31 => "RANGE - +".into(),
        32 => "RANGE + - REV LIMIT 3".into(),
        33 => format!("COUNTRANGE - {key}"),
        34 => "SWAPDB 0 1".into(),
        35 => format!("SELECT {}", rng.u8(..3)),
        36 if rng.u8(..3) == 0 => "FLUSHALL".into(),
        36 => "FLUSHDB".into(),
        37 => format!("CAS {key} 1 2"),
        38 => format!("GETEX {key} PERSIST"),
        _ => format!("MGET {key} {other} {third}"),
    };
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    if words[0] == "SET" && words.len() == 3 && rng.bool() {
        words[2] = value;
    }
    words
}

/// Returns an unordered reply of keys in sorted order.
fn sorted(value: Value, command: &str) -> Value {
    let sort = |value| match value {
        Value::Array(mut values) => {
            values.sort_by_key(|value| format!("{value:?}"));
            Value::Array(values)
        }
        other => other,
    };
    match (command, value) {
        ("KEYS", value) => sort(value),
        ("SCAN", Value::Array(parts)) => Value::Array(parts.into_iter().map(sort).collect()),
        (_, value) => value,
    }
}

/// Returns a reply, or nothing for a count that an engine without order refuses: a store with trees may have it.
fn counted(reply: Value) -> Value {
    if matches!(&reply, Value::Error(text) if text.ends_with("has no order")) { Value::Null } else { reply }
}

/// Returns all keys with their values and expiries.
fn contents(client: &mut Client) -> Vec<Value> {
    let mut contents = Vec::new();
    for db in 0..3 {
        client.say(&format!("SELECT {db}"));
        contents.push(counted(client.say("DBSIZE")));
        for key in KEYS {
            contents.push(client.call(&["GET", key]));
            contents.push(client.call(&["EXPIRETIME", key]));
        }
    }
    contents
}

fn assert_same(one: &[Value], other: &[Value], what: &str) {
    for (number, (one, other)) in one.iter().zip(other).enumerate() {
        let is_refused_count = number.is_multiple_of(1 + 2 * KEYS.len()) && [one, other].contains(&&Value::Null);
        assert!(is_refused_count || one == other, "{one:?} is not {other:?}: {what}");
    }
}

#[test]
fn transaction_has_effects_of_its_commands() {
    EngineKind::ALL.iter().for_each(|&engine| transaction_equals_its_commands(engine, false));
}

/// One of the two stores has its catalog from the start, the other begins one when a database is emptied.
#[test]
fn transaction_works_in_store_with_trees() {
    EngineKind::ALL.iter().for_each(|&engine| transaction_equals_its_commands(engine, true));
}

fn transaction_equals_its_commands(engine: EngineKind, has_trees: bool) {
    let server = || TestServer::of(&Options::new().engine(engine), Config { threads: 2, ..Config::default() });
    let (together, apart) = (server(), server());
    if has_trees {
        together.store.tree("own").expect("the store takes it");
    }
    let (mut client, mut other) = (together.client(), apart.client());
    let mut rng = Rng::with_seed(1);
    for _ in 0..200 {
        let commands: Vec<_> = (0..rng.usize(1..20)).map(|_| command(&mut rng)).collect();
        assert_eq!(client.say("MULTI"), ok());
        for command in &commands {
            assert_eq!(client.call(command), queued(), "{command:?}");
        }
        let Value::Array(replies) = client.say("EXEC") else { panic!("{commands:?} are not answered") };
        for (command, reply) in commands.iter().zip(replies) {
            let (reply, wanted) = (counted(reply), counted(other.call(command)));
            if command[0] == "DBSIZE" && (reply == Value::Null || wanted == Value::Null) {
                continue;
            }
            assert_eq!(
                sorted(reply, &command[0]),
                sorted(wanted, &command[0]),
                "{engine}: {command:?} of {commands:?}"
            );
        }
        assert_same(&contents(&mut client), &contents(&mut other), &format!("{engine}: {commands:?}"));
        for client in [&mut client, &mut other] {
            client.say("SELECT 0");
        }
    }
    let (together, apart) = (together.restarted(), apart.restarted());
    assert_same(&contents(&mut together.client()), &contents(&mut apart.client()), "restarted");
}

#[test]
fn transaction_has_no_key_limit() {
    const KEY_COUNT: i64 = 5000;
    let server = TestServer::start();
    let mut client = server.client();
    client.say("MULTI");
    for number in 0..KEY_COUNT {
        client.say(&format!("SET {number} v"));
        client.say(&format!("INCR {number}:again"));
        client.say(&format!("DEL {number}:again"));
    }
    assert!(matches!(client.say("EXEC"), Value::Array(replies) if replies.len() == 3 * KEY_COUNT as usize));
    assert_eq!(client.say("DBSIZE"), int(KEY_COUNT));
    let pairs: String = (0..KEY_COUNT).map(|number| format!(" {number} w")).collect();
    client.converse([(&format!("MSET{pairs}")[..], ok()), ("GET 4999", bulk("w"))]);
}

/// Starts a server whose store is limited to a few MiB.
fn small() -> TestServer {
    TestServer::of(&Options::new().region_bytes_max(16 << 20), Config { threads: 1, ..Config::default() })
}

/// Queues more than that store has space for.
fn queue_too_much(client: &mut Client) {
    (0..8).for_each(|number| client.converse([(&format!("SETRANGE large:{number} 4194304 x")[..], queued())]));
}

fn is_refused_for_lack_of_space(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text.starts_with("EXECABORT Transaction discarded because of: no space left: "))
}

#[test]
fn transaction_without_space_changes_nothing() {
    let server = small();
    let mut client = server.client();
    client.converse([("SET k before", ok()), ("SELECT 1", ok()), ("MULTI", ok()), ("SET k other", queued())]);
    client.converse([("SWAPDB 0 1", queued()), ("SELECT 0", queued())]);
    queue_too_much(&mut client);
    let reply = client.say("EXEC");
    assert!(is_refused_for_lack_of_space(&reply), "{reply:?}");
    client.converse([("SELECT 0", ok()), ("GET k", bulk("before")), ("DBSIZE", int(1))]);
    client.converse([("SELECT 1", ok()), ("DBSIZE", int(0)), ("SET k there", ok()), ("DBSIZE", int(1))]);
    client.converse([("MULTI", ok()), ("SET k after", queued()), ("EXEC", array([ok()])), ("GET k", bulk("after"))]);
}

/// The watched key exists before the refused transaction, and is unchanged afterwards.
#[test]
fn refused_transaction_touches_no_watched_key() {
    for line in ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1"] {
        let server = small();
        let (mut client, mut watcher) = (server.client(), server.client());
        watcher.converse([("SET k v", ok()), ("WATCH k", ok())]);
        client.converse([("MULTI", ok()), (line, queued())]);
        queue_too_much(&mut client);
        let reply = client.say("EXEC");
        assert!(is_refused_for_lack_of_space(&reply), "{reply:?}");
        watcher.converse([("MULTI", ok()), ("GET k", queued()), ("EXEC", array([bulk("v")]))]);
        // A successful transaction touches it.
        watcher.converse([("WATCH k", ok()), ("MULTI", ok()), ("GET k", queued())]);
        client.converse([("MULTI", ok()), (line, queued()), ("EXEC", array([ok()]))]);
        assert_eq!(watcher.say("EXEC"), Value::Null, "{line}");
    }
}

/// Messages and notifications are sent in the order of the commands, after the transaction is written.
#[test]
fn transaction_publishes_after_it_is_written() {
    let server = small();
    let (mut client, mut subscriber) = (server.client(), server.client());
    assert_eq!(client.say("CONFIG SET notify-keyspace-events KEA"), ok());
    subscriber.say("PSUBSCRIBE __keyevent@0__:set jobs");
    subscriber.say("SSUBSCRIBE jobs");
    let reply = subscriber.reply();
    assert_eq!(reply, array([bulk("ssubscribe"), bulk("jobs"), int(1)]));
    client.converse([("MULTI", ok()), ("SET k 1", queued()), ("PUBLISH jobs refused", queued())]);
    client.converse([("SPUBLISH jobs refused", queued())]);
    queue_too_much(&mut client);
    let reply = client.say("EXEC");
    assert!(is_refused_for_lack_of_space(&reply), "{reply:?}");
    client.converse([("MULTI", ok()), ("SET k 1", queued()), ("PUBLISH jobs done", queued())]);
    client.converse([("SET l 1", queued()), ("SPUBLISH jobs done", queued()), ("PUBLISH others x", queued())]);
    assert_eq!(client.say("EXEC"), array([ok(), int(1), ok(), int(1), int(0)]));
    let of_key = |key: &str| {
        let channel = "__keyevent@0__:set";
        array([bulk("pmessage"), bulk(channel), bulk(channel), bulk(key)])
    };
    assert_eq!(subscriber.reply(), of_key("k"));
    assert_eq!(subscriber.reply(), array([bulk("pmessage"), bulk("jobs"), bulk("jobs"), bulk("done")]));
    assert_eq!(subscriber.reply(), of_key("l"));
    assert_eq!(subscriber.reply(), array([bulk("smessage"), bulk("jobs"), bulk("done")]));
}

/// Two keys need a journal record, for which there is no space; one needs none, whatever the transaction has read of
/// it.
#[test]
fn transaction_of_one_delete_needs_no_space() {
    for engine in [EngineKind::HiKv, EngineKind::RewoHash] {
        let server = TestServer::of(
            &Options::new().engine(engine).region_bytes_max(16 << 20),
            Config { threads: 1, ..Config::default() },
        );
        let mut client = server.client();
        (0..10)
            .for_each(|number| assert_eq!(client.call(&["SET", &format!("4000:{number}"), &"x".repeat(4_000)]), ok()));
        for len_bytes in [30_000, 4_000, 250, 20, 1] {
            let value = "x".repeat(len_bytes);
            (0..).find(|number| client.call(&["SET", &format!("{len_bytes}:{number}"), &value]) != ok());
        }
        client.converse([("MULTI", ok()), ("DEL 30000:0", queued()), ("DEL 4000:0", queued())]);
        let reply = client.say("EXEC");
        assert!(is_refused_for_lack_of_space(&reply), "{engine}: {reply:?}");
        client.converse([("MULTI", ok()), ("STRLEN 4000:1", queued()), ("DEL 4000:1", queued())]);
        assert_eq!(client.say("EXEC"), array([int(4_000), int(1)]), "{engine}");
        client.converse([("WATCH 4000:2", ok()), ("MULTI", ok()), ("UNLINK 4000:2", queued())]);
        client.converse([("EXEC", array([int(1)])), ("EXISTS 4000:1 4000:2 30000:0 4000:0", int(2))]);
    }
}

/// Changes beyond the limit, which the error names, are not collected; neither are changes queued afterwards.
#[test]
#[ignore = "a gigabyte of memory"]
fn transaction_of_too_many_bytes_changes_nothing() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("SET k before", ok()), ("MULTI", ok()), ("SET k after", queued())]);
    for number in 0..40 {
        client.converse([(&format!("SETRANGE large:{number} 67108863 x")[..], queued())]);
    }
    let Value::Error(refused) = client.say("EXEC") else { panic!("it was carried out") };
    assert!(refused.starts_with("EXECABORT Transaction discarded because of: the batch has 1073"), "{refused}");
    assert!(refused.ends_with("512 for each operation; the limit is 1073741824"), "{refused}");
    client.converse([("GET k", bulk("before")), ("DBSIZE", int(1))]);
}

/// Replies beyond the limit are discarded together with the changes. A client that tracks keys is limited likewise:
/// its values are also copied.
#[test]
#[ignore = "gigabytes of memory"]
fn transaction_with_too_long_replies_changes_nothing() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("SET k before", ok()), ("SETRANGE large 268435455 x", int(1 << 28)), ("MULTI", ok())]);
    assert_eq!(client.say("SET k after"), queued());
    (0..200).for_each(|_| assert_eq!(client.say("GET large"), queued()));
    let refused = "EXECABORT Transaction discarded because of: replies exceed 1073741824 bytes";
    client.converse([("EXEC", error(refused)), ("GET k", bulk("before"))]);
    client.say("HELLO 3");
    client.converse([("CLIENT TRACKING ON", ok())]);
    let refused = "ERR reply exceeds 1073741824 bytes; request fewer items";
    assert_eq!(client.say(&format!("MGET{}", " large".repeat(200))), error(refused));
    assert_eq!(client.say("GET k"), bulk("before"));
}

/// A store of very many keys is first cleared in a separate step.
#[test]
fn all_keys_are_deleted_and_put_again() {
    let server = TestServer::start();
    let mut client = server.client();
    for count in [10, 2000, 100_001] {
        let pairs = (0..count).flat_map(|number| [number.to_string(), "v".into()]);
        let mset: Vec<String> = ["MSET".into()].into_iter().chain(pairs).collect();
        assert_eq!(client.call(&mset), ok());
        client.converse([("MULTI", ok()), ("SET a 1", queued()), ("FLUSHALL", queued()), ("GET a", queued())]);
        client.converse([("SET b 2", queued()), ("DBSIZE", queued()), ("KEYS *", queued()), ("RANGE - +", queued())]);
        let range = array([bulk("b"), bulk("2")]);
        let wanted = [ok(), ok(), Value::Null, ok(), int(1), array([bulk("b")]), range];
        client.converse([("EXEC", array(wanted)), ("DBSIZE", int(1)), ("GET b", bulk("2")), ("GET 0", Value::Null)]);
    }
}

/// No client is notified of a change before it is made, or of one that is not made.
#[test]
fn listeners_receive_executed_changes() {
    let server = small();
    let (mut client, mut listener) = (server.client(), server.client());
    client.converse([("CONFIG SET notify-keyspace-events KEA", ok()), ("SET x 1", ok())]);
    listener.say("SUBSCRIBE __keyevent@0__:set __keyevent@0__:rename_to");
    listener.reply();
    client.converse([("MULTI", ok()), ("SET b 0", queued())]);
    queue_too_much(&mut client);
    let reply = client.say("EXEC");
    assert!(is_refused_for_lack_of_space(&reply), "{reply:?}");
    client.converse([("MULTI", ok()), ("SET a 1", queued()), ("RENAME a b", queued()), ("EXEC", array([ok(), ok()]))]);
    for (event, key) in [("set", "a"), ("rename_to", "b")] {
        let wanted = array([bulk("message"), bulk(format!("__keyevent@0__:{event}")), bulk(key)]);
        assert_eq!(listener.reply(), wanted);
    }
}

/// A client that caches keys may keep them.
#[test]
fn refused_transaction_invalidates_nothing() {
    for line in ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1"] {
        let server = small();
        let (mut client, mut tracker) = (server.client(), server.client());
        tracker.say("HELLO 3");
        tracker.converse([("CLIENT TRACKING ON", ok()), ("SET k v", ok()), ("GET k", bulk("v"))]);
        client.converse([("MULTI", ok()), (line, queued())]);
        queue_too_much(&mut client);
        let reply = client.say("EXEC");
        assert!(is_refused_for_lack_of_space(&reply), "{reply:?}");
        tracker.converse([("PING", Value::Simple("PONG".into())), ("GET k", bulk("v"))]);
        client.converse([("MULTI", ok()), (line, queued()), ("EXEC", array([ok()]))]);
        assert_eq!(tracker.reply(), Value::Push(vec![bulk("invalidate"), Value::Null]), "{line}");
    }
}
