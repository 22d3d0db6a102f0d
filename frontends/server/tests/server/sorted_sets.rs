//! Sorted sets.

use std::collections::BTreeMap;

use crate::common::{TestServer, Value, array, bulk, error, int, ok};
use crate::sorted_set_orders::check;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn bulks<const N: usize>(texts: [&str; N]) -> Value {
    array(texts.map(bulk))
}

#[test]
fn members_are_added_scored_and_removed() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("ZSCORE z a", Value::Null),
        ("ZCARD z", int(0)),
        ("ZADD z 1 a 2 b 1 a", int(2)),
        ("ZADD z 3 a 4 c", int(1)),
        ("ZADD z CH 5 a 4 c 6 d", int(2)),
        ("ZADD z NX 9 a 7 e", int(1)),
        ("ZADD z XX CH 8 e 9 none", int(1)),
        ("ZADD z GT CH 7 e 9 d", int(1)),
        ("ZADD z LT CH 7 e 10 d", int(1)),
        ("ZADD z INCR 2.5 a", bulk("7.5")),
        ("ZADD z NX INCR 2.5 a", Value::Null),
        ("ZADD z XX INCR 1 none", Value::Null),
        ("ZADD none XX 1 a", int(0)),
        ("EXISTS none", int(0)),
        ("ZINCRBY z -1 new", bulk("-1")),
        ("ZMSCORE z a none b", array([bulk("7.5"), Value::Null, bulk("2")])),
        ("ZCARD z", int(6)),
        ("TYPE z", Value::Simple("zset".into())),
        ("OBJECT ENCODING z", bulk("listpack")),
        ("ZRANGE z 0 -1", bulks(["new", "b", "c", "e", "a", "d"])),
        ("ZREM z new none b b", int(2)),
        ("ZREM z c e a d", int(4)),
        ("EXISTS z", int(0)),
        ("ZREM z a", int(0)),
    ]);
    check(&server);
}

#[test]
fn scores_are_shown_as_in_redis() {
    let server = TestServer::start();
    let mut client = server.client();
    let scores = [
        ("0.1", "0.10000000000000001"),
        ("1e3", "1000"),
        ("-3.0", "-3"),
        ("1e17", "1e+17"),
        ("12345678901234567", "12345678901234568"),
        ("0.00001", "1.0000000000000001e-05"),
        ("+inf", "inf"),
        ("-Infinity", "-inf"),
        ("-0", "0"),
    ];
    for (given, wanted) in scores {
        client.say(&format!("ZADD z {given} m"));
        assert_eq!(client.say("ZSCORE z m"), bulk(wanted), "{given}");
        assert_eq!(client.say("ZRANGE z 0 0 WITHSCORES"), bulks(["m", wanted]), "{given}");
        assert_eq!(client.say("ZSCAN z 0"), array([bulk("0"), bulks(["m", wanted])]), "{given}");
    }
    for given in ["nan", "x", "1e400", "1x"] {
        assert_eq!(client.say(&format!("ZADD z {given} m")), error("ERR value is not a valid float"), "{given}");
    }
    client.converse([
        ("ZADD i inf m", int(1)),
        ("ZINCRBY i -inf m", error("ERR resulting score is not a number (NaN)")),
        ("ZSCORE i m", bulk("inf")),
    ]);
    check(&server);
}

