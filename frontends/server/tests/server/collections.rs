//! Keys of collections: expiry, moving, databases, transactions, scripts, restarts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hikv::{EngineKind, Store};

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};
use crate::shown::{Shown, TREE};

/// Waits until the store has this number of keys for collections; fails if it stays the same for long.
fn await_items(server: &TestServer, wanted: u64) {
    let tree = server.store.existing_tree(TREE).expect("it is found").expect("there is the tree");
    let count = || tree.len().expect("it is counted");
    let (mut now, mut changed) = (count(), Instant::now());
    while now != wanted {
        assert!(changed.elapsed() < Duration::from_secs(30), "{now} items instead of {wanted}");
        thread::yield_now();
        let before = std::mem::replace(&mut now, count());
        if now != before {
            changed = Instant::now();
        }
    }
}

#[test]
fn deleted_collections_are_reclaimed() {
    let server = TestServer::start();
    let mut client = server.client();
    for number in 0..1000 {
        client.say(&format!("HSET h f{number} v"));
    }
    client.converse([("HSET other a 1", int(1)), ("DEL h", int(1)), ("HLEN h", int(0)), ("HSET h a 1", int(1))]);
    // The head, two records, two elements.
    await_items(&server, 5);
    client.converse([("SET h x", ok()), ("FLUSHDB", ok()), ("DBSIZE", int(0)), ("HGETALL other", array([]))]);
    await_items(&server, 1);
    client.converse([("SELECT 3", ok()), ("HSET a b c", int(1)), ("HSET d e f", int(1)), ("DBSIZE", int(2))]);
    await_items(&server, 5);
    client.converse([("FLUSHDB", ok()), ("DBSIZE", int(0)), ("HSET a b c", int(1))]);
    await_items(&server, 3);
    client.converse([("FLUSHALL", ok()), ("DBSIZE", int(0)), ("EXISTS a", int(0))]);
    await_items(&server, 1);
}

/// A program empties the database by its tree, which the server does not notice at once.
#[test]
fn collections_of_cleared_trees_are_reclaimed() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("SELECT 1", ok()), ("SET k v", ok()), ("HSET h a 1 b 2", int(2)), ("HLEN h", int(2))]);
    server
        .store
        .existing_tree("hikv:1")
        .expect("it is found")
        .expect("there is the tree")
        .clear()
        .expect("it is cleared");
    client.converse([("EXISTS k", int(0)), ("EXISTS h", int(0))]);
    await_items(&server, 1);
}

#[test]
fn collections_expire() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("HSET h a 1", int(1)),
        ("TTL h", int(-1)),
        ("PERSIST h", int(0)),
        ("EXPIRE h 100", int(1)),
        ("TTL h", int(100)),
        ("HSET h b 2", int(1)),
        ("TTL h", int(100)),
        ("EXPIRE h 50 GT", int(0)),
        ("EXPIRE h 200 GT", int(1)),
        ("TTL h", int(200)),
        ("RENAME h g", ok()),
        ("TTL g", int(200)),
        ("PERSIST g", int(1)),
        ("TTL g", int(-1)),
        ("TTL h", int(-2)),
        ("SET g x KEEPTTL", ok()),
        ("DEL g", int(1)),
        ("HSET h a 1 b 2", int(2)),
        ("EXPIRE h -1", int(1)),
        ("EXISTS h", int(0)),
        ("HSET h a 1 b 2", int(2)),
        ("PEXPIRE h 1", int(1)),
    ]);
    let deadline = Instant::now() + Duration::from_secs(30);
    while client.say("EXISTS h") == int(1) {
        assert!(Instant::now() < deadline);
    }
    client.converse([("HGET h a", Value::Null), ("HSET h c 3", int(1)), ("HLEN h", int(1)), ("TTL h", int(-1))]);
    await_items(&server, 3);
}

#[test]
fn collections_are_moved_and_copied() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("HSET h a 1 b 2", int(2)),
        ("EXPIRE h 1000", int(1)),
        ("SET s x", ok()),
        ("COPY h s", int(0)),
        ("COPY h s REPLACE", int(1)),
        ("HGET s b", bulk("2")),
        ("TTL s", int(1000)),
        ("HSET s b 3", int(0)),
        ("HGET h b", bulk("2")),
        ("RENAMENX h s", int(0)),
        ("RENAME h s", ok()),
        ("HGET s b", bulk("2")),
        ("MOVE s 2", int(1)),
        ("EXISTS s", int(0)),
        ("SELECT 2", ok()),
        ("HMGET s a b", array([bulk("1"), bulk("2")])),
        ("TTL s", int(1000)),
        ("SWAPDB 0 2", ok()),
        ("EXISTS s", int(0)),
        ("SELECT 0", ok()),
        ("HLEN s", int(2)),
        ("SET t x", ok()),
        ("RENAME t s", ok()),
        ("GET s", bulk("x")),
        ("TTL s", int(-1)),
        ("DBSIZE", int(1)),
        ("HSET h a 1", int(1)),
        ("RENAME h s", ok()),
        ("TYPE s", Value::Simple("hash".into())),
        ("KEYS *", array([bulk("s")])),
        ("RANDOMKEY", bulk("s")),
        ("OBJECT ENCODING s", bulk("listpack")),
    ]);
    await_items(&server, 3);
}

