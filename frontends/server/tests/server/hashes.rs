//! Hashes.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn pairs(reply: Value) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (Value::Array(values) | Value::Map(values)) = reply else { panic!("no pairs: {reply:?}") };
    let text = |value: &Value| if let Value::Bulk(text) = value { text.clone() } else { panic!("no text: {value:?}") };
    values.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

#[test]
fn fields_are_put_read_and_deleted() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("HGET h a", Value::Null),
        ("HLEN h", int(0)),
        ("HDEL h a", int(0)),
        ("HGETALL h", array([])),
        ("HSET h a 1 b 2 a 3", int(2)),
        ("HSET h a 4", int(0)),
        ("HGET h a", bulk("4")),
        ("HGET h c", Value::Null),
        ("HMGET h b c a", array([bulk("2"), Value::Null, bulk("4")])),
        ("HEXISTS h b", int(1)),
        ("HEXISTS h c", int(0)),
        ("HSTRLEN h a", int(1)),
        ("HLEN h", int(2)),
        ("HSETNX h a 5", int(0)),
        ("HSETNX h c 5", int(1)),
        ("HMSET h d 6 e 7", ok()),
        ("HDEL h d d e x", int(2)),
        ("TYPE h", Value::Simple("hash".into())),
        ("HSET h a", error("ERR wrong number of arguments for 'hset' command")),
        ("HSET h a 1 b", error("ERR wrong number of arguments for 'hset' command")),
        ("HINCRBY h n 5", int(5)),
        ("HINCRBY h n -7", int(-2)),
        ("HINCRBY h n 9223372036854775807", int(9_223_372_036_854_775_805)),
        ("HINCRBY h n 9223372036854775807", error("ERR increment or decrement would overflow")),
        ("HSET h t text", int(1)),
        ("HINCRBY h t 1", error("ERR hash value is not an integer")),
        ("HINCRBYFLOAT h f 0.5", bulk("0.5")),
        ("HINCRBYFLOAT h f 1e2", bulk("100.5")),
        ("HINCRBYFLOAT h t 1", error("ERR hash value is not a float")),
        ("HDEL h a b c n t f", int(6)),
        ("EXISTS h", int(0)),
    ]);
    assert_eq!(client.say("HSET h a 1 b 2"), int(2));
    let wanted = BTreeMap::from([(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())]);
    assert_eq!(pairs(client.say("HGETALL h")), wanted);
    assert_eq!(pairs(client.say("HRANDFIELD h 5 WITHVALUES")), wanted);
    client.say("HELLO 3");
    let Value::Map(map) = client.say("HGETALL h") else { panic!("no map") };
    assert_eq!(pairs(Value::Map(map)), wanted);
}

#[test]
fn types_are_kept_apart() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("SET s 1", ok()),
        ("HSET h a 1", int(1)),
        ("HSET s a 1", error(WRONG_TYPE)),
        ("HGET s a", error(WRONG_TYPE)),
        ("HGETALL s", error(WRONG_TYPE)),
        ("GET h", error(WRONG_TYPE)),
        ("INCR h", error(WRONG_TYPE)),
        ("APPEND h x", error(WRONG_TYPE)),
        ("GETSET h x", error(WRONG_TYPE)),
        ("SET h x GET", error(WRONG_TYPE)),
        ("STRLEN h", error(WRONG_TYPE)),
        ("SETBIT h 1 1", error(WRONG_TYPE)),
        ("MGET s h none", array([bulk("1"), Value::Null, Value::Null])),
        ("SETNX h x", int(0)),
        ("MSETNX n 1 h 1", int(0)),
        ("SET h x NX", Value::Null),
        ("HGET h a", bulk("1")),
        ("SET h x XX", ok()),
        ("GET h", bulk("x")),
        ("HSET h a 1", error(WRONG_TYPE)),
        ("DEL h", int(1)),
        ("HSET h a 1", int(1)),
        ("SET h plain", ok()),
        ("GET h", bulk("plain")),
        ("DEL h s", int(2)),
        ("DBSIZE", int(0)),
        ("HSET h a 1", int(1)),
        ("MSET h 1 g 2", ok()),
        ("MGET h g", array([bulk("1"), bulk("2")])),
        ("TYPE h", Value::Simple("string".into())),
    ]);
}

/// Pipelined SETs and GETs run in groups.
#[test]
fn groups_of_strings_notice_collections() {
    let server = TestServer::single();
    let mut client = server.client();
    client.converse([("HSET b x 1", int(1)), ("SET a 1", ok())]);
    client.send(b"GET a\r\nGET b\r\nGET c\r\nMGET a b\r\nINCR a\r\nINCR b\r\nINCR a\r\n");
    let replies: Vec<Value> = (0..7).map(|_| client.reply()).collect();
    let wanted =
        [bulk("1"), error(WRONG_TYPE), Value::Null, array([bulk("1"), Value::Null]), int(2), error(WRONG_TYPE), int(3)];
    assert_eq!(replies, wanted);
    client.send(b"SET a 1\r\nSET b 2\r\nSET c 3\r\n");
    assert!((0..3).all(|_| client.reply() == ok()));
    client.converse([("GET b", bulk("2")), ("HGET b x", error(WRONG_TYPE)), ("DBSIZE", int(3))]);
}

