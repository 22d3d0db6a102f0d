//! DUMP and RESTORE of collections, and dumps of Redis in each encoding.

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};
use crate::shown::Shown;
use crate::sorted_set_orders::check;

const BAD_FORMAT: &str = "ERR Bad data format";

/// Dumps of Redis 7.0.15, which were made with settings that force each encoding, and the value.
const FROM_REDIS: [(&str, &str, &Content); 14] = [
    (
        "hash, listpack",
        "10c335407014700000000a008161020101816202dffb02aa633a78e01e00022b9e79e01400091f816e02f4141a99be1c206406098165\
         028001ff0a008be9676fa4eca75a",
        &HASH,
    ),
    (
        "hash, plain",
        "0405c30a2a02633a78e01c00017878c3091e017979e01100017979016e0c3132333435363738393031320162c0fb0161c0010165000a\
         00757d0ce9835bf774",
        &HASH,
    ),
    ("set, plain", "020500c01101620161c30928017878e01b000178780a00d83929818c309dbf", &SET),
    (
        "set, intset of 16 bits",
        "0b0e0200000003000000ffff0300c8000a00a451fb4ce505cec9",
        &Content::Set(&["3", "-1", "200"]),
    ),
    (
        "set, intset of 32 bits",
        "0b140400000003000000ffffffff03000000701101000a00faf9076ba102fb14",
        &Content::Set(&["3", "-1", "70000"]),
    ),
    ("set, intset of 64 bits", "0bc31520040800000003200300ffa000400be00000020100000a00a8aea5f894d189b5", &INTEGERS),
    ("set of integers, plain", "0203c0ffc0030d313039393531313632373737360a004f2e7f99c2629b4d", &INTEGERS),
    (
        "sorted set, listpack",
        "113e3e0000000c00836c6f7704842d696e660511010001836f6e650401018374776f0483322e350483626967048531652b3230068468\
         6967680583696e6604ff0a00d9bfe9de3cb22098",
        &SORTED_SET,
    ),
    (
        "sorted set, plain",
        "05060468696768000000000000f07f03626967408cb5781daf15440374776f0000000000000440036f6e65000000000000f03fc01100\
         00000000000000036c6f77000000000000f0ff0a00fc510a4a99445c95",
        &SORTED_SET,
    ),
    (
        "list, one packed node",
        "120102c31e40400e40000000060081610280011101a878e01e000529f2c063ff04203500ff0a0067412bf3ecd366e2",
        &LIST,
    ),
    (
        "list, small packed nodes",
        "1203020c0c00000002008161028001ff02c31133093300000002001101a878e01e000129ff020f0f0000000200f2c063ff04816102ff\
         0a000e3f33343a41cde3",
        &LIST,
    ),
    (
        "list, plain nodes",
        "1203020a0a0000000100816102ff01146262626262626262626262626262626262626262020a0a0000000100816302ff0a00b52bb55a86b78ccc",
        &Content::List(&["a", "bbbbbbbbbbbbbbbbbbbb", "c"]),
    ),
    ("sorted set, one", "110c0c00000002008161020101ff0a00a805ceb8d7a93302", &Content::SortedSet(&["a", "1"])),
    ("string, compressed", "00c30d419002616261e0ff01e07a010161620a003f03619433dd8d9a", &Content::String),
];

/// The value that a key should hold.
#[derive(Debug)]
enum Content {
    /// `ab`, 200 times.
    String,
    /// Fields and values.
    Hash(&'static [&'static str]),
    Set(&'static [&'static str]),
    List(&'static [&'static str]),
    /// Members and scores, by score.
    SortedSet(&'static [&'static str]),
}

const X_40: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
const HASH: Content = Content::Hash(&[
    "a",
    "1",
    "b",
    "-5",
    "c:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
    "e",
    "",
    "n",
    "123456789012",
]);
const SET: Content = Content::Set(&["a", "b", "17", "", X_40]);
const INTEGERS: Content = Content::Set(&["3", "-1", "1099511627776"]);
const LIST: Content = Content::List(&["a", "", "17", X_40, "-40000", "a"]);
const SORTED_SET: Content =
    Content::SortedSet(&["low", "-inf", "17", "0", "one", "1", "two", "2.5", "big", "1e+20", "high", "inf"]);

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("digits")).collect()
}

