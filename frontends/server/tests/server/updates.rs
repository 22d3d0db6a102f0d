//! Grouped INCRs and their variants behave like single ones.

use crate::common::{TestServer, Value, array, bulk, encode, error, int, ok};

const NO_INTEGER: &str = "ERR value is not an integer or out of range";

fn all(requests: &[&[&str]]) -> Vec<u8> {
    requests.iter().flat_map(|request| encode(request)).collect()
}

#[test]
fn increments_of_one_key_keep_order() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&encode(&["INCR", "n"]).repeat(1_000));
    (1..=1_000).for_each(|sum| assert_eq!(client.reply(), int(sum)));
    client.send(&all(&[&["DECRBY", "n", "3"], &["DECRBY", "n", "7"], &["incrby", "n", "10"], &["INCRBY", "m", "-5"]]));
    [997, 990, 1_000, -5].into_iter().for_each(|sum| assert_eq!(client.reply(), int(sum)));
    assert_eq!(client.say("MGET n m"), array([bulk("1000"), bulk("-5")]));
}

#[test]
fn one_that_is_refused_spoils_no_other() {
    let server = TestServer::start();
    let mut client = server.client();
    let (long, max) = ("x".repeat(65_536), i64::MAX.to_string());
    client.converse([("SET text abc", ok())]);
    let keys = ["a", "text", "b", &long, "a"];
    client.send(&keys.iter().flat_map(|key| encode(&["INCR", key])).collect::<Vec<_>>());
    assert_eq!(client.reply(), int(1));
    assert_eq!(client.reply(), error(NO_INTEGER));
    assert_eq!(client.reply(), int(1));
    assert_eq!(client.reply(), error("ERR the key has 65536 bytes; the limit is 65535"));
    assert_eq!(client.reply(), int(2));
    client.send(&all(&[&["INCRBY", "a", "x"], &["INCRBY", "a", &max], &["INCRBY", "a", "1"], &["INCR"]]));
    assert_eq!(client.reply(), error(NO_INTEGER));
    assert_eq!(client.reply(), error("ERR increment or decrement would overflow"));
    assert_eq!(client.reply(), int(3));
    assert_eq!(client.reply(), error("ERR wrong number of arguments for 'incr' command"));
    for (section, counts) in [("errorstats", "errorstat_ERR:count=5"), ("commandstats", "cmdstat_incr:calls=5")] {
        let Value::Bulk(figures) = client.call(&["INFO", section]) else { panic!("a reply of another kind") };
        let figures = String::from_utf8(figures).expect("it is text");
        assert!(figures.contains(counts), "{figures}");
    }
}

#[test]
fn each_needs_the_right_to_its_key() {
    let server = TestServer::start();
    let (mut first, mut client) = (server.client(), server.client());
    first.converse([("ACL SETUSER ann on nopass ~mine:* +incr", ok())]);
    client.converse([("AUTH ann any", ok())]);
    client.send(&all(&[&["INCR", "mine:1"], &["INCR", "mine:1"], &["INCR", "other"], &["INCR", "mine:1"]]));
    assert_eq!((client.reply(), client.reply()), (int(1), int(2)));
    let denied = "NOPERM this user has no permissions to access one of the keys used as arguments";
    assert_eq!(client.reply(), error(denied));
    assert_eq!(client.reply(), int(3));
    assert_eq!(first.say("EXISTS mine:1 other"), int(1));
}

#[test]
fn events_reach_subscribers_and_watchers() {
    let server = TestServer::start();
    let (mut listener, mut watcher, mut client) = (server.client(), server.client(), server.client());
    client.converse([("CONFIG SET notify-keyspace-events E$", ok())]);
    listener.say("SUBSCRIBE __keyevent@0__:incrby");
    watcher.converse([("WATCH b", ok()), ("MULTI", ok())]);
    client.send(&all(&[&["DECR", "a"], &["DECR", "b"], &["DECR", "c"]]));
    (0..3).for_each(|_| assert_eq!(client.reply(), int(-1)));
    for key in ["a", "b", "c"] {
        let message = array([bulk("message"), bulk("__keyevent@0__:incrby"), bulk(key)]);
        assert_eq!(listener.reply(), message);
    }
    assert_eq!(watcher.say("EXEC"), Value::Null);
}

#[test]
fn they_are_queued_in_a_transaction() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&all(&[&["MULTI"], &["INCR", "a"], &["INCR", "a"], &["EXEC"], &["INCR", "a"], &["INCR", "a"]]));
    assert_eq!(client.reply(), ok());
    (0..2).for_each(|_| assert_eq!(client.reply(), Value::Simple("QUEUED".into())));
    assert_eq!(client.reply(), array([int(1), int(2)]));
    assert_eq!((client.reply(), client.reply()), (int(3), int(4)));
}
