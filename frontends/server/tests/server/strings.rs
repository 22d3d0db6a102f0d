//! Strings: SET with its options, parts of values, numbers.

use std::thread;

use crate::common::{TestServer, Value, array, bulk, error, int, ok};

#[test]
fn set_has_the_options_of_redis() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("SET k v XX", Value::Null),
        ("SET k v NX", ok()),
        ("SET k w NX", Value::Null),
        ("SET k w NX GET", bulk("v")),
        ("SET k w GET", bulk("v")),
        ("SET absent w XX GET", Value::Null),
        ("SET k v EX 100", ok()),
        ("TTL k", int(100)),
        ("SET k w KEEPTTL", ok()),
        ("TTL k", int(100)),
        ("SET k w", ok()),
        ("TTL k", int(-1)),
        ("SET k v PXAT 32503680000000", ok()),
        ("PEXPIRETIME k", int(32_503_680_000_000)),
        ("SET k v EXAT 1", ok()),
        ("EXISTS k", int(0)),
        ("SET k v NX XX", error("ERR syntax error")),
        ("SET k v EX 1 PX 1", error("ERR syntax error")),
        ("SET k v EX 1 KEEPTTL", error("ERR syntax error")),
        ("SET k v EX", error("ERR syntax error")),
        ("SET k v FOO", error("ERR syntax error")),
        ("SET k v EX 0", error("ERR invalid expire time in 'set' command")),
        ("SET k v EX x", error("ERR value is not an integer or out of range")),
        ("SET k v EX 9223372036854775807", error("ERR invalid expire time in 'set' command")),
        ("SETEX k 0 v", error("ERR invalid expire time in 'setex' command")),
        ("PSETEX k 100000 v", ok()),
        ("SETNX k w", int(0)),
        ("GETSET k w", bulk("v")),
        ("TTL k", int(-1)),
        ("CAS k v x", int(0)),
        ("CAS k w x", int(1)),
        ("GET k", bulk("x")),
    ]);
}

#[test]
fn parts_of_values() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("APPEND k Hello", int(5)),
        ("APPEND k ' World'", int(11)),
        ("STRLEN k", int(11)),
        ("GETRANGE k 0 4", bulk("Hello")),
        ("SUBSTR k -5 -1", bulk("World")),
        ("GETRANGE absent 0 -1", bulk("")),
        ("SETRANGE k 6 Redis", int(11)),
        ("GET k", bulk("Hello Redis")),
        ("SETRANGE z 3 x", int(4)),
        ("GET z", bulk("\0\0\0x")),
        ("SETRANGE absent 3 ''", int(0)),
        ("EXISTS absent", int(0)),
        ("SETRANGE k -1 x", error("ERR offset is out of range")),
        ("SETRANGE k 536870912 x", error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")),
        ("GETDEL k", bulk("Hello Redis")),
        ("GETDEL k", Value::Null),
        ("SET k v EX 100", ok()),
        ("GETEX k PERSIST", bulk("v")),
        ("TTL k", int(-1)),
        ("GETEX k EX 50", bulk("v")),
        ("TTL k", int(50)),
        ("GETEX k PXAT 1", bulk("v")),
        ("EXISTS k", int(0)),
    ]);
}

#[test]
fn many_keys_at_once() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("MSET a 1 b 2", ok()),
        ("MSETNX b 3 c 3", int(0)),
        ("MGET a b c", array([bulk("1"), bulk("2"), Value::Null])),
        ("MSETNX c 3 d 4", int(1)),
        ("MSET a", error("ERR wrong number of arguments for 'mset' command")),
        ("MSET a 1 b", error("ERR wrong number of arguments for 'mset' command")),
    ]);
}

#[test]
fn numbers_are_added() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("INCR n", int(1)),
        ("DECRBY n 11", int(-10)),
        ("INCRBY n 9223372036854775807", int(9_223_372_036_854_775_797)),
        ("INCRBY n 11", error("ERR increment or decrement would overflow")),
        ("DECRBY n -9223372036854775808", error("ERR decrement would overflow")),
        ("SET k v", ok()),
        ("INCR k", error("ERR value is not an integer or out of range")),
        ("INCRBYFLOAT k 1", error("ERR value is not a valid float")),
        ("SET f 10.50", ok()),
        ("INCRBYFLOAT f 0.1", bulk("10.6")),
        ("INCRBYFLOAT f inf", error("ERR increment would produce NaN or Infinity")),
        ("EXPIRE f 100", int(1)),
        ("INCRBYFLOAT f 5e1", bulk("60.6")),
        ("TTL f", int(100)),
    ]);
}

#[test]
fn increments_of_many_clients_are_all_counted() {
    let server = TestServer::start();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.client();
                (0..250).for_each(|_| assert!(matches!(client.say("INCR n"), Value::Integer(_))));
            });
        }
    });
    assert_eq!(server.client().say("GET n"), bulk("1000"));
}

#[test]
fn longest_common_subsequence() {
    let server = TestServer::start();
    let mut client = server.client();
    let place = |from, to| array([int(from), int(to)]);
    client.converse([
        ("MSET a ohmytext b mynewtext", ok()),
        ("LCS a b", bulk("mytext")),
        ("LCS a b LEN", int(6)),
        (
            "LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN",
            array([bulk("matches"), array([array([place(4, 7), place(5, 8), int(4)])]), bulk("len"), int(6)]),
        ),
        ("LCS a b LEN IDX", error("ERR If you want both the length and indexes, please just use IDX.")),
    ]);
}
