//! RANGE and PREFIX: keys in order.

use crate::common::{Client, TestServer, Value, bulk, error, ok};
use hikv::Options;
use server::Config;

/// Returns a client of a server that has `a`, `b/1`, `b/2`, `b/3`, `c` and one more key, of unusual bytes.
fn filled(server: &TestServer) -> Client {
    let mut client = server.client();
    for (key, value) in [("c", "4"), ("b/2", "32"), ("a", "1"), ("b/3", "33"), ("b/1", "31")] {
        assert_eq!(client.call(&["SET", key, value]), ok());
    }
    assert_eq!(client.call(&[b"SET", &b"\xff\0\r\n"[..], b"\0"]), ok());
    client
}

fn items(items: &[(&str, &str)]) -> Value {
    Value::Array(items.iter().flat_map(|(key, value)| [bulk(key), bulk(value)]).collect())
}

#[test]
fn both_ends_of_a_range_are_within() {
    let server = TestServer::start();
    let mut client = filled(&server);
    assert_eq!(client.say("RANGE b/2 c"), items(&[("b/2", "32"), ("b/3", "33"), ("c", "4")]));
    assert_eq!(client.say("range b/2 b/2"), items(&[("b/2", "32")]));
    assert_eq!(client.say("RANGE bb b"), items(&[]));
    assert_eq!(client.say("RANGE - b"), items(&[("a", "1")]));
    let Value::Array(upper) = client.say("RANGE c +") else { panic!("not an array") };
    assert_eq!(upper, [bulk("c"), bulk("4"), bulk(b"\xff\0\r\n"), bulk("\0")]);
    let Value::Array(all) = client.say("RANGE - +") else { panic!("not an array") };
    assert_eq!(all.len(), 12);
    for nothing in ["RANGE + -", "RANGE + +", "RANGE - -", "RANGE - + REV", "RANGE a b REV"] {
        assert_eq!(client.say(nothing), items(&[]), "{nothing}");
    }
}

#[test]
fn reverse_range_begins_at_upper_end() {
    let server = TestServer::start();
    let mut client = filled(&server);
    assert_eq!(client.say("RANGE b/2 - REV"), items(&[("b/2", "32"), ("b/1", "31"), ("a", "1")]));
    assert_eq!(client.say("RANGE c b/3 rev"), items(&[("c", "4"), ("b/3", "33")]));
    assert_eq!(client.say("PREFIX b/ LIMIT 2 REV"), items(&[("b/3", "33"), ("b/2", "32")]));
}

#[test]
fn prefix_and_limit() {
    let server = TestServer::start();
    let mut client = filled(&server);
    assert_eq!(client.say("PREFIX b/"), items(&[("b/1", "31"), ("b/2", "32"), ("b/3", "33")]));
    assert_eq!(client.say("prefix b/ limit 1"), items(&[("b/1", "31")]));
    assert_eq!(client.say("PREFIX b/ REV LIMIT 1"), items(&[("b/3", "33")]));
    assert_eq!(client.say("PREFIX d"), items(&[]));
    assert_eq!(client.say("RANGE - + LIMIT 0"), items(&[]));
    let Value::Array(all) = client.call(&["PREFIX", ""]) else { panic!("not an array") };
    assert_eq!(all.len(), 12);
}

/// The smallest key above another is that key followed by a zero byte.
#[test]
fn range_is_read_page_by_page() {
    let server = TestServer::start();
    let mut client = server.client();
    let keys: Vec<String> = (0..1_000).map(|number| format!("key-{number:04}")).collect();
    keys.iter().for_each(|key| assert_eq!(client.call(&["SET", key, "v"]), ok()));
    let (mut from, mut seen) = (b"-".to_vec(), Vec::new());
    loop {
        let Value::Array(page) = client.call(&[b"RANGE", &from[..], b"+", b"LIMIT", b"70"]) else { panic!("no array") };
        let Some(Value::Bulk(last)) = page.iter().rev().nth(1) else { break };
        from = [last, &b"\0"[..]].concat();
        seen.extend(page.into_iter().step_by(2));
    }
    assert!(seen.into_iter().eq(keys.iter().map(bulk)));
}