#[test]
fn transactions_change_collections_atomically() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.converse([
        ("MULTI", ok()),
        ("HSET h a 1", Value::Simple("QUEUED".into())),
        ("HSET h b 2", Value::Simple("QUEUED".into())),
        ("HGETALL h", Value::Simple("QUEUED".into())),
        ("HDEL h a", Value::Simple("QUEUED".into())),
        ("GET h", Value::Simple("QUEUED".into())),
        ("EXPIRE h 100", Value::Simple("QUEUED".into())),
    ]);
    let wrong = error("WRONGTYPE Operation against a key holding the wrong kind of value");
    let Value::Array(replies) = client.say("EXEC") else { panic!("no array") };
    assert_eq!(replies[..2], [int(1), int(1)]);
    assert!(matches!(&replies[2], Value::Array(values) if values.len() == 4), "{replies:?}");
    assert_eq!(replies[3..], [int(1), wrong, int(1)]);
    client.converse([("HLEN h", int(1)), ("TTL h", int(100)), ("WATCH h", ok()), ("MULTI", ok())]);
    client.converse([("HSET h c 1", Value::Simple("QUEUED".into()))]);
    assert_eq!(other.say("HSET h b 3"), int(0));
    client.converse([("EXEC", Value::Null), ("HEXISTS h c", int(0))]);
    client.converse([("WATCH h", ok()), ("MULTI", ok()), ("HSET h c 1", Value::Simple("QUEUED".into()))]);
    client.converse([("EXEC", array([int(1)])), ("HEXISTS h c", int(1))]);
    let script = "redis.call('HSET', KEYS[1], 'x', 1, 'y', 2); redis.call('DEL', KEYS[2]); \
                  return redis.call('HGET', KEYS[1], 'y')";
    assert_eq!(client.call(&["EVAL", script, "2", "k", "h"]), bulk("2"));
    client.converse([("HLEN k", int(2)), ("EXISTS h", int(0)), ("DBSIZE", int(1))]);
    await_items(&server, 4);
}

/// The catalog begins in the middle of the script, which then starts again.
#[test]
fn script_makes_the_first_collection() {
    let server = TestServer::start();
    let mut client = server.client();
    let script = "redis.call('INCR', 'n'); redis.call('HSET', 'h', 'a', 1); return redis.call('HGET', 'h', 'a')";
    client.converse([("SET n 1", ok())]);
    assert_eq!(client.call(&["EVAL", script, "0"]), bulk("1"));
    client.converse([("GET n", bulk("2")), ("HLEN h", int(1))]);
}

#[test]
fn collections_survive_restarts() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("HSET h a 1 b 2", int(2)), ("SELECT 5", ok()), ("HSET g a 1", int(1)), ("EXPIRE g 100", int(1))]);
    drop(client);
    let server = server.restarted();
    let mut client = server.client();
    client.converse([
        ("HLEN h", int(2)),
        ("HSET new a 1", int(1)),
        ("HGET h b", bulk("2")),
        ("SELECT 5", ok()),
        ("HLEN g", int(1)),
        ("DEL g", int(1)),
    ]);
    await_items(&server, 6);
}

#[test]
fn changes_are_reported() {
    let server = TestServer::start();
    let (mut client, mut listener) = (server.client(), server.client());
    client.say("CONFIG SET notify-keyspace-events KEA");
    listener.say("PSUBSCRIBE __keyevent@0__:*");
    client.converse([("HSET h a 1", int(1)), ("HDEL h a", int(1)), ("HINCRBY h n 1", int(1)), ("PEXPIRE h 1", int(1))]);
    let mut events = Vec::new();
    while events.len() < 6 {
        let Value::Array(message) = listener.reply() else { panic!("no message") };
        let Value::Bulk(channel) = &message[2] else { panic!("no channel") };
        events.push(String::from_utf8_lossy(channel).rsplit(':').next().expect("an event").to_owned());
    }
    assert_eq!(events, ["hset", "hdel", "del", "hincrby", "expire", "expired"]);
}

fn fill(client: &mut Client, count: usize) {
    for number in 0..count {
        let mut request = vec!["HSET".to_owned(), "h".to_owned()];
        (0..1000).for_each(|field| request.extend([format!("f{number}.{field}"), "v".to_owned()]));
        client.call(&request);
    }
}

