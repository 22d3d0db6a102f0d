//! Keys, expiry, and databases.

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

#[test]
fn keys_expire_under_conditions() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("EXPIRE k 10", int(0)),
        ("SET k v", ok()),
        ("EXPIRE k 100 XX", int(0)),
        ("EXPIRE k 100 GT", int(0)),
        ("EXPIRE k 100 LT", int(1)),
        ("EXPIRE k 200 NX", int(0)),
        ("EXPIRE k 50 GT", int(0)),
        ("EXPIRE k 200 GT", int(1)),
        ("TTL k", int(200)),
        ("EXPIRE k 1 NX GT", error("ERR NX and XX, GT or LT options at the same time are not compatible")),
        ("EXPIRE k 1 LT GT", error("ERR GT and LT options at the same time are not compatible")),
        ("EXPIRE k 1 AB", error("ERR Unsupported option AB")),
        ("EXPIRE k 9223372036854775807", error("ERR invalid expire time in 'expire' command")),
        ("PERSIST k", int(1)),
        ("PERSIST k", int(0)),
        ("PTTL k", int(-1)),
        ("PEXPIREAT k 32503680000123", int(1)),
        ("EXPIRETIME k", int(32_503_680_000)),
        ("EXPIREAT k 1", int(1)),
        ("TTL k", int(-2)),
    ]);
}

/// Clients of two loops, repeatedly at the same time: exactly one of them has removed the expiry.
#[test]
fn one_of_two_persists_succeeds() {
    let server = TestServer::start();
    let mut clients = [server.client(), server.client()];
    for _ in 0..500 {
        assert_eq!(clients[0].say("SET k v EX 100"), ok());
        clients.iter_mut().for_each(|client| client.send(&encode(&["PERSIST", "k"])));
        let reported = clients.each_mut().map(Client::reply);
        assert!(reported == [int(0), int(1)] || reported == [int(1), int(0)], "{reported:?}");
    }
}

#[test]
fn moves_and_copies_keep_expiry() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("RENAME a b", error("ERR no such key")),
        ("SET a 1 EX 100", ok()),
        ("SET b 2", ok()),
        ("RENAMENX a b", int(0)),
        ("RENAME a b", ok()),
        ("TTL b", int(100)),
        ("EXISTS a", int(0)),
        ("RENAME b b", ok()),
        ("COPY b c", int(1)),
        ("COPY b c", int(0)),
        ("COPY b c REPLACE", int(1)),
        ("TTL c", int(100)),
        ("COPY b b", error("ERR source and destination objects are the same")),
        ("COPY b c DB 16", error("ERR DB index is out of range")),
        ("TYPE b", Value::Simple("string".into())),
        ("TYPE a", Value::Simple("none".into())),
        ("TOUCH a b c", int(2)),
        ("UNLINK a b", int(1)),
        ("RANDOMKEY", bulk("c")),
        ("KEYS *", array([bulk("c")])),
        ("OBJECT ENCODING c", bulk("int")),
        ("WAIT 0 0", int(0)),
        ("DEL c", int(1)),
        ("RANDOMKEY", Value::Null),
    ]);
}

#[test]
fn databases_are_apart_and_can_be_swapped() {
    let server = TestServer::start();
    server.store.put("library", "key").expect("the store takes it");
    let mut client = server.client();
    client.converse([
        ("GET library", bulk("key")),
        ("SELECT 15", ok()),
        ("GET library", Value::Null),
        ("SET k 15", ok()),
        ("DBSIZE", int(1)),
        ("KEYS *", array([bulk("k")])),
        ("SCAN 0", array([bulk("0"), array([bulk("k")])])),
        ("RANGE - +", array([bulk("k"), bulk("15")])),
        ("SELECT 16", error("ERR DB index is out of range")),
        ("SELECT 0", ok()),
        ("DBSIZE", int(1)),
        ("SWAPDB 0 15", ok()),
        ("GET k", bulk("15")),
        ("GET library", Value::Null),
        ("MOVE k 3", int(1)),
        ("MOVE k 3", int(0)),
        ("SELECT 3", ok()),
        ("GET k", bulk("15")),
        ("SWAPDB x 1", error("ERR invalid first DB index")),
        ("SWAPDB 0 99", error("ERR DB index is out of range")),
    ]);
    let server = server.restarted();
    let mut client = server.client();
    client.converse([
        ("SELECT 15", ok()),
        ("GET library", bulk("key")),
        ("FLUSHDB", ok()),
        ("DBSIZE", int(0)),
        ("SELECT 3", ok()),
        ("DBSIZE", int(1)),
        ("FLUSHALL", ok()),
        ("DBSIZE", int(0)),
    ]);
    assert!(server.store.is_empty().expect("the store counts"));
}

