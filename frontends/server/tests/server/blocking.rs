//! Commands that wait for an element of a list.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

pub(crate) fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

fn pair(key: &str, value: &str) -> Value {
    array([bulk(key), bulk(value)])
}

pub(crate) fn text_of(reply: Value) -> String {
    let Value::Bulk(text) = reply else { panic!("no text: {reply:?}") };
    String::from_utf8_lossy(&text).into_owned()
}

/// Waits until as many clients wait.
pub(crate) fn await_waiting(admin: &mut Client, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let wanted = format!("blocked_clients:{count}\r\n");
    while !text_of(admin.say("INFO clients")).contains(&wanted) {
        assert!(Instant::now() < deadline, "{count} clients should wait");
    }
}

/// Returns a client that waits for the reply to a command, as the last of `count`.
pub(crate) fn waiting(server: &TestServer, admin: &mut Client, line: &str, count: usize) -> Client {
    let mut client = server.client();
    client.send(format!("{line}\r\n").as_bytes());
    await_waiting(admin, count);
    client
}

#[test]
fn commands_with_elements_do_not_wait() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("RPUSH l a b c d e f g", int(7)),
        ("BLPOP none l 0", pair("l", "a")),
        ("BRPOP l 0", pair("l", "g")),
        ("BLMOVE l m LEFT RIGHT 0", bulk("b")),
        ("BRPOPLPUSH l m 0", bulk("f")),
        ("BLMPOP 0 2 none l LEFT COUNT 2", array([bulk("l"), array([bulk("c"), bulk("d")])])),
        ("LRANGE m 0 -1", array([bulk("f"), bulk("b")])),
        ("BLPOP none 0.01", Value::Null),
        ("BRPOP none none2 0.001", Value::Null),
        ("BLMOVE none m LEFT LEFT 0.01", Value::Null),
        ("BLMPOP 0.01 1 none RIGHT", Value::Null),
        ("BLPOP l x", error("ERR timeout is not a float or out of range")),
        ("BLPOP l -1", error("ERR timeout is negative")),
        ("BLPOP l 9223372036854775807", error("ERR timeout is negative")),
        ("SET s x", ok()),
        ("BLPOP none s 0", error("WRONGTYPE Operation against a key holding the wrong kind of value")),
        ("BLMOVE l s LEFT LEFT 0", error("WRONGTYPE Operation against a key holding the wrong kind of value")),
        ("BLMPOP 0 0 l LEFT", error("ERR numkeys should be greater than 0")),
        ("MULTI", ok()),
        ("BLPOP none 0", queued()),
        ("BLMOVE none m LEFT LEFT 0", queued()),
        ("BLPOP l 0", queued()),
        ("EXEC", array([Value::Null, Value::Null, pair("l", "e")])),
    ]);
    let script = "return {redis.call('BLMPOP', 0, 1, 'none', 'LEFT'), 7}";
    assert_eq!(client.call(&["EVAL", script, "0"]), array([Value::Null, int(7)]));
}

#[test]
fn clients_are_served_in_arrival_order() {
    let server = TestServer::start();
    let mut admin = server.client();
    let lines = ["BLPOP l 0", "BRPOP other l 0", "BLMPOP 0 1 l LEFT COUNT 2", "BLMOVE l m LEFT RIGHT 0"];
    let mut clients: Vec<Client> =
        (1..).zip(lines).map(|(count, line)| waiting(&server, &mut admin, line, count)).collect();
    admin.converse([
        ("RPUSH l 1 2 3 4 5 6", int(6)),
        ("LRANGE l 0 -1", array([bulk("5")])),
        ("LRANGE m 0 -1", array([bulk("4")])),
    ]);
    let wanted = [pair("l", "1"), pair("l", "6"), array([bulk("l"), array([bulk("2"), bulk("3")])]), bulk("4")];
    for (client, wanted) in clients.iter_mut().zip(wanted) {
        assert_eq!(client.reply(), wanted);
        assert_eq!(client.say("PING"), Value::Simple("PONG".into()));
    }
    await_waiting(&mut admin, 0);
}

