//! Commands that wait for a member of a sorted set.

use std::collections::BTreeSet;
use std::thread;

use crate::blocking::{await_waiting, queued, text_of, waiting};
use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};
use crate::sorted_set_orders::check;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The reply of BZPOPMIN and BZPOPMAX.
fn popped(key: &str, member: &str, score: &str) -> Value {
    array([bulk(key), bulk(member), bulk(score)])
}

/// The reply of BZMPOP.
fn popped_some<const N: usize>(key: &str, members: [(&str, &str); N]) -> Value {
    array([bulk(key), array(members.map(|(member, score)| array([bulk(member), bulk(score)])))])
}

#[test]
fn commands_with_members_do_not_wait() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", int(6)),
        ("BZPOPMIN none z 0", popped("z", "a", "1")),
        ("BZPOPMAX z 0", popped("z", "f", "6")),
        ("BZMPOP 0 2 none z MIN", popped_some("z", [("b", "2")])),
        ("BZMPOP 0 1 z MAX COUNT 2", popped_some("z", [("e", "5"), ("d", "4")])),
        ("BZPOPMIN none 0.01", Value::Null),
        ("BZPOPMAX none none2 0.001", Value::Null),
        ("BZMPOP 0.01 1 none MAX", Value::Null),
        ("BZPOPMIN z x", error("ERR timeout is not a float or out of range")),
        ("BZPOPMAX z -1", error("ERR timeout is negative")),
        ("BZMPOP -1 1 z MIN", error("ERR timeout is negative")),
        ("BZMPOP 0 0 z MIN", error("ERR numkeys should be greater than 0")),
        ("BZMPOP 0 1 z LEFT", error("ERR syntax error")),
        ("BZMPOP 0 1 z MIN COUNT 0", error("ERR count should be greater than 0")),
        ("BZMPOP 0 2 z MIN", error("ERR syntax error")),
        ("RPUSH l x", int(1)),
        ("BZPOPMIN none l z 0", error(WRONG_TYPE)),
        ("BZMPOP 0 2 none l MIN", error(WRONG_TYPE)),
        ("BZPOPMIN z l 0", popped("z", "c", "3")),
        ("EXISTS z", int(0)),
        ("ZADD z 1 a", int(1)),
        ("MULTI", ok()),
        ("BZPOPMIN none 0", queued()),
        ("BZMPOP 0 1 none MIN", queued()),
        ("BZPOPMAX z 0", queued()),
        ("EXEC", array([Value::Null, Value::Null, popped("z", "a", "1")])),
    ]);
    let script = "return {redis.call('BZMPOP', 0, 1, 'none', 'MIN'), 7}";
    assert_eq!(client.call(&["EVAL", script, "0"]), array([Value::Null, int(7)]));
    let script = "return redis.call('BZPOPMIN', 'z', 0)";
    assert!(
        matches!(client.call(&["EVAL", script, "0"]), Value::Error(text) if text.contains("not allowed from script"))
    );
}

#[test]
fn scores_are_doubles_in_version_3() {
    let server = TestServer::start();
    let mut client = server.client();
    client.say("ZADD z 1.5 a 2 b");
    client.say("HELLO 3");
    let double = |text: &str| Value::Other(format!(",{text}"));
    assert_eq!(client.say("BZPOPMIN z 0"), array([bulk("z"), bulk("a"), double("1.5")]));
    let members = array([array([bulk("b"), double("2")])]);
    assert_eq!(client.say("BZMPOP 0 1 z MIN"), array([bulk("z"), members]));
}

#[test]
fn clients_are_served_in_arrival_order() {
    let server = TestServer::start();
    let mut admin = server.client();
    let lines = ["BZPOPMIN z 0", "BZPOPMAX other z 0", "BLPOP z 0", "BZMPOP 0 1 z MIN COUNT 2", "BZPOPMIN z 0"];
    let mut clients: Vec<Client> =
        (1..).zip(lines).map(|(count, line)| waiting(&server, &mut admin, line, count)).collect();
    admin.converse([("ZADD z 5 e 4 d 3 c 2 b 1 a", int(5)), ("EXISTS z", int(0))]);
    let wanted = [
        popped("z", "a", "1"),
        popped("z", "e", "5"),
        popped_some("z", [("b", "2"), ("c", "3")]),
        popped("z", "d", "4"),
    ];
    for (number, wanted) in [0, 1, 3, 4].into_iter().zip(wanted) {
        assert_eq!(clients[number].reply(), wanted);
        assert_eq!(clients[number].say("PING"), Value::Simple("PONG".into()));
    }
    // That of the list goes on waiting.
    await_waiting(&mut admin, 1);
    admin.say("RPUSH z x");
    assert_eq!(clients[2].reply(), array([bulk("z"), bulk("x")]));
    check(&server);
}