#[test]
fn range_sees_acknowledged_writes() {
    let server = TestServer::start();
    let (mut writer, mut reader) = (server.client(), server.client());
    for number in 0..500 {
        assert_eq!(writer.say(&format!("SET k v{number}")), ok());
        assert_eq!(reader.say("PREFIX k"), items(&[("k", &format!("v{number}"))]));
    }
    assert_eq!(writer.say("FLUSHALL"), ok());
    assert_eq!(reader.say("RANGE - +"), items(&[]));
}

#[test]
fn wrong_arguments_are_refused() {
    let server = TestServer::start();
    let mut client = server.client();
    for (request, text) in [
        ("RANGE a", "ERR wrong number of arguments for 'range' command"),
        ("PREFIX", "ERR wrong number of arguments for 'prefix' command"),
        ("RANGE a b LIMIT", "ERR syntax error"),
        ("RANGE a b COUNT 1", "ERR syntax error"),
        ("PREFIX a b", "ERR syntax error"),
        ("RANGE a b LIMIT x", "ERR value is not an integer or out of range"),
        ("PREFIX a LIMIT -1", "ERR value is out of range, must be positive"),
    ] {
        assert_eq!(client.say(request), error(text), "{request}");
    }
}

#[test]
fn oversized_range_reply_is_refused() {
    let server = TestServer::start();
    let mut client = server.client();
    for key in ["a", "b", "c"] {
        server.store.put(key, vec![b'v'; 30 << 20]).expect("a large value is stored");
    }
    let Value::Error(text) = client.say("RANGE - +") else { panic!("not an error") };
    assert!(text.contains("67108864 bytes") && text.contains("LIMIT"), "{text}");
    let Value::Array(two) = client.say("RANGE - + LIMIT 2") else { panic!("not an array") };
    assert_eq!(two.len(), 4);
    server.store.put("a", vec![b'v'; 70 << 20]).expect("a larger value is stored");
    let Value::Array(one) = client.say("RANGE - + LIMIT 1") else { panic!("not an array") };
    assert!(one[1] == Value::Bulk(vec![b'v'; 70 << 20]));
}

/// No thread works in the background here, so the order exists only after the test builds it.
#[test]
fn early_range_is_refused_points_are_served() {
    let options = Options::new().background(false);
    let server = TestServer::of(&options, Config { threads: 1, ..Config::default() });
    let mut client = server.client();
    for number in 0..20_000u32 {
        server.store.put(number.to_be_bytes(), "v").expect("an item is stored");
    }
    for request in ["RANGE - + LIMIT 1", "PREFIX a"] {
        let Value::Error(text) = client.say(request) else { panic!("not an error") };
        assert!(text.starts_with("LOADING ") && text.contains(" steps are done"), "{text}");
    }
    assert_eq!(client.say("SET k v"), ok());
    assert_eq!(client.say("GET k"), bulk("v"));
    assert_eq!(order_of(&mut client), "building");
    server.store.ordered().expect("order is kept").wait_until_ready(|_| {}).expect("the order is built");
    assert_eq!(client.say("PREFIX k"), items(&[("k", "v")]));
    assert_eq!(order_of(&mut client), "ready");
}

fn order_of(client: &mut Client) -> String {
    let Value::Bulk(text) = client.say("INFO order") else { panic!("not a text") };
    let text = String::from_utf8(text).expect("INFO is text");
    text.lines().find_map(|line| line.strip_prefix("order:")).expect("the order is reported").into()
}

#[test]
fn store_without_order_has_no_ranges() {
    let server = TestServer::of(&Options::new().ordered(false), Config { threads: 1, ..Config::default() });
    let mut client = server.client();
    assert_eq!(
        client.say("RANGE - +"),
        error("ERR the store was opened without order; open it with `Options::ordered` to read ranges")
    );
    assert_eq!(client.say("SET k v"), ok());
    assert_eq!(order_of(&mut client), "none");
}