/// Returns a payload with the version and the checksum of a value.
fn sealed(value: &[u8]) -> Vec<u8> {
    rdb::sealed(value.to_vec())
}

fn restore(client: &mut Client, key: &str, payload: &[u8], options: &[&str]) -> Value {
    let words = [&b"RESTORE"[..], key.as_bytes(), b"0", payload];
    client.call(&words.into_iter().chain(options.iter().map(|option| option.as_bytes())).collect::<Vec<_>>())
}

fn dump(client: &mut Client, key: &str) -> Vec<u8> {
    match client.call(&["DUMP", key]) {
        Value::Bulk(payload) => payload,
        other => panic!("no payload: {other:?}"),
    }
}

fn texts(reply: Value) -> Vec<String> {
    let Value::Array(parts) = reply else { panic!("no array: {reply:?}") };
    let text = |part: &Value| match part {
        Value::Bulk(text) => String::from_utf8(text.clone()).expect("a text"),
        other => panic!("no text: {other:?}"),
    };
    parts.iter().map(text).collect()
}

fn holds(client: &mut Client, key: &str, content: &Content) -> bool {
    let sorted = |texts: Vec<String>, size: usize| {
        let mut groups: Vec<Vec<String>> = texts.chunks(size).map(<[String]>::to_vec).collect();
        groups.sort();
        groups
    };
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    match content {
        Content::String => client.call(&["GET", key]) == bulk("ab".repeat(200)),
        Content::Hash(pairs) => sorted(texts(client.call(&["HGETALL", key])), 2) == sorted(owned(pairs), 2),
        Content::Set(members) => sorted(texts(client.call(&["SMEMBERS", key])), 1) == sorted(owned(members), 1),
        Content::List(elements) => texts(client.call(&["LRANGE", key, "0", "-1"])) == owned(elements),
        Content::SortedSet(pairs) => texts(client.call(&["ZRANGE", key, "0", "-1", "WITHSCORES"])) == owned(pairs),
    }
}

fn keeps_invariants(server: &TestServer) {
    assert_eq!(Shown::of(&server.store.snapshot().expect("it is taken")).violation(), None);
}

#[test]
fn redis_dumps_of_each_encoding_restore() {
    let server = TestServer::start();
    let mut client = server.client();
    for (name, hex, content) in FROM_REDIS {
        assert_eq!(restore(&mut client, "k", &bytes_of(hex), &["REPLACE"]), ok(), "{name}");
        assert!(holds(&mut client, "k", content), "{name}");
        // Own dumps have the plain encodings.
        let dumped = dump(&mut client, "k");
        assert_eq!(restore(&mut client, "again", &dumped, &["REPLACE"]), ok(), "{name}");
        assert!(holds(&mut client, "again", content), "{name}");
    }
    keeps_invariants(&server);
}

/// The same listpack as a list of Redis 7.2, and ziplists of Redis 6.
#[test]
fn encodings_of_other_versions_are_restored() {
    let server = TestServer::start();
    let mut client = server.client();
    let listpack = b"\x0D\0\0\0\x02\0\x82hi\x03\x07\x01\xFF";
    let ziplist = b"\x12\0\0\0\x0E\0\0\0\x02\0\x00\x02hi\x04\xFE\x07\xFF";
    let zipmap = b"\x01\x02hi\x01\x007\xFF";
    let in_string = |packed: &[u8]| [&[packed.len() as u8], packed].concat();
    let of_type = |value_type: u8, rest: &[u8]| sealed(&[&[value_type], rest].concat());
    let pair = Content::Hash(&["hi", "7"]);
    let scored = Content::SortedSet(&["hi", "7"]);
    let two = Content::List(&["hi", "7"]);
    for (payload, content) in [
        (of_type(20, &in_string(listpack)), &Content::Set(&["hi", "7"])),
        (of_type(16, &in_string(listpack)), &pair),
        (of_type(17, &in_string(listpack)), &scored),
        (of_type(9, &in_string(zipmap)), &pair),
        (of_type(10, &in_string(ziplist)), &two),
        (of_type(12, &in_string(ziplist)), &scored),
        (of_type(13, &in_string(ziplist)), &pair),
        (of_type(14, &[&[1], &in_string(ziplist)[..]].concat()), &two),
        (of_type(3, b"\x01\x02hi\x017"), &scored),
        (of_type(1, b"\x02\x02hi\xC0\x07"), &two),
    ] {
        assert_eq!(restore(&mut client, "k", &payload, &["REPLACE"]), ok(), "{content:?} {}", payload[0]);
        assert!(holds(&mut client, "k", content), "{content:?} {}", payload[0]);
    }
}

