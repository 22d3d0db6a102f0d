//! Groups of changes of collections in pipelines: the replies and the contents are those of single requests.

use crate::blocking::await_waiting;
use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

fn words(line: &str) -> Vec<u8> {
    encode(&line.split(' ').collect::<Vec<_>>())
}

/// Sends the requests as one pipeline.
fn send_all(client: &mut Client, lines: &[String]) {
    client.send(&lines.iter().flat_map(|line| words(line)).collect::<Vec<_>>());
}

/// Draws a request. Some have errors, and some end a group.
fn request(random: &mut fastrand::Rng) -> String {
    let key = ["h", "s", "l", "z", "str"][random.usize(..5)];
    let (name, number) = (random.u8(b'a'..b'f') as char, random.i32(-3..4));
    match random.u8(..24) {
        0 | 1 => format!("HSET {key} {name} {number}"),
        2 => format!("HSET {key} {name} x {number} y"),
        3 => format!("HSET {key} {name}"),
        4 => format!("HSETNX {key} {name} {number}"),
        5 => format!("HMSET {key} {name} {number}"),
        6 => format!("HINCRBY {key} {name} {number}"),
        7 => format!("HINCRBYFLOAT {key} {name} {number}.5"),
        8 | 9 => format!("HDEL {key} {name} {number}"),
        10 | 11 => format!("SADD {key} {name} {number}"),
        12 | 13 => format!("SREM {key} {name} {number}"),
        14 | 15 => format!("ZADD {key} {number} {name}"),
        16 => format!("ZADD {key} XX CH GT {number} {name}"),
        17 => format!("ZINCRBY {key} {number} {name}"),
        18 => format!("ZREM {key} {name}"),
        19 => format!("LPUSH {key} {name} {number}"),
        20 => format!("RPUSH {key} {name}"),
        21 => format!("RPUSHX {key} {name}"),
        22 => format!("LPUSHX {key} {number}"),
        _ => ["DEL", "TYPE"][random.usize(..2)].to_owned() + " " + key,
    }
}

/// Returns everything that the keys hold.
fn contents(client: &mut Client) -> Vec<Value> {
    let mut all = Vec::new();
    for key in ["h", "s", "l", "z", "str"] {
        for line in ["HGETALL {}", "HLEN {}", "SMEMBERS {}", "SCARD {}", "LLEN {}", "ZCARD {}", "TTL {}"] {
            all.push(client.say(&line.replace("{}", key)));
        }
        all.extend(["LRANGE {} 0 -1", "ZRANGE {} 0 -1 WITHSCORES"].map(|line| client.say(&line.replace("{}", key))));
    }
    all
}

#[test]
fn pipelines_have_the_replies_of_single_requests() {
    let (grouped, single) = (TestServer::start(), TestServer::start());
    let (mut grouped, mut single) = (grouped.client(), single.client());
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..200 {
        let lines: Vec<String> = (0..random.usize(1..90)).map(|_| request(&mut random)).collect();
        send_all(&mut grouped, &lines);
        for line in &lines {
            single.send(&words(line));
            assert_eq!(grouped.reply(), single.reply(), "{line} in round {round}");
        }
        assert_eq!(contents(&mut grouped), contents(&mut single), "after round {round}: {lines:?}");
    }
}

/// A client that waits is served between two pushes of a pipeline.
#[test]
fn waiting_client_gets_the_first_element() {
    let server = TestServer::start();
    let (mut client, mut waiting) = (server.client(), server.client());
    client.say("RPUSH other x");
    waiting.send(&words("BLPOP l 0"));
    await_waiting(&mut client, 1);
    send_all(&mut client, &["LPUSH l a", "LPUSH l b", "LPUSH l c"].map(str::to_owned));
    assert_eq!(waiting.reply(), array([bulk("l"), bulk("a")]));
    assert_eq!([client.reply(), client.reply(), client.reply()], [int(1), int(1), int(2)]);
    assert_eq!(client.say("LRANGE l 0 -1"), array([bulk("c"), bulk("b")]));
}

#[test]
fn groups_are_seen_by_watchers_and_subscribers() {
    let server = TestServer::start();
    let (mut client, mut watching, mut subscribed) = (server.client(), server.client(), server.client());
    client.say("CONFIG SET notify-keyspace-events Khsg");
    client.say("SADD s first");
    watching.say("WATCH h");
    watching.say("MULTI");
    watching.say("GET none");
    subscribed.say("SUBSCRIBE __keyspace@0__:h");
    send_all(&mut client, &["HSET h a 1", "HSET s a 1", "HSET h b 2", "HDEL h a b"].map(str::to_owned));
    let wrong = error("WRONGTYPE Operation against a key holding the wrong kind of value");
    assert_eq!([client.reply(), client.reply(), client.reply(), client.reply()], [int(1), wrong, int(1), int(2)]);
    assert_eq!(watching.say("EXEC"), Value::Null);
    for event in ["hset", "hset", "hdel", "del"] {
        assert_eq!(subscribed.reply(), array([bulk("message"), bulk("__keyspace@0__:h"), bulk(event)]));
    }
    assert_eq!(client.say("CONFIG SET notify-keyspace-events ''"), ok());
}