#[test]
fn wrong_requests_are_refused() {
    let server = TestServer::start();
    let mut client = server.client();
    let no_range = || error("ERR min or max is not a float");
    let no_text = || error("ERR min or max not valid string range item");
    let syntax = || error("ERR syntax error");
    client.converse([
        ("SET s 1", ok()),
        ("ZADD s 1 a", error(WRONG_TYPE)),
        ("ZRANGE s 0 -1", error(WRONG_TYPE)),
        ("ZUNION 2 z s", error(WRONG_TYPE)),
        ("ZADD z 1 a", int(1)),
        ("GET z", error(WRONG_TYPE)),
        ("HGET z a", error(WRONG_TYPE)),
        ("ZADD z 1 a 2", syntax()),
        ("ZADD z NX XX 1 a", error("ERR XX and NX options at the same time are not compatible")),
        ("ZADD z GT NX 1 a", error("ERR GT, LT, and/or NX options at the same time are not compatible")),
        ("ZADD z GT LT 1 a", error("ERR GT, LT, and/or NX options at the same time are not compatible")),
        ("ZADD z INCR 1 a 2 b", error("ERR INCR option supports a single increment-element pair")),
        ("ZRANGE z a 1", error("ERR value is not an integer or out of range")),
        ("ZRANGEBYSCORE z a 1", no_range()),
        ("ZCOUNT z 1 nan", no_range()),
        ("ZRANGEBYLEX z a [b", no_text()),
        ("ZRANGE z - x BYLEX", no_text()),
        (
            "ZRANGE z 0 1 LIMIT 0 1",
            error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"),
        ),
        (
            "ZRANGE z - + BYLEX WITHSCORES",
            error("ERR syntax error, WITHSCORES not supported in combination with BYLEX"),
        ),
        ("ZRANGEBYSCORE z 0 1 REV", syntax()),
        ("ZREVRANGE z 0 1 BYSCORE", syntax()),
        ("ZRANGESTORE d z 0 1 WITHSCORES", syntax()),
        ("ZPOPMIN z -1", error("ERR value is out of range, must be positive")),
        ("ZPOPMIN z 1 2", syntax()),
        ("ZUNION 0 z", error("ERR at least 1 input key is needed for 'zunion' command")),
        ("ZUNIONSTORE d 3 z", syntax()),
        ("ZUNION 1 z WEIGHTS x", error("ERR weight value is not a float")),
        ("ZDIFF 1 z WEIGHTS 1", syntax()),
        ("ZINTERCARD 1 z LIMIT -1", error("ERR LIMIT can't be negative")),
        ("ZMPOP 0 z MIN", error("ERR numkeys should be greater than 0")),
        ("ZMPOP 1 z MIN COUNT 0", error("ERR count should be greater than 0")),
        ("ZMPOP 2 z0 k0 MAX COUNT abc 12", error("ERR count should be greater than 0")),
        ("ZMPOP 1 z MIN COUNT 1 COUNT 1", syntax()),
        ("ZMPOP 2 z MIN", syntax()),
        ("ZRANGE z 0 -1", bulks(["a"])),
    ]);
}

#[test]
fn ranges_are_read_from_both_ends() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("ZADD z 1 a 2 b 2 c 3 d -1.5 e", int(5)),
        ("ZRANGE z 0 1 WITHSCORES", bulks(["e", "-1.5", "a", "1"])),
        ("ZRANGE z -2 -1", bulks(["c", "d"])),
        ("ZRANGE z 3 100", bulks(["c", "d"])),
        ("ZRANGE z 0 1 REV", bulks(["d", "c"])),
        ("ZREVRANGE z -2 -1 WITHSCORES", bulks(["a", "1", "e", "-1.5"])),
        ("ZRANGE z 5 6", array([])),
        ("ZRANGE z 3 1", array([])),
        ("ZRANGEBYSCORE z (1 2", bulks(["b", "c"])),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 2", bulks(["a", "b"])),
        ("ZRANGEBYSCORE z -inf +inf LIMIT -1 2", array([])),
        ("ZRANGEBYSCORE z 2 (2", array([])),
        ("ZREVRANGEBYSCORE z 2 -inf WITHSCORES LIMIT 1 -1", bulks(["b", "2", "a", "1", "e", "-1.5"])),
        ("ZRANGE z 3 1 BYSCORE REV LIMIT 0 2", bulks(["d", "c"])),
        ("ZCOUNT z (1 (3", int(2)),
        ("ZCOUNT z 5 1", int(0)),
        ("ZRANK z d", int(4)),
        ("ZRANK z none", Value::Null),
        ("ZREVRANK z d", int(0)),
        ("ZREVRANK z e", int(4)),
        ("ZADD l 0 a 0 ab 0 b 0 c", int(4)),
        ("ZRANGEBYLEX l [a (b", bulks(["a", "ab"])),
        ("ZRANGEBYLEX l - + LIMIT 1 2", bulks(["ab", "b"])),
        ("ZRANGEBYLEX l + -", array([])),
        ("ZREVRANGEBYLEX l + (ab", bulks(["c", "b"])),
        ("ZRANGE l [b - BYLEX REV", bulks(["b", "ab", "a"])),
        ("ZLEXCOUNT l (a [b", int(2)),
        ("ZREMRANGEBYLEX l [ab (c", int(2)),
        ("ZREMRANGEBYRANK z 0 1", int(2)),
        ("ZREMRANGEBYSCORE z (2 inf", int(1)),
        ("ZRANGE z 0 -1", bulks(["b", "c"])),
        ("ZREMRANGEBYRANK z 0 -1", int(2)),
        ("EXISTS z", int(0)),
        ("ZRANGE l 0 -1", bulks(["a", "c"])),
    ]);
    client.say("HELLO 3");
    let double = |score: &str| Value::Other(format!(",{score}"));
    let pair = |member: &str, score: &str| array([bulk(member), double(score)]);
    client.converse([
        ("ZRANGE l 0 -1 WITHSCORES", array([pair("a", "0"), pair("c", "0")])),
        ("ZPOPMIN l", array([bulk("a"), double("0")])),
        ("ZPOPMAX l 5", array([pair("c", "0")])),
        ("ZADD l 0.5 a", int(1)),
        ("ZSCORE l a", double("0.5")),
        ("ZUNION 1 l WITHSCORES", array([pair("a", "0.5")])),
    ]);
    check(&server);
}

