//! Sets.

use std::collections::BTreeSet;

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn members(reply: Value) -> BTreeSet<Vec<u8>> {
    let (Value::Array(values) | Value::Set(values)) = reply else { panic!("no members: {reply:?}") };
    let count = values.len();
    let text = |value: Value| if let Value::Bulk(text) = value { text } else { panic!("no text: {value:?}") };
    let members: BTreeSet<_> = values.into_iter().map(text).collect();
    assert_eq!(members.len(), count, "a member is there twice");
    members
}

fn of(words: &str) -> BTreeSet<Vec<u8>> {
    words.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}

fn has(client: &mut Client, line: &str, words: &str) {
    assert_eq!(members(client.say(line)), of(words), "{line}");
}

#[test]
fn members_are_added_and_removed() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("SCARD s", int(0)),
        ("SISMEMBER s a", int(0)),
        ("SMEMBERS s", array([])),
        ("SADD s a b a", int(2)),
        ("SADD s a", int(0)),
        ("SADD s c", int(1)),
        ("SCARD s", int(3)),
        ("SISMEMBER s b", int(1)),
        ("SMISMEMBER s a x c", array([int(1), int(0), int(1)])),
        ("SMISMEMBER none a", array([int(0)])),
        ("TYPE s", Value::Simple("set".into())),
        ("SREM s a x", int(1)),
        ("SREM none a", int(0)),
        ("HSET s f v", error(WRONG_TYPE)),
        ("HSET h f v", int(1)),
        ("SADD h a", error(WRONG_TYPE)),
        ("SET k v", ok()),
        ("SADD k a", error(WRONG_TYPE)),
        ("SUNION s k", error(WRONG_TYPE)),
        ("SINTER none k", error(WRONG_TYPE)),
    ]);
    has(&mut client, "SMEMBERS s", "b c");
    client.converse([("SREM s b c", int(2)), ("EXISTS s", int(0)), ("SADD n 1 2 3", int(3))]);
    client.converse([("OBJECT ENCODING n", bulk("intset")), ("SADD n x", int(1))]);
    client.converse([("OBJECT ENCODING n", bulk("hashtable")), ("CONFIG SET set-max-intset-entries 2", ok())]);
    client.converse([("SADD m 1 2 3", int(3)), ("OBJECT ENCODING m", bulk("hashtable"))]);
}

#[test]
fn members_are_moved_and_popped() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("SADD a x y", int(2)),
        ("SMOVE a b x", int(1)),
        ("SMOVE a b x", int(0)),
        ("SMOVE a a y", int(1)),
        ("SMOVE none b x", int(0)),
        ("SMOVE a b y", int(1)),
        ("EXISTS a", int(0)),
        ("SET k v", ok()),
        ("SMOVE b k x", error(WRONG_TYPE)),
    ]);
    has(&mut client, "SMEMBERS b", "x y");
    has(&mut client, "SRANDMEMBER b 5", "x y");
    client.converse([("SPOP b 0", array([])), ("SRANDMEMBER none", Value::Null), ("SPOP none", Value::Null)]);
    let Value::Array(equal) = client.say("SRANDMEMBER b -7") else { panic!("no array") };
    assert!(equal.len() == 7 && equal.iter().all(|member| [bulk("x"), bulk("y")].contains(member)));
    let Value::Bulk(popped) = client.say("SPOP b") else { panic!("no member") };
    let left = if popped == b"x" { "y" } else { "x" };
    has(&mut client, "SPOP b 10", left);
    client.converse([
        ("EXISTS b", int(0)),
        ("SPOP b -1", error("ERR value is out of range, must be positive")),
        ("SPOP b 1 2", error("ERR syntax error")),
    ]);
}