#[test]
fn wrong_payloads_leave_nothing() {
    let server = TestServer::start();
    let mut client = server.client();
    client.say("SET k old");
    for (value, text) in [
        (&b"\x02\x02\x01a\x01a"[..], BAD_FORMAT),
        (b"\x04\x02\x01a\x01b\x01a\x01c", BAD_FORMAT),
        (b"\x05\x02\x01a\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\xF0\x3F", BAD_FORMAT),
        (b"\x05\x01\x01a\0\0\0\0\0\0\xF8\x7F", BAD_FORMAT),
        (b"\x0B\x0C\x02\0\0\0\x02\0\0\0\x05\0\x05\0", BAD_FORMAT),
        (b"\x02\x00", BAD_FORMAT),
        (b"\x02\x02\x01a", BAD_FORMAT),
        (b"\x02\x01\x01ab", BAD_FORMAT),
        (b"\x02\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01a", BAD_FORMAT),
        (b"\x10\x03abc", BAD_FORMAT),
        (b"\x63\x00", "ERR Bad data format: a value of an unknown type is not supported"),
        (b"\x13\x00", "ERR Bad data format: a stream is not supported"),
        (b"\x07\x00", "ERR Bad data format: a value of a module is not supported"),
        (b"\x18\x00", "ERR Bad data format: a hash with fields that expire is not supported"),
    ] {
        assert_eq!(restore(&mut client, "k", &sealed(value), &["REPLACE"]), error(text), "{value:?}");
        assert_eq!(restore(&mut client, "new", &sealed(value), &[]), error(text), "{value:?}");
    }
    client.converse([("GET k", bulk("old")), ("EXISTS new", int(0)), ("DBSIZE", int(1))]);
    let long = [&b"\x02\x01\x80\x00\x01\x00\x00"[..], &[b'x'; 1 << 16]].concat();
    let refused = restore(&mut client, "new", &sealed(&long), &[]);
    let start = "ERR the field or member has 65540 bytes; the limit is ";
    assert!(matches!(&refused, Value::Error(text) if text.starts_with(start)), "{refused:?}");
}

#[test]
fn options_of_restore_work_for_collections() {
    let server = TestServer::start();
    let mut client = server.client();
    client.say("RPUSH l a b");
    client.say("HSET h f v");
    let (list, hash) = (dump(&mut client, "l"), dump(&mut client, "h"));
    assert_eq!(restore(&mut client, "h", &list, &[]), error("BUSYKEY Target key name already exists."));
    assert_eq!(restore(&mut client, "h", &list, &["REPLACE", "FREQ", "1"]), ok());
    client.converse([("TYPE h", Value::Simple("list".into())), ("LLEN h", int(2)), ("TTL h", int(-1))]);
    client.say("SET s text");
    assert_eq!(restore(&mut client, "s", &hash, &["REPLACE"]), ok());
    client.converse([
        ("HGETALL s", array([bulk("f"), bulk("v")])),
        ("GET s", error("WRONGTYPE Operation against a key holding the wrong kind of value")),
    ]);
    client.say("SET text x");
    let string = dump(&mut client, "text");
    assert_eq!(restore(&mut client, "s", &string, &["REPLACE"]), ok());
    client.converse([("GET s", bulk("x")), ("TYPE s", Value::Simple("string".into()))]);
    let later = [&b"RESTORE"[..], b"s", b"100000", &list, b"REPLACE", b"IDLETIME", b"7"];
    assert_eq!(client.call(&later), ok());
    client.converse([("LLEN s", int(2)), ("TTL s", int(100)), ("PERSIST s", int(1)), ("TTL s", int(-1))]);
    let at = [&b"RESTORE"[..], b"s", b"4102444800000", &list, b"REPLACE", b"ABSTTL"];
    assert_eq!(client.call(&at), ok());
    client.converse([("EXPIRETIME s", int(4_102_444_800))]);
    let past = [&b"RESTORE"[..], b"s", b"1", &list, b"REPLACE", b"ABSTTL"];
    assert_eq!(client.call(&past), ok());
    client.converse([("EXISTS s", int(0))]);
}