fn scanned(client: &mut Client, command: &str) -> (Vec<Vec<u8>>, usize) {
    let (mut cursor, mut seen, mut call_count) = (b"0".to_vec(), Vec::new(), 0);
    loop {
        let line = command.replace("CURSOR", &String::from_utf8_lossy(&cursor));
        let Value::Array(reply) = client.say(&line) else { panic!("no array") };
        let [Value::Bulk(next), Value::Array(values)] = &reply[..] else { panic!("no cursor: {reply:?}") };
        seen.extend(values.iter().map(|value| if let Value::Bulk(text) = value { text.clone() } else { panic!() }));
        (cursor, call_count) = (next.clone(), call_count + 1);
        if cursor == b"0" {
            return (seen, call_count);
        }
    }
}

#[test]
fn scan_shows_each_field() {
    const COUNT: usize = 1000;
    let server = TestServer::start();
    let mut client = server.client();
    for number in 0..COUNT {
        client.say(&format!("HSET h f{number} {number}"));
    }
    let (seen, call_count) = scanned(&mut client, "HSCAN h CURSOR COUNT 10");
    let fields: BTreeSet<_> = seen.chunks(2).map(|pair| pair[0].clone()).collect();
    assert!(fields.len() == COUNT && seen.len() == 2 * COUNT && call_count > 50, "{} {call_count}", seen.len());
    let (seen, _) = scanned(&mut client, "HSCAN h CURSOR COUNT 100 MATCH f99*");
    assert_eq!(seen.len(), 2 * 11);
    let (keys, _) = scanned(&mut client, "SCAN CURSOR TYPE hash");
    assert_eq!(keys, [b"h".to_vec()]);
    assert_eq!(scanned(&mut client, "SCAN CURSOR TYPE string").0, Vec::<Vec<u8>>::new());
    client.converse([
        ("HLEN h", int(COUNT as i64)),
        ("HSCAN h 4294967296", array([bulk("0"), array([])])),
        ("HSCAN h x", error("ERR invalid cursor")),
        ("HSCAN none 0", array([bulk("0"), array([])])),
        ("HRANDFIELD h 0", array([])),
        ("HRANDFIELD none", Value::Null),
        (
            "HRANDFIELD h -9223372036854775808",
            error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"),
        ),
        ("HRANDFIELD h -9223372036854775807 WITHVALUES", error("ERR value is out of range")),
        ("HSCAN none 0 COUNT", array([bulk("0"), array([])])),
        ("HRANDFIELD h 1 WITHSCORES", error("ERR syntax error")),
    ]);
    let Value::Array(some) = client.say("HRANDFIELD h 20") else { panic!("no array") };
    let different: BTreeSet<_> = some.iter().map(|field| format!("{field:?}")).collect();
    assert_eq!(different.len(), 20);
    let Value::Array(some) = client.say("HRANDFIELD h -2000") else { panic!("no array") };
    assert_eq!(some.len(), 2000);
}

/// Whatever the number of fields, and whatever a client requests: the values may be of any length.
#[test]
fn scans_of_long_values_have_several_parts() {
    const FIELDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let server = TestServer::start();
    let mut client = server.client();
    let value = "x".repeat(200 << 10);
    FIELDS.iter().for_each(|field| assert_eq!(client.call(&["HSET", "h", field, &value]), int(1)));
    let (mut cursor, mut seen, mut call_count) = (b"0".to_vec(), BTreeSet::new(), 0);
    loop {
        let line = format!("HSCAN h {} COUNT 1000", String::from_utf8_lossy(&cursor));
        let Value::Array(reply) = client.say(&line) else { panic!("no array") };
        let [Value::Bulk(next), Value::Array(pairs)] = &reply[..] else { panic!("no cursor") };
        assert!(pairs.len() <= 4, "{} parts", pairs.len());
        seen.extend(pairs.iter().step_by(2).map(|field| format!("{field:?}")));
        call_count += 1;
        cursor = next.clone();
        if cursor == b"0" {
            break;
        }
    }
    assert_eq!((seen.len(), call_count), (FIELDS.len(), 3));
}

#[test]
fn encoding_depends_on_parameters() {
    let server = TestServer::debugging();
    let mut client = server.client();
    for number in 0..300 {
        client.converse([(&*format!("HSET h {number} v"), int(1))]);
    }
    client.converse([
        ("OBJECT ENCODING h", bulk("listpack")),
        ("CONFIG SET hash-max-ziplist-entries 299", ok()),
        ("CONFIG GET hash-max-listpack-entries", array([bulk("hash-max-listpack-entries"), bulk("299")])),
        ("OBJECT ENCODING h", bulk("hashtable")),
        ("CONFIG SET hash-max-listpack-value 3", ok()),
        ("CONFIG GET hash-max-ziplist-value", array([bulk("hash-max-ziplist-value"), bulk("3")])),
        ("HSET g a 123", int(1)),
        ("OBJECT ENCODING g", bulk("listpack")),
        ("HSET g a 1234", int(0)),
        ("OBJECT ENCODING g", bulk("hashtable")),
        ("DEBUG OBJECT none", error("ERR no such key")),
    ]);
    let Value::Simple(shown) = client.say("DEBUG OBJECT g") else { panic!("no text") };
    assert!(shown.contains(" encoding:hashtable "), "{shown}");
}
