//! SCAN: every key, part by part.

use std::collections::BTreeSet;

use crate::common::{Client, TestServer, Value, error, ok};

/// Returns a call's next cursor, and its keys.
fn step(client: &mut Client, cursor: &str, options: &[&str]) -> (String, Vec<Vec<u8>>) {
    let Value::Array(reply) = client.call(&[&["SCAN", cursor], options].concat()) else { panic!("not an array") };
    let [Value::Bulk(cursor), Value::Array(keys)] = &reply[..] else { panic!("not a cursor and keys: {reply:?}") };
    let key = |key: &Value| match key {
        Value::Bulk(key) => key.clone(),
        other => panic!("not a key: {other:?}"),
    };
    (String::from_utf8(cursor.clone()).expect("a cursor is text"), keys.iter().map(key).collect())
}

/// Returns all keys of a scan from `cursor` to its end, each once.
fn rest(client: &mut Client, cursor: &str, options: &[&str]) -> BTreeSet<Vec<u8>> {
    let (mut cursor, mut all) = (cursor.to_owned(), BTreeSet::new());
    loop {
        let (next, keys) = step(client, &cursor, options);
        keys.into_iter().for_each(|key| assert!(all.insert(key), "a key came twice"));
        if next == "0" {
            return all;
        }
        cursor = next;
    }
}

fn fill(server: &TestServer, numbers: std::ops::Range<u32>) -> BTreeSet<Vec<u8>> {
    let keys: BTreeSet<Vec<u8>> = numbers.map(|number| format!("key:{number}").into_bytes()).collect();
    keys.iter().for_each(|key| server.store.put(key, "v").expect("an item is stored"));
    keys
}

#[test]
fn every_key_comes_once() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(rest(&mut client, "0", &[]), BTreeSet::new());
    let keys = fill(&server, 0..5_000);
    assert_eq!(rest(&mut client, "0", &[]), keys);
    assert_eq!(rest(&mut client, "0", &["COUNT", "1000000"]), keys);
    assert_ne!(step(&mut client, "0", &["COUNT", "1"]).0, "0", "a part is less than all");
}

#[test]
fn cursor_survives_growth_and_restart() {
    let server = TestServer::start();
    let keys = fill(&server, 0..5_000);
    let mut client = server.client();
    let (cursor, mut seen) = step(&mut client, "0", &["COUNT", "500"]);
    fill(&server, 5_000..60_000);
    let (cursor, more) = step(&mut client, &cursor, &["COUNT", "500"]);
    seen.extend(more);
    let server = server.restarted();
    let rest = rest(&mut server.client(), &cursor, &[]);
    assert!(seen.iter().all(|key| !rest.contains(key)), "a key came twice");
    let found: BTreeSet<_> = rest.into_iter().chain(seen).collect();
    assert!(found.is_superset(&keys), "a key was left out");
}

#[test]
fn only_matching_keys_come() {
    let server = TestServer::start();
    fill(&server, 0..3_000);
    let mut client = server.client();
    assert_eq!(client.call(&[b"SET", &b"\xff[\n"[..], b"v"]), ok());
    let names = |keys: BTreeSet<Vec<u8>>| keys.into_iter().map(|key| String::from_utf8(key).expect("text")).collect();
    let found: Vec<String> = names(rest(&mut client, "0", &["MATCH", "key:12[3-4]?", "COUNT", "100"]));
    let expected: Vec<String> = (1_230..1_250).map(|number| format!("key:{number}")).collect();
    assert_eq!(found, expected);
    let Value::Array(unusual) = client.call(&[&b"SCAN"[..], b"0", b"match", b"\xff\\[*", b"count", b"16384"]) else {
        panic!("not an array")
    };
    assert_eq!(unusual[1], Value::Array(vec![Value::Bulk(b"\xff[\n".to_vec())]));
}

#[test]
fn wrong_arguments_are_refused() {
    let server = TestServer::start();
    let mut client = server.client();
    for (request, text) in [
        ("SCAN", "ERR wrong number of arguments for 'scan' command"),
        ("SCAN x", "ERR invalid cursor"),
        ("SCAN -1", "ERR invalid cursor"),
        ("SCAN +1", "ERR invalid cursor"),
        ("SCAN ''", "ERR invalid cursor"),
        ("SCAN 18446744073709551616", "ERR invalid cursor"),
        ("SCAN 0 MATCH", "ERR syntax error"),
        ("SCAN 0 COUNT 0", "ERR syntax error"),
        ("SCAN 0 COUNT x", "ERR value is not an integer or out of range"),
        ("SCAN 0 LIMIT 1", "ERR syntax error"),
        ("SCAN 0 TYPE", "ERR syntax error"),
    ] {
        assert_eq!(client.say(request), error(text), "{request}");
    }
}

#[test]
fn invented_cursor_is_harmless() {
    let server = TestServer::start();
    let keys = fill(&server, 0..3_000);
    let mut client = server.client();
    for cursor in ["1", "18446744073709551615", "9223372036854775808", "1234567890123456789"] {
        assert!(rest(&mut client, cursor, &[]).is_subset(&keys), "{cursor}");
    }
}
