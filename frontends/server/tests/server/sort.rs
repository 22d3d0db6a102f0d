//! SORT and SORT_RO.

use crate::common::{TestServer, Value, array, bulk, error, int, ok};

/// An array of these words; `-` is null.
fn words(line: &str) -> Value {
    let value = |word: &str| if word == "-" { Value::Null } else { bulk(word) };
    Value::Array(line.split_whitespace().map(value).collect())
}

#[test]
fn elements_are_sorted_as_numbers_or_text() {
    let server = TestServer::start();
    server.client().converse([
        ("RPUSH l 10 9 2 -1.5 +3", int(5)),
        ("SORT l", words("-1.5 2 +3 9 10")),
        ("SORT l DESC", words("10 9 +3 2 -1.5")),
        ("SORT l ALPHA", words("+3 -1.5 10 2 9")),
        ("SORT l LIMIT 1 2", words("2 +3")),
        ("SORT l LIMIT -5 1 DESC", words("10")),
        ("SORT l LIMIT 4 9223372036854775807", words("10")),
        ("SORT l LIMIT 9 1", array([])),
        ("SORT l LIMIT 1 -1", words("2 +3 9 10")),
        ("SADD s b a 10 9", int(4)),
        ("SORT s ALPHA", words("10 9 a b")),
        ("SORT s BY nosort", words("10 9 a b")),
        ("SORT s", error("ERR One or more scores can't be converted into double")),
        ("ZADD z 1 b 2 a 3 c", int(3)),
        ("SORT z ALPHA DESC", words("c b a")),
        ("SORT z BY nosort", words("b a c")),
        ("SORT_RO z BY nosort DESC LIMIT 0 2", words("c a")),
        ("SORT none", array([])),
        ("RPUSH e 1e400", int(1)),
        ("SORT e", error("ERR One or more scores can't be converted into double")),
    ]);
}

#[test]
fn elements_are_sorted_by_other_keys() {
    let server = TestServer::start();
    server.client().converse([
        ("RPUSH l 1 2 3 4", int(4)),
        ("MSET w1 30 w2 20 w3 10 o1 one o3 three", ok()),
        ("HSET h1 weight 5 name a", int(2)),
        ("HSET h2 weight 4", int(1)),
        ("SORT l BY w*", words("4 3 2 1")),
        ("SORT l BY w* GET o* GET #", words("- 4 three 3 - 2 one 1")),
        ("SORT l BY h*->weight DESC LIMIT 0 2", words("1 2")),
        ("SORT l BY nosort GET h*->name", words("a - - -")),
        ("SORT l BY nosort DESC", words("4 3 2 1")),
        ("SORT l BY o* ALPHA", words("2 4 1 3")),
        ("SORT l BY o*", error("ERR One or more scores can't be converted into double")),
        ("SORT l GET w*->x GET h* GET fixed LIMIT 0 1", words("- - -")),
        ("SELECT 1", ok()),
        ("RPUSH l 1", int(1)),
        ("SORT l GET w*", words("-")),
    ]);
}

#[test]
fn result_is_stored_as_a_list() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("RPUSH l b a c", int(3)),
        ("MSET v:a 1 d string", ok()),
        ("SORT l ALPHA STORE d", int(3)),
        ("LRANGE d 0 -1", words("a b c")),
        ("SORT l ALPHA STORE x STORE l", int(3)),
        ("LRANGE l 0 -1", words("a b c")),
        ("EXISTS x", int(0)),
        ("SORT l ALPHA GET v:* STORE d", int(3)),
        ("LRANGE d 0 -1", array([bulk("1"), bulk(""), bulk("")])),
        ("SORT none STORE d", int(0)),
        ("EXISTS d", int(0)),
        ("SORT_RO l STORE d", error("ERR syntax error")),
        ("SORT l LIMIT 1", error("ERR syntax error")),
        ("SORT l LIMIT a 1", error("ERR value is not an integer or out of range")),
        ("SORT l BY", error("ERR syntax error")),
        ("SET k v", ok()),
        ("SORT k", error("WRONGTYPE Operation against a key holding the wrong kind of value")),
        ("HSET h f v", int(1)),
        ("SORT_RO h", error("WRONGTYPE Operation against a key holding the wrong kind of value")),
        ("MULTI", ok()),
        ("SORT l ALPHA DESC STORE d", Value::Simple("QUEUED".into())),
        ("LPOP d", Value::Simple("QUEUED".into())),
        ("EXEC", array([int(3), bulk("c")])),
        ("COMMAND GETKEYS SORT l BY a GET b STORE c", words("l c")),
    ]);
    let script = "redis.call('SORT', KEYS[1], 'ALPHA', 'STORE', KEYS[2]) return redis.call('LINDEX', KEYS[2], -1)";
    assert_eq!(client.call(&["EVAL", script, "2", "l", "d"]), bulk("c"));
}

/// A client that waits for the destination gets its first element.
#[test]
fn stored_list_wakes_a_client() {
    let server = TestServer::start();
    let (mut client, mut waiter) = (server.client(), server.client());
    client.converse([("RPUSH l 3 1 2", int(3))]);
    waiter.send(b"BLPOP d 0\r\n");
    while !client.is_listed("flags=b") {}
    client.converse([("SORT l STORE d", int(3)), ("LRANGE d 0 -1", words("2 3"))]);
    assert_eq!(waiter.reply(), words("d 1"));
}

#[test]
fn patterns_need_the_right_to_all_keys() {
    let server = TestServer::start();
    let mut client = server.client();
    let denied =
        |option: &str| error(&format!("ERR {option} option of SORT denied due to insufficient ACL permissions"));
    client.converse([
        ("RPUSH a:l 2 1", int(2)),
        ("ACL SETUSER ada on nopass +@all ~a:*", ok()),
        ("ACL SETUSER bob on nopass +@all %R~* %W~a:*", ok()),
        ("AUTH ada x", ok()),
        ("SORT a:l BY nosort", words("2 1")),
        ("SORT a:l BY w*", denied("BY")),
        ("SORT a:l GET w*", denied("GET")),
        ("SORT a:l STORE b", error("NOPERM this user has no permissions to access one of the keys used as arguments")),
        ("SORT a:l STORE a:b", int(2)),
        // The first destination has the name of an option.
        (
            "SORT a:l STORE by STORE b",
            error("NOPERM this user has no permissions to access one of the keys used as arguments"),
        ),
        ("AUTH bob x", ok()),
        ("SORT a:l GET w* STORE a:b", int(2)),
        (
            "SORT a:l GET w* STORE b",
            error("NOPERM this user has no permissions to access one of the keys used as arguments"),
        ),
    ]);
}