#[test]
fn every_list_creation_serves_waiting_clients() {
    let server = TestServer::start();
    let (mut admin, mut client) = (server.client(), server.client());
    let script = "redis.call('RPUSH', 'l', 'gone'); redis.call('DEL', 'l'); return redis.call('RPUSH', 'l', 'x')";
    let makers: [&[&[&str]]; 8] = [
        &[&["LPUSH", "l", "x"]],
        &[&["RPUSH", "k", "x"], &["RENAME", "k", "l"]],
        &[&["RPUSH", "k", "x"], &["COPY", "k", "l"], &["DEL", "k"]],
        &[&["RPUSH", "k", "x"], &["LMOVE", "k", "l", "LEFT", "LEFT"]],
        &[&["MULTI"], &["RPUSH", "l", "gone"], &["LPOP", "l"], &["RPUSH", "l", "x"], &["EXEC"]],
        &[&["EVAL", script, "0"]],
        &[&["SELECT", "1"], &["RPUSH", "l", "x"], &["MOVE", "l", "0"], &["SELECT", "0"]],
        &[&["SELECT", "1"], &["RPUSH", "l", "x"], &["SWAPDB", "0", "1"], &["SELECT", "0"]],
    ];
    for maker in makers {
        client.send(b"BLPOP l 0\r\n");
        await_waiting(&mut admin, 1);
        maker.iter().for_each(|words| _ = admin.call(words));
        assert_eq!(client.reply(), pair("l", "x"), "{maker:?}");
        admin.converse([("DBSIZE", int(0))]);
    }
    // Nothing is left of these.
    client.send(b"BLPOP l 0\r\n");
    await_waiting(&mut admin, 1);
    admin.converse([
        ("MULTI", ok()),
        ("RPUSH l x", queued()),
        ("DEL l", queued()),
        ("EXEC", array([int(1), int(1)])),
        ("SET l x", ok()),
        ("DEL l", int(1)),
        ("HSET l a b", int(1)),
        ("DEL l", int(1)),
    ]);
    await_waiting(&mut admin, 1);
    admin.say("RPUSH l last");
    assert_eq!(client.reply(), pair("l", "last"));
}

#[test]
fn moves_serve_each_other() {
    let server = TestServer::start();
    let mut admin = server.client();
    let mut first = waiting(&server, &mut admin, "BLMOVE a b LEFT RIGHT 0", 1);
    let mut second = waiting(&server, &mut admin, "BLMOVE b c LEFT RIGHT 0", 2);
    let mut wrong = waiting(&server, &mut admin, "BRPOPLPUSH d s 0", 3);
    admin.converse([
        ("RPUSH a x", int(1)),
        ("EXISTS a b", int(0)),
        ("LRANGE c 0 -1", array([bulk("x")])),
        ("SET s text", ok()),
        ("RPUSH d y", int(1)),
        ("LRANGE d 0 -1", array([bulk("y")])),
    ]);
    assert_eq!((first.reply(), second.reply()), (bulk("x"), bulk("x")));
    assert_eq!(wrong.reply(), error("WRONGTYPE Operation against a key holding the wrong kind of value"));
    await_waiting(&mut admin, 0);
}