#[test]
fn restore_in_transaction_serves_waiting_clients() {
    let server = TestServer::start();
    let (mut client, mut waiting) = (server.client(), server.client());
    client.say("ZADD z 1 a");
    let payload = dump(&mut client, "z");
    client.say("MULTI");
    client.call(&[&b"RESTORE"[..], b"y", b"0", &payload]);
    client.call(&[b"ZPOPMIN", &b"y"[..]]);
    client.call(&[&b"RESTORE"[..], b"y", b"0", &payload]);
    client.call(&[b"ZCARD", &b"y"[..]]);
    assert_eq!(client.say("EXEC"), array([ok(), array([bulk("a"), bulk("1")]), ok(), int(1)]));
    client.say("DEL y");
    waiting.send(b"BZPOPMIN y 0\r\n");
    crate::blocking::await_waiting(&mut client, 1);
    assert_eq!(restore(&mut client, "y", &payload, &[]), ok());
    assert_eq!(waiting.reply(), array([bulk("y"), bulk("a"), bulk("1")]));
    client.converse([("EXISTS y", int(0))]);
    check(&server);
}

/// The first collection of a store may be a restored one, in a transaction and a script too.
#[test]
fn first_collection_is_restored() {
    let payload = sealed(b"\x01\x01\x01a");
    let server = TestServer::start();
    assert_eq!(restore(&mut server.client(), "l", &payload, &[]), ok());
    assert_eq!(server.client().say("LRANGE l 0 -1"), array([bulk("a")]));
    let server = TestServer::start();
    let mut client = server.client();
    client.say("MULTI");
    client.call(&[&b"RESTORE"[..], b"l", b"0", &payload]);
    assert_eq!(client.say("EXEC"), array([ok()]));
    let server = TestServer::start();
    let script = &b"return redis.call('RESTORE', KEYS[1], 0, ARGV[1])"[..];
    assert_eq!(server.client().call(&[b"EVAL", script, b"1", b"l", &payload]), ok());
    assert_eq!(server.client().say("LLEN l"), int(1));
    // A string needs no catalog.
    let server = TestServer::start();
    assert_eq!(restore(&mut server.client(), "s", &sealed(b"\x00\x01a"), &[]), ok());
    assert!(server.store.trees().expect("it is read").is_empty());
}

#[test]
fn large_collections_are_dumped_and_restored() {
    const COUNT: usize = 30_000;
    let server = TestServer::start();
    let mut client = server.client();
    for first in (0..COUNT).step_by(1000) {
        let mut words: Vec<String> = vec!["ZADD".into(), "z".into()];
        (first..first + 1000).for_each(|number| words.extend([(number % 777).to_string(), format!("m{number}")]));
        client.call(&words);
    }
    let payload = dump(&mut client, "z");
    assert_eq!(restore(&mut client, "y", &payload, &[]), ok());
    client.converse([
        ("ZCARD y", int(COUNT as i64)),
        ("ZSCORE y m29999", bulk("473")),
        ("ZINTERCARD 2 z y", int(COUNT as i64)),
    ]);
    // Decompressed it has 500,000 elements, so it is restored next to the event loops.
    let element = b"\x01x".repeat(500_000);
    let plain = sealed(&[&b"\x01\x80\x00\x07\xA1\x20"[..], &element].concat());
    assert_eq!(restore(&mut client, "l", &plain, &[]), ok());
    client.converse([("LLEN l", int(500_000)), ("LINDEX l -1", bulk("x"))]);
    // 2,500,000 elements are more than one batch may have.
    let element = b"\x01x".repeat(2_500_000);
    let plain = sealed(&[&b"\x01\x80\x00\x26\x25\xA0"[..], &element].concat());
    let refused = restore(&mut client, "m", &plain, &[]);
    assert!(matches!(&refused, Value::Error(text) if text.contains("1073741824")), "{refused:?}");
    client.converse([("EXISTS m", int(0))]);
    keeps_invariants(&server);
}
