//! Grouped SETs behave like single ones.

use hikv::{Durability, Options};
use server::Config;

use crate::common::{TestServer, Value, array, bulk, encode, error, int, ok};

fn sets(items: &[(&str, &str)]) -> Vec<u8> {
    items.iter().flat_map(|(key, value)| encode(&["SET", key, value])).collect()
}

#[test]
fn last_value_of_a_key_stays() {
    let server = TestServer::start();
    let mut client = server.client();
    let items: Vec<(String, String)> = (0..1_000).map(|i| (format!("k{}", i % 7), i.to_string())).collect();
    let items: Vec<(&str, &str)> = items.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    client.send(&sets(&items));
    (0..items.len()).for_each(|_| assert_eq!(client.reply(), ok()));
    for (key, value) in &items[993..] {
        assert_eq!(client.call(&["GET", key]), bulk(value));
    }
}

#[test]
fn reads_between_writes_see_earlier_ones() {
    let server = TestServer::start();
    let mut client = server.client();
    let turn = |i: usize| {
        let value = i.to_string();
        [sets(&[("a", &value), ("b", &value), ("a", "x")]), encode(&["MGET", "a", "b"]), sets(&[("a", &value)])]
            .concat()
    };
    client.send(&(0..100).flat_map(turn).collect::<Vec<u8>>());
    for i in 0..100 {
        (0..3).for_each(|_| assert_eq!(client.reply(), ok()));
        assert_eq!(client.reply(), array([bulk("x"), bulk(i.to_string())]));
        assert_eq!(client.reply(), ok());
    }
}

#[test]
fn one_that_is_refused_spoils_no_other() {
    let server = TestServer::start();
    let mut client = server.client();
    let long = "x".repeat(65_536);
    let mixed = [sets(&[("a", "1"), (&long, "2"), ("b", "3")]), encode(&["SET", "c"]), sets(&[("d", "4"), ("e", "5")])];
    client.send(&mixed.concat());
    assert_eq!(client.reply(), ok());
    assert_eq!(client.reply(), error("ERR the key has 65536 bytes; the limit is 65535"));
    assert_eq!(client.reply(), ok());
    assert_eq!(client.reply(), error("ERR wrong number of arguments for 'set' command"));
    assert_eq!((client.reply(), client.reply()), (ok(), ok()));
    assert_eq!(client.say("MGET a b d e"), array(["1", "3", "4", "5"].map(bulk)));
}

/// The other SETs of the group are executed, exactly once: a repetition would overwrite values that other clients have
/// written.
#[test]
fn failed_put_spoils_no_other() {
    let options = Options::new().region_bytes_max(16 << 20).durability(Durability::Buffered);
    let server = TestServer::of(&options, Config { threads: 1, ..Config::default() });
    let (ordered, mut client) = (server.store.ordered().expect("order is kept"), server.client());
    client.converse([("MSET a 0 b 0", ok())]);
    ordered.wait_until_ready(|_| {}).expect("it is built");
    for len_bytes in [30_000, 4_000] {
        let value = "x".repeat(len_bytes);
        (0..).find(|number| client.call(&["SET", &format!("{len_bytes}:{number}"), &value]) != ok());
    }
    let change_count = || {
        ordered.first().expect("all changes are applied");
        server.store.background().queue_stats().expect("this process has opened it").applied_count
    };
    let before = change_count();
    client.send(&sets(&[("a", "1"), ("c", &"x".repeat(4_000)), ("b", "2")]));
    assert_eq!(client.reply(), ok());
    let Value::Error(text) = client.reply() else { panic!("there is no room") };
    assert!(text.starts_with("ERR no space left"), "{text}");
    assert_eq!(client.reply(), ok());
    assert_eq!(client.say("MGET a b c"), array([bulk("1"), bulk("2"), Value::Null]));
    assert_eq!(change_count() - before, 2);
}

#[test]
fn each_needs_the_right_to_its_key() {
    let server = TestServer::start();
    let (mut first, mut client) = (server.client(), server.client());
    first.converse([("ACL SETUSER ann on nopass ~mine:* +set", ok())]);
    client.converse([("AUTH ann any", ok())]);
    client.send(&sets(&[("mine:1", "v"), ("mine:2", "v"), ("other", "v"), ("mine:3", "v")]));
    assert_eq!((client.reply(), client.reply()), (ok(), ok()));
    let denied = "NOPERM this user has no permissions to access one of the keys used as arguments";
    assert_eq!(client.reply(), error(denied));
    assert_eq!(client.reply(), ok());
    assert_eq!(first.say("EXISTS mine:1 mine:2 other mine:3"), int(3));
}

#[test]
fn events_reach_subscribers_and_watchers() {
    let server = TestServer::start();
    let (mut listener, mut watcher, mut client) = (server.client(), server.client(), server.client());
    client.converse([("CONFIG SET notify-keyspace-events E$", ok())]);
    listener.say("SUBSCRIBE __keyevent@0__:set");
    watcher.converse([("WATCH b", ok()), ("MULTI", ok())]);
    client.send(&sets(&[("a", "1"), ("b", "2"), ("c", "3")]));
    (0..3).for_each(|_| assert_eq!(client.reply(), ok()));
    for key in ["a", "b", "c"] {
        let said = array([bulk("message"), bulk("__keyevent@0__:set"), bulk(key)]);
        assert_eq!(listener.reply(), said);
    }
    assert_eq!(watcher.say("EXEC"), Value::Null);
}

#[test]
fn first_used_database_returns() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("SELECT 5", ok())]);
    client.send(&sets(&[("a", "1"), ("b", "2")]));
    assert_eq!((client.reply(), client.reply()), (ok(), ok()));
    drop(client);
    let server = server.restarted();
    let mut client = server.client();
    client.converse([("SELECT 5", ok()), ("MGET a b", array([bulk("1"), bulk("2")])), ("SELECT 0", ok())]);
    assert_eq!(client.say("DBSIZE"), int(0));
}