#[test]
fn waits_end_by_time_and_by_command() {
    let server = TestServer::start();
    let mut admin = server.client();
    let mut client = waiting(&server, &mut admin, "BLPOP l 1000", 1);
    let list = text_of(admin.say("CLIENT LIST"));
    assert!(list.lines().any(|line| line.contains(" flags=b ") && line.contains(" cmd=blpop ")), "{list}");
    let id_of = |list: &str| {
        let line = list.lines().find(|line| line.contains(" flags=b ")).expect("a waiting client").to_owned();
        line.split(' ').next().and_then(|id| id.strip_prefix("id=")).expect("an id").to_owned()
    };
    let id = id_of(&list);
    admin.converse([
        ("CLIENT UNBLOCK 9999", int(0)),
        (&format!("CLIENT UNBLOCK {id} what"), error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        (&format!("CLIENT UNBLOCK {id}"), int(1)),
        (&format!("CLIENT UNBLOCK {id}"), int(0)),
    ]);
    assert_eq!(client.reply(), Value::Null);
    client.send(b"BLPOP l 0\r\nPING\r\n");
    await_waiting(&mut admin, 1);
    assert_eq!(admin.say(&format!("CLIENT UNBLOCK {id} ERROR")), int(1));
    assert_eq!(client.reply(), error("UNBLOCKED client unblocked via CLIENT UNBLOCK"));
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
    // A client that wants no replies, and then one.
    client.send(b"CLIENT REPLY SKIP\r\nBLPOP l 0\r\nECHO after\r\n");
    await_waiting(&mut admin, 1);
    admin.say("RPUSH l x");
    assert_eq!(client.reply(), bulk("after"));
    let began = Instant::now();
    assert_eq!(client.say("BLPOP l 0.2"), Value::Null);
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn clients_that_leave_get_no_element() {
    let server = TestServer::start();
    let mut admin = server.client();
    let killed = waiting(&server, &mut admin, "BLPOP l 0", 1);
    let id = text_of(admin.say("CLIENT LIST"))
        .lines()
        .find_map(|line| line.contains(" flags=b ").then(|| line.split([' ', '=']).nth(1).map(str::to_owned)))
        .flatten()
        .expect("a waiting client");
    assert_eq!(admin.say(&format!("CLIENT KILL ID {id}")), int(1));
    admin.converse([("RPUSH l a", int(1)), ("LPOP l", bulk("a"))]);
    drop(killed);
    await_waiting(&mut admin, 0);
    drop(waiting(&server, &mut admin, "BLPOP l 0", 1));
    await_waiting(&mut admin, 0);
    admin.converse([("RPUSH l a", int(1)), ("LPOP l", bulk("a"))]);
    // The server does not wait for clients that wait.
    let _waiting = waiting(&server, &mut admin, "BLPOP l 0", 1);
    drop(admin);
    let began = Instant::now();
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn served_moves_touch_watched_keys() {
    let server = TestServer::start();
    let (mut admin, mut watcher) = (server.client(), server.client());
    let mut client = waiting(&server, &mut admin, "BRPOPLPUSH a b 0", 1);
    watcher.converse([("WATCH b", ok()), ("MULTI", ok()), ("GET b", queued())]);
    admin.say("LPUSH a x");
    assert_eq!(client.reply(), bulk("x"));
    assert_eq!(watcher.say("EXEC"), Value::Null);
}

/// Producers push on two loops, and consumers wait on both: each element comes out once, and no consumer stays asleep.
#[test]
fn each_element_is_served_once() {
    const COUNT: usize = 400;
    let server = TestServer::start();
    let consumers: Vec<_> = (0..6)
        .map(|number| {
            let mut client = server.client();
            thread::spawn(move || {
                let mut seen = Vec::new();
                loop {
                    let line = match number % 3 {
                        0 => "BLPOP q r 0",
                        1 => "BRPOP r q 0",
                        _ => "BLMPOP 0 2 q r LEFT COUNT 3",
                    };
                    let Value::Array(reply) = client.say(line) else { panic!("no array") };
                    let values =
                        if let Value::Array(values) = &reply[1] { values.clone() } else { vec![reply[1].clone()] };
                    for value in values {
                        if value == bulk("end") {
                            return seen;
                        }
                        seen.push(format!("{value:?}"));
                    }
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..4)
        .map(|number| {
            let mut client = server.client();
            thread::spawn(move || {
                for element in 0..COUNT {
                    let key = if element % 2 == 0 { "q" } else { "r" };
                    client.say(&format!("RPUSH {key} {number}.{element}"));
                }
            })
        })
        .collect();
    producers.into_iter().for_each(|producer| producer.join().expect("it produces"));
    let mut admin = server.client();
    while !consumers.iter().all(thread::JoinHandle::is_finished) {
        // One at a time, so that no consumer takes several.
        if admin.say("EXISTS q r") == int(0) {
            admin.say("RPUSH q end");
        }
    }
    let seen: Vec<String> = consumers.into_iter().flat_map(|consumer| consumer.join().expect("it consumes")).collect();
    assert_eq!(seen.len(), 4 * COUNT);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 4 * COUNT);
}

/// The time to register them, and to find them all ready, grows with their number and not with its square.
#[test]
fn client_waits_for_many_keys() {
    const COUNT: usize = 100_000;
    let server = TestServer::start();
    let (mut admin, mut client) = (server.client(), server.client());
    let keys = (0..COUNT).map(|number| format!("k{number}"));
    let words: Vec<String> = ["BLPOP".into()].into_iter().chain(keys).chain(["0".into()]).collect();
    for _ in 0..2 {
        client.send(&encode(&words));
        await_waiting(&mut admin, 1);
        admin.converse([("FLUSHALL", ok()), ("RPUSH k77777 x", int(1))]);
        assert_eq!(client.reply(), pair("k77777", "x"));
    }
}

/// Clients accept messages anywhere, but read the reply first, as in Redis.
#[test]
fn own_change_is_announced_after_the_reply() {
    let server = TestServer::start();
    let (mut client, mut waiter) = (server.client(), server.client());
    client.converse([("RPUSH to a", int(1))]);
    waiter.say("HELLO 3");
    waiter.converse([("CLIENT TRACKING ON", ok()), ("LRANGE to 0 -1", array([bulk("a")]))]);
    waiter.send(b"BLMOVE from to LEFT LEFT 0\r\n");
    await_waiting(&mut client, 1);
    client.converse([("RPUSH from b", int(1)), ("LRANGE to 0 -1", array([bulk("b"), bulk("a")]))]);
    assert_eq!(waiter.reply(), bulk("b"));
    assert_eq!(waiter.reply(), Value::Push(vec![bulk("invalidate"), array([bulk("to")])]));
}