#[test]
fn every_zset_creation_serves_waiting_clients() {
    let server = TestServer::start();
    let (mut admin, mut client) = (server.client(), server.client());
    let script = "redis.call('ZADD', 'z', 7, 'gone'); redis.call('DEL', 'z'); return redis.call('ZADD', 'z', 1, 'x')";
    let makers: [&[&[&str]]; 9] = [
        &[&["ZADD", "z", "1", "x"]],
        &[&["ZINCRBY", "z", "1", "x"]],
        &[&["ZADD", "k", "1", "x"], &["ZUNIONSTORE", "z", "1", "k"], &["DEL", "k"]],
        &[&["ZADD", "k", "1", "x"], &["ZRANGESTORE", "z", "k", "0", "-1"], &["DEL", "k"]],
        &[&["ZADD", "k", "1", "x"], &["RENAME", "k", "z"]],
        &[&["ZADD", "k", "1", "x"], &["COPY", "k", "z"], &["DEL", "k"]],
        &[&["MULTI"], &["ZADD", "z", "7", "gone"], &["ZPOPMAX", "z"], &["ZADD", "z", "1", "x"], &["EXEC"]],
        &[&["EVAL", script, "0"]],
        &[&["SELECT", "1"], &["ZADD", "z", "1", "x"], &["SWAPDB", "0", "1"], &["SELECT", "0"]],
    ];
    for maker in makers {
        client.send(b"BZPOPMIN z 0\r\n");
        await_waiting(&mut admin, 1);
        maker.iter().for_each(|words| _ = admin.call(words));
        assert_eq!(client.reply(), popped("z", "x", "1"), "{maker:?}");
        admin.converse([("DBSIZE", int(0))]);
    }
    // Nothing is left of these.
    client.send(b"BZMPOP 0 2 y z MIN\r\n");
    await_waiting(&mut admin, 1);
    admin.converse([
        ("MULTI", ok()),
        ("ZADD z 1 x", queued()),
        ("DEL z", queued()),
        ("EXEC", array([int(1), int(1)])),
        ("SET z x", ok()),
        ("DEL z", int(1)),
        ("SADD y a", int(1)),
        ("DEL y", int(1)),
    ]);
    await_waiting(&mut admin, 1);
    admin.say("ZADD z 2 last");
    assert_eq!(client.reply(), popped_some("z", [("last", "2")]));
}

#[test]
fn waits_end_by_command_and_time() {
    let server = TestServer::start();
    let mut admin = server.client();
    let mut client = waiting(&server, &mut admin, "BZPOPMIN z 1000", 1);
    let list = text_of(admin.say("CLIENT LIST"));
    let line = list.lines().find(|line| line.contains(" flags=b ")).expect("a waiting client");
    assert!(line.contains(" cmd=bzpopmin "), "{line}");
    let id = line.split([' ', '=']).nth(1).expect("an id").to_owned();
    assert_eq!(admin.say(&format!("CLIENT UNBLOCK {id}")), int(1));
    assert_eq!(client.reply(), Value::Null);
    client.send(b"BZMPOP 0 1 z MAX\r\nPING\r\n");
    await_waiting(&mut admin, 1);
    assert_eq!(admin.say(&format!("CLIENT UNBLOCK {id} ERROR")), int(1));
    assert_eq!(client.reply(), error("UNBLOCKED client unblocked via CLIENT UNBLOCK"));
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
    // A client that leaves takes no member with it.
    drop(waiting(&server, &mut admin, "BZPOPMAX z 0", 1));
    await_waiting(&mut admin, 0);
    admin.converse([("ZADD z 1 a", int(1)), ("ZCARD z", int(1))]);
}

#[test]
fn served_pops_send_notifications() {
    let server = TestServer::start();
    let (mut admin, mut listener) = (server.client(), server.client());
    admin.say("CONFIG SET notify-keyspace-events KEA");
    listener.converse([("PSUBSCRIBE __keyspace*__:z", array([bulk("psubscribe"), bulk("__keyspace*__:z"), int(1)]))]);
    let mut client = waiting(&server, &mut admin, "BZPOPMAX z 0", 1);
    admin.say("ZADD z 1 a");
    assert_eq!(client.reply(), popped("z", "a", "1"));
    for event in ["zadd", "zpopmax", "del"] {
        let wanted = array([bulk("pmessage"), bulk("__keyspace*__:z"), bulk("__keyspace@0__:z"), bulk(event)]);
        assert_eq!(listener.reply(), wanted);
    }
}

/// Producers add on two loops, and consumers wait on both: each member comes out once, and no consumer stays asleep.
#[test]
fn each_member_is_served_once() {
    const COUNT: usize = 300;
    let server = TestServer::start();
    let consumers: Vec<_> = (0..6)
        .map(|number| {
            let mut client = server.client();
            thread::spawn(move || {
                let mut seen = Vec::new();
                loop {
                    let line = match number % 3 {
                        0 => "BZPOPMIN q r 0",
                        1 => "BZPOPMAX r q 0",
                        _ => "BZMPOP 0 2 q r MIN COUNT 3",
                    };
                    let Value::Array(reply) = client.say(line) else { panic!("no array") };
                    let members = match &reply[1] {
                        Value::Array(pairs) => pairs
                            .iter()
                            .map(|pair| match pair {
                                Value::Array(pair) => pair[0].clone(),
                                other => panic!("no pair: {other:?}"),
                            })
                            .collect(),
                        member => vec![member.clone()],
                    };
                    for member in members {
                        if member == bulk("end") {
                            return seen;
                        }
                        seen.push(format!("{member:?}"));
                    }
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..4)
        .map(|number| {
            let mut client = server.client();
            thread::spawn(move || {
                for member in 0..COUNT {
                    let key = if member % 2 == 0 { "q" } else { "r" };
                    client.say(&format!("ZADD {key} {} {number}.{member}", member % 7));
                }
            })
        })
        .collect();
    producers.into_iter().for_each(|producer| producer.join().expect("it produces"));
    let mut admin = server.client();
    while !consumers.iter().all(thread::JoinHandle::is_finished) {
        // One at a time, so that no consumer takes several.
        if admin.say("EXISTS q r") == int(0) {
            admin.say("ZADD q 0 end");
        }
    }
    let seen: Vec<String> = consumers.into_iter().flat_map(|consumer| consumer.join().expect("it consumes")).collect();
    assert_eq!(seen.len(), 4 * COUNT);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 4 * COUNT);
}