#[test]
fn sets_are_combined() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("SADD a 1 2 3", int(3)), ("SADD b 2 3 4", int(3)), ("SADD c 3 5", int(2))]);
    has(&mut client, "SINTER a b c", "3");
    has(&mut client, "SINTER a none", "");
    has(&mut client, "SUNION a b none c", "1 2 3 4 5");
    has(&mut client, "SDIFF a b", "1");
    has(&mut client, "SDIFF a none", "1 2 3");
    has(&mut client, "SDIFF none a", "");
    client.converse([
        ("SINTERSTORE d a b", int(2)),
        ("SUNIONSTORE a a b", int(4)),
        ("SDIFFSTORE h a d", int(2)),
        ("SET k v", ok()),
        ("SINTERSTORE k a c", int(1)),
        ("SINTERSTORE k a none", int(0)),
        ("EXISTS k", int(0)),
        ("SINTERCARD 2 a b", int(3)),
        ("SINTERCARD 2 a b LIMIT 2", int(2)),
        ("SINTERCARD 2 a b LIMIT 0", int(3)),
        ("SINTERCARD 0 a", error("ERR numkeys should be greater than 0")),
        ("SINTERCARD 3 a b", error("ERR Number of keys can't be greater than number of args")),
        ("SINTERCARD 1 a LIMIT -1", error("ERR LIMIT can't be negative")),
        ("SINTERCARD 1 a b", error("ERR syntax error")),
    ]);
    has(&mut client, "SMEMBERS d", "2 3");
    has(&mut client, "SMEMBERS h", "1 4");
    client.say("HELLO 3");
    assert!(matches!(client.say("SMEMBERS h"), Value::Set(members) if members.len() == 2));
}

#[test]
fn large_sets_are_scanned_and_drawn_from() {
    const COUNT: usize = 2000;
    let server = TestServer::start();
    let mut client = server.client();
    let words: Vec<String> = (0..COUNT).map(|number| format!("m{number}")).collect();
    let line = format!("SADD s {}", words.join(" "));
    assert_eq!(client.call(&line.split(' ').collect::<Vec<_>>()), int(COUNT as i64));
    let (mut cursor, mut seen) = (b"0".to_vec(), BTreeSet::new());
    loop {
        let Value::Array(reply) = client.say(&format!("SSCAN s {} COUNT 50", String::from_utf8_lossy(&cursor))) else {
            panic!("no array")
        };
        let [Value::Bulk(next), some] = &reply[..] else { panic!("no cursor") };
        seen.extend(members(some.clone()));
        cursor = next.clone();
        if cursor == b"0" {
            break;
        }
    }
    assert_eq!(seen.len(), COUNT);
    assert_eq!(members(client.say("SRANDMEMBER s 100")).len(), 100);
    let mut popped = members(client.say("SPOP s 500"));
    popped.extend(members(client.say("SPOP s 1400")));
    for _ in 0..100 {
        let Value::Bulk(member) = client.say("SPOP s") else { panic!("no member") };
        popped.insert(member);
    }
    assert_eq!(popped, seen);
    client.converse([("EXISTS s", int(0))]);
}

/// Returns members that all have the same CRC-32, and so the same place in the order of members.
fn members_of_one_hash(count: u32) -> Vec<Vec<u8>> {
    const WANTED: u32 = 0x1234_5678;
    let table: Vec<u32> = (0..256_u32)
        .map(|byte| (0..8).fold(byte, |rest, _| if rest & 1 == 1 { rest >> 1 ^ 0xEDB8_8320 } else { rest >> 1 }))
        .collect();
    let member = |number: u32| {
        let mut member = number.to_be_bytes().to_vec();
        // The entries of the table that the last four bytes must use, from the last one on.
        let (mut rest, mut entries) = (!WANTED, [0; 4]);
        for entry in entries.iter_mut().rev() {
            *entry = table.iter().position(|word| word >> 24 == rest >> 24).expect("each highest byte is there once");
            rest = (rest ^ table[*entry]) << 8;
        }
        let mut state = !crc32fast::hash(&member);
        for entry in entries {
            member.push((state as u8) ^ entry as u8);
            state = state >> 8 ^ table[entry];
        }
        assert_eq!(crc32fast::hash(&member), WANTED);
        member
    };
    (0..count).map(member).collect()
}

/// A hostile client finds such members in no time.
#[test]
fn members_of_one_hash_are_drawn_from() {
    const COUNT: u32 = 400;
    let server = TestServer::start();
    let mut client = server.client();
    let words: Vec<Vec<u8>> = [b"SADD".to_vec(), b"s".to_vec()].into_iter().chain(members_of_one_hash(COUNT)).collect();
    assert_eq!(client.call(&words), int(i64::from(COUNT)));
    assert_eq!(members(client.say("SRANDMEMBER s 100")).len(), 100);
    assert_eq!(members(client.say("SPOP s 130")).len(), 130);
    let Value::Array(reply) = client.say("SSCAN s 0 COUNT 1") else { panic!("no array") };
    assert_eq!(members(reply[1].clone()).len(), 270);
}