#[test]
fn sets_are_combined_and_stored() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("ZADD a 1 x 2 y 3 z", int(3)),
        ("ZADD b 10 y 20 z 30 w", int(3)),
        ("ZUNION 2 a b WITHSCORES", bulks(["x", "1", "y", "12", "z", "23", "w", "30"])),
        ("ZINTER 2 a b WEIGHTS 2 1 AGGREGATE MAX WITHSCORES", bulks(["y", "10", "z", "20"])),
        ("ZDIFF 2 a b WITHSCORES", bulks(["x", "1"])),
        ("ZINTERCARD 2 a b", int(2)),
        ("ZINTERCARD 2 a b LIMIT 1", int(1)),
        ("SET d text", ok()),
        ("ZUNIONSTORE d 2 a b AGGREGATE MIN", int(4)),
        ("ZRANGE d 0 -1 WITHSCORES", bulks(["x", "1", "y", "2", "z", "3", "w", "30"])),
        ("ZINTERSTORE a 2 a b", int(2)),
        ("ZRANGE a 0 -1 WITHSCORES", bulks(["y", "12", "z", "23"])),
        ("ZDIFFSTORE a 2 a b", int(0)),
        ("EXISTS a", int(0)),
        ("ZRANGESTORE d d 0 1", int(2)),
        ("ZRANGE d 0 -1", bulks(["x", "y"])),
        ("EXPIRE d 100", int(1)),
        ("ZRANGESTORE d b 20 inf BYSCORE LIMIT 0 1", int(1)),
        ("TTL d", int(-1)),
        ("ZRANGESTORE d none 0 1", int(0)),
        ("EXISTS d", int(0)),
        ("ZADD i inf m", int(1)),
        ("ZADD j -inf m", int(1)),
        ("ZUNION 2 i j WITHSCORES", bulks(["m", "0"])),
        ("ZMPOP 3 none b i MAX COUNT 2", array([bulk("b"), array([bulks(["w", "30"]), bulks(["z", "20"])])])),
        ("ZMPOP 1 none MIN", Value::Null),
        ("ZPOPMIN b 0", array([])),
        ("ZPOPMIN b 10", bulks(["y", "10"])),
        ("EXISTS b", int(0)),
        ("ZRANDMEMBER i", bulk("m")),
        ("ZRANDMEMBER i -2 WITHSCORES", bulks(["m", "inf", "m", "inf"])),
        ("ZRANDMEMBER none 2", array([])),
        ("ZSCAN none 0 COUNT", array([bulk("0"), array([])])),
        ("ZSCAN i 0 COUNT", error("ERR syntax error")),
    ]);
    check(&server);
}