/// Clients of the same loop are served while a large hash is read.
#[test]
fn large_hashes_are_read_in_the_background() {
    let server = TestServer::single();
    let mut client = server.client();
    fill(&mut client, 40);
    client.converse([("HLEN h", int(40_000))]);
    let Value::Array(all) = client.say("HKEYS h") else { panic!("no array") };
    assert_eq!(all.len(), 40_000);
    client.converse([("COPY h g", int(1)), ("HLEN g", int(40_000)), ("DEL h g", int(2))]);
    await_items(&server, 1);
}

#[test]
fn engines_without_order_refuse_collections() {
    let options = hikv::Options::new().engine(EngineKind::RewoHash);
    let server = TestServer::of(&options, server::Config { threads: 1, ..server::Config::default() });
    let mut client = server.client();
    let Value::Error(text) = client.say("HSET h a 1") else { panic!("no error") };
    assert!(text.contains("rewo-hash") && text.contains("order"), "{text}");
    client.converse([("SET s 1", ok()), ("GET s", bulk("1"))]);
}

fn random_command(random: &mut fastrand::Rng) -> String {
    let (key, other, field) = (random.u32(..4), random.u32(..4), random.u32(..6));
    match random.u32(..16) {
        0..4 => format!("HSET h{key} f{field} 1 g{field} 2"),
        4 => format!("HDEL h{key} f{field} g{field}"),
        5..8 => format!("SADD s{key} {field} x{field}"),
        8 => format!("SPOP s{key} 2"),
        9 => format!("SMOVE s{key} s{other} {field}"),
        10 => format!("DEL h{key} s{key}"),
        11 => format!("SET h{key} v"),
        12 => format!("PEXPIRE s{key} {}", random.u32(..5)),
        13 => format!("EXPIRE h{key} 100"),
        14 => format!("RENAME h{key} h{other}"),
        _ => format!("SUNIONSTORE s{key} s{key} s{other}"),
    }
}

/// A snapshot shows what a crash at its moment would leave: each moment between two batches.
#[test]
fn every_moment_has_the_invariants() {
    const COMMAND_COUNT: u32 = 3000;
    let server = TestServer::start();
    let store: &Store = &server.store;
    server.client().converse([("HSET h0 f 1", int(1))]);
    let (is_done, mut snapshot_count) = (AtomicBool::new(false), 0);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|seed| {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for number in 0..COMMAND_COUNT {
                        let line = random_command(&mut random);
                        let is_pair = number % 10 == 0;
                        if is_pair {
                            client.say("MULTI");
                            client.say(&random_command(&mut random));
                        }
                        client.say(&line);
                        if is_pair {
                            client.say("EXEC");
                        }
                    }
                })
            })
            .collect();
        let checker = scope.spawn(|| {
            let mut count = 0;
            while !is_done.load(Ordering::Acquire) {
                let shown = Shown::of(&store.snapshot().expect("it is taken"));
                assert_eq!(shown.violation(), None);
                count += 1;
            }
            count
        });
        clients.into_iter().for_each(|client| client.join().expect("it is answered"));
        is_done.store(true, Ordering::Release);
        snapshot_count = checker.join().expect("no snapshot objects");
    });
    assert!(snapshot_count > 10, "{snapshot_count}");
    // A lost element is noticed.
    let mut client = server.client();
    client.converse([("FLUSHALL", ok()), ("HSET h a 1", int(1))]);
    let tree = store.existing_tree(TREE).expect("it is found").expect("there is the tree");
    let element = tree.ordered().expect("there is an order").prefix([2]).expect("it is read").last();
    let (element, _) = element.expect("there is one").expect("it is read");
    assert!(tree.delete(element).expect("it is deleted"));
    assert!(Shown::of(&store.snapshot().expect("it is taken")).violation().is_some());
}

/// A reader sees the string or the set, and never neither.
#[test]
fn strings_become_sets_in_one_step() {
    const ROUND_COUNT: usize = 3000;
    let server = TestServer::start();
    server.client().converse([("SADD s a", int(1)), ("SET k v", ok())]);
    let is_done = AtomicBool::new(false);
    let wrong = error("WRONGTYPE Operation against a key holding the wrong kind of value");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.client();
                while !is_done.load(Ordering::Acquire) {
                    let reply = client.say("GET k");
                    assert!(reply == bulk("v") || reply == wrong, "{reply:?}");
                }
            });
        }
        let mut client = server.client();
        for _ in 0..ROUND_COUNT {
            client.converse([("SUNIONSTORE k s", int(1)), ("SET k v", ok())]);
        }
        is_done.store(true, Ordering::Release);
    });
}