#[test]
fn dump_is_restored() {
    let server = TestServer::start();
    let mut client = server.client();
    client.say("SET k value");
    let Value::Bulk(dumped) = client.say("DUMP k") else { panic!("not a dump") };
    let restore = |ttl: &'static str| vec![b"RESTORE".to_vec(), b"r".to_vec(), ttl.into(), dumped.clone()];
    assert_eq!(client.call(&restore("0")), ok());
    assert_eq!(client.say("GET r"), bulk("value"));
    assert_eq!(client.call(&restore("0")), error("BUSYKEY Target key name already exists."));
    assert_eq!(client.call(&[restore("100000"), vec![b"REPLACE".to_vec()]].concat()), ok());
    assert_eq!(client.say("TTL r"), int(100));
    let negative = [restore("-1"), vec![b"REPLACE".to_vec()]].concat();
    assert_eq!(client.call(&negative), error("ERR Invalid TTL value, must be >= 0"));
    client.converse([
        ("RESTORE other 0 damaged", error("ERR DUMP payload version or checksum are wrong")),
        ("RESTORE other 0 x IDLETIME -1", error("ERR Invalid IDLETIME value, must be >= 0")),
        ("RESTORE other 0 x FREQ 256", error("ERR Invalid FREQ value, must be >= 0 and <= 255")),
        ("RESTORE other 0 x FREQ -1", error("ERR Invalid FREQ value, must be >= 0 and <= 255")),
        ("RESTORE other 0 x FREQ 1 IDLETIME 1", error("ERR syntax error")),
        ("RESTORE other 0 x IDLETIME 1 FREQ 1", error("ERR syntax error")),
        ("RESTORE other 0 x FREQ", error("ERR syntax error")),
        ("RESTORE other 0 x IDLETIME a", error("ERR value is not an integer or out of range")),
        ("DUMP absent", Value::Null),
    ]);
    // A value that has already expired deletes the key that it replaces.
    let past =
        |options: &[&str]| [restore("1"), options.iter().map(|word| word.as_bytes().to_vec()).collect()].concat();
    assert_eq!(client.call(&past(&["ABSTTL"])), error("BUSYKEY Target key name already exists."));
    assert_eq!(client.call(&past(&["ABSTTL", "REPLACE"])), ok());
    assert_eq!(client.say("EXISTS r"), int(0));
    assert_eq!(client.call(&past(&["ABSTTL"])), ok());
    assert_eq!(client.say("EXISTS r"), int(0));
}

/// The same option may be repeated, and the last one counts; two different ones contradict each other.
#[test]
fn options_about_time_may_repeat() {
    let server = TestServer::start();
    let mut client = server.client();
    let syntax = || error("ERR syntax error");
    client.converse([
        ("SET k v EX 10 EX 20", ok()),
        ("TTL k", int(20)),
        ("SET k v KEEPTTL KEEPTTL", ok()),
        ("TTL k", int(20)),
        ("SET k v PX 5 EX 20", syntax()),
        ("SET k v EX 20 KEEPTTL", syntax()),
        ("SET k v KEEPTTL EX 20", syntax()),
        ("SET k v EX", syntax()),
        ("GETEX k EX 10 EX 30", bulk("v")),
        ("TTL k", int(30)),
        ("GETEX k PERSIST EX 5", syntax()),
        ("GETEX k EX 5 PERSIST", syntax()),
        ("GETEX k KEEPTTL", syntax()),
        ("GETEX k PERSIST PERSIST", bulk("v")),
        ("TTL k", int(-1)),
        ("GETEX absent EX 0", Value::Null),
        ("GETEX k EX 0", error("ERR invalid expire time in 'getex' command")),
    ]);
}

#[test]
fn ranges_return_requested_parts() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("MSET a 1 b 2 c 3", ok()),
        ("RANGE a b KEYS", array([bulk("a"), bulk("b")])),
        ("RANGE + - REV LIMIT 2 VALUES", array([bulk("3"), bulk("2")])),
        ("COUNTRANGE b +", int(2)),
        ("COUNTRANGE + -", int(0)),
    ]);
}

#[test]
fn swapped_databases_keep_their_counts() {
    let server = TestServer::start();
    let mut client = server.client();
    for swaps in [&["SWAPDB 0 0"][..], &["SWAPDB 0 1", "SWAPDB 0 1"], &["SWAPDB 3 4", "SWAPDB 4 3"]] {
        client.converse([("FLUSHALL", ok()), ("SET k v", ok())]);
        swaps.iter().for_each(|swap| assert_eq!(client.say(swap), ok()));
        client.converse([("DBSIZE", int(1)), ("FLUSHDB", ok()), ("DBSIZE", int(0))]);
    }
    let server = server.restarted();
    assert_eq!(server.client().say("DBSIZE"), int(0));
}