#[test]
fn scan_shows_each_member() {
    let server = TestServer::start();
    let mut client = server.client();
    for number in 0..500 {
        client.say(&format!("ZADD z {number} m{number}"));
    }
    let (mut cursor, mut seen) = ("0".to_owned(), BTreeMap::new());
    loop {
        let Value::Array(reply) = client.say(&format!("ZSCAN z {cursor} COUNT 20")) else { panic!("no array") };
        let [Value::Bulk(next), Value::Array(values)] = &reply[..] else { panic!("no cursor") };
        for pair in values.chunks(2) {
            let [Value::Bulk(member), Value::Bulk(score)] = pair else { panic!("no pair") };
            assert_eq!(member[1..], score[..]);
            seen.insert(member.clone(), score.clone());
        }
        cursor = String::from_utf8_lossy(next).into_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 500);
    client.converse([("OBJECT ENCODING z", bulk("skiplist")), ("ZRANK z m321", int(321)), ("COPY z y", int(1))]);
    client.converse([("ZRANGE y 250 251", bulks(["m250", "m251"])), ("DEL z", int(1)), ("ZCARD y", int(500))]);
    check(&server);
}

#[test]
fn transactions_scripts_and_watches_see_sorted_sets() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    let queued = || Value::Simple("QUEUED".into());
    client.converse([
        ("ZADD z 1 a 5 e", int(2)),
        ("MULTI", ok()),
        ("ZADD z 2 b 3 a", queued()),
        ("ZRANGE z 0 -1 WITHSCORES", queued()),
        ("ZRANK z e", queued()),
        ("ZCOUNT z 3 5", queued()),
        ("ZPOPMIN z", queued()),
        ("ZREMRANGEBYSCORE z 5 5", queued()),
        ("ZRANGE z 0 -1", queued()),
        (
            "EXEC",
            array([
                int(1),
                bulks(["b", "2", "a", "3", "e", "5"]),
                int(2),
                int(2),
                bulks(["b", "2"]),
                int(1),
                bulks(["a"]),
            ]),
        ),
        ("WATCH z", ok()),
    ]);
    assert_eq!(other.say("ZADD z 4 a"), int(0));
    client.converse([("MULTI", ok()), ("ZADD z 9 a", queued()), ("EXEC", Value::Null), ("WATCH z", ok())]);
    assert_eq!(other.say("ZADD z 4 a"), int(0));
    client.converse([("MULTI", ok()), ("ZADD z 9 a", queued()), ("EXEC", array([int(0)]))]);
    let script = "redis.call('ZADD', KEYS[1], 1, 'x', 2, 'y'); redis.call('ZREM', KEYS[1], 'a'); \
                  return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')";
    assert_eq!(client.call(&["EVAL", script, "1", "z"]), bulks(["x", "1", "y", "2"]));
    check(&server);
}

#[test]
fn changes_are_reported() {
    let server = TestServer::start();
    let (mut client, mut listener) = (server.client(), server.client());
    client.say("CONFIG SET notify-keyspace-events KEA");
    listener.say("PSUBSCRIBE __keyevent@0__:*");
    for line in [
        "ZADD z 1 a 2 b 3 c 4 d",
        "ZADD z 1 a",
        "ZINCRBY z 1 a",
        "ZREM z none",
        "ZREM z a",
        "ZPOPMIN z",
        "ZREMRANGEBYSCORE z 9 9",
        "ZUNIONSTORE u 1 z",
        "ZRANGESTORE u z 0 0",
        "ZDIFFSTORE u 2 z z",
        "ZREMRANGEBYRANK z 0 -1",
        "ZDIFFSTORE u 2 z z",
    ] {
        client.say(line);
    }
    let wanted = ["zadd", "zincr", "zrem", "zpopmin", "zunionstore", "zrangestore", "del", "zremrangebyrank", "del"];
    for event in wanted {
        let Value::Array(message) = listener.reply() else { panic!("no message") };
        assert_eq!(message[2], bulk(format!("__keyevent@0__:{event}")));
    }
    client.say("PUBLISH __keyevent@0__:end x");
    let Value::Array(message) = listener.reply() else { panic!("no message") };
    assert_eq!(message[2], bulk("__keyevent@0__:end"));
}

#[test]
fn engines_without_order_refuse_sorted_sets() {
    let options = hikv::Options::new().engine(hikv::EngineKind::RewoHash);
    let server = TestServer::of(&options, server::Config { threads: 1, ..server::Config::default() });
    for command in ["ZADD z 1 a", "ZSCORE z a", "ZUNIONSTORE d 1 z", "ZRANGE z 0 -1"] {
        assert_eq!(server.client().say(command), error("ERR engine rewo-hash has no order"), "{command}");
    }
}
