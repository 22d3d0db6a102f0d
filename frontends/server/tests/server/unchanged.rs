//! Writes without effect: no watcher, subscriber or counter notices them, as in Redis.

use crate::common::{Client, TestServer, Value, array, ok};

/// Commands that set up the keys, and a command that changes nothing of these.
const UNCHANGING: &[(&[&str], &str)] = &[
    (&["SET k a"], "SETBIT k 0 0"),
    (&["SET k a"], "SETBIT k 1 1"),
    (&["SET k a"], "BITFIELD k SET u8 0 97"),
    (&["SET k a"], "BITFIELD k INCRBY u8 0 0"),
    (&["SET k a"], "BITFIELD k GET u8 0"),
    (&["SET k a"], "BITFIELD k OVERFLOW FAIL INCRBY u8 0 200"),
    (&["SET k a"], "BITFIELD k OVERFLOW FAIL SET u4 0 16 GET u8 0"),
    (&["SET k a"], "GETEX k PERSIST"),
    (&["SET k a EX 100"], "GETEX k"),
    (&["SET k a"], "PERSIST k"),
    (&["SET k a"], "SETRANGE k 9 ''"),
    (&["SET k a"], "EXPIRE k 100 XX"),
    (&["SET k a EX 100"], "EXPIRE k 200 NX"),
    (&["SET k a"], "SET k b NX"),
    (&["SET k a"], "SETNX k b"),
    (&["SET k a"], "MSETNX k b j c"),
    (&["SET k a"], "RENAME k k"),
    (&["SET k a", "SET j b"], "RENAMENX j k"),
    (&["SET k a", "SET j b"], "COPY j k"),
    (&["SET k a"], "CAS k b c"),
    (&[], "SET k b XX"),
    (&[], "DEL k"),
    (&[], "UNLINK k"),
    (&[], "GETDEL k"),
    (&[], "GETEX k EX 100"),
    (&[], "EXPIRE k 100"),
    (&[], "MOVE k 1"),
    (&[], "COPY k j"),
    (&[], "BITOP AND k j"),
    (&[], "BITFIELD k GET u8 0"),
];

/// Commands that set up the keys, and a command that counts as a change in Redis even if the value stays equal.
const CHANGING: &[(&[&str], &str)] = &[
    (&[], "SETBIT k 0 0"),
    (&["SET k a"], "SETBIT k 8 0"),
    (&["SET k a"], "SETBIT k 0 1"),
    (&["SET k a"], "BITFIELD k SET u8 8 0"),
    (&["SET k a"], "BITFIELD k SET u8 0 1 SET u8 0 97"),
    (&["SET k a EX 100"], "GETEX k PERSIST"),
    (&["SET k a"], "GETEX k EX 100"),
    (&["SET k a"], "APPEND k ''"),
    (&["SET k a"], "SETRANGE k 0 a"),
    (&["SET k a"], "SET k a"),
    (&["SET k 1"], "INCRBY k 0"),
    (&["SET k a"], "CAS k a a"),
];

struct Scene {
    client: Client,
    watcher: Client,
    listener: Client,
    _server: TestServer,
}

impl Scene {
    fn new() -> Scene {
        let server = TestServer::start();
        let (mut client, mut listener) = (server.client(), server.client());
        assert_eq!(client.say("CONFIG SET notify-keyspace-events KEA"), ok());
        assert!(matches!(listener.say("PSUBSCRIBE *"), Value::Array(_)));
        Scene { client, watcher: server.client(), listener, _server: server }
    }

    fn change_count(&mut self) -> String {
        let Value::Bulk(text) = self.client.say("INFO persistence") else { panic!("not a text") };
        let text = String::from_utf8(text).expect("a text");
        let line = text.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
        line.expect("it is listed").to_owned()
    }

    /// Returns the number of messages before the one of this name.
    fn messages_before(&mut self, mark: &str) -> usize {
        assert_eq!(self.client.say(&format!("PUBLISH {mark} 1")), Value::Integer(1));
        let is_mark = |message: &Value| format!("{message:?}").contains(mark);
        std::iter::from_fn(|| Some(self.listener.reply())).take_while(|message| !is_mark(message)).count()
    }

    /// Returns whether watchers, listeners and the counter of changes noticed the command.
    fn heard(&mut self, before: &[&str], command: &str) -> [bool; 3] {
        self.client.say("FLUSHALL");
        before.iter().for_each(|line| assert_eq!(self.client.say(line), ok(), "{line}"));
        self.messages_before("mark-1");
        self.watcher.converse([("WATCH k", ok()), ("MULTI", ok()), ("PING", Value::Simple("QUEUED".into()))]);
        let count = self.change_count();
        let reply = self.client.say(command);
        assert!(!matches!(reply, Value::Error(_)), "{command}: {reply:?}");
        let is_counted = self.change_count() != count;
        let is_watched = self.watcher.say("EXEC") != array([Value::Simple("PONG".into())]);
        [is_watched, self.messages_before("mark-2") > 0, is_counted]
    }
}

#[test]
fn writes_that_change_nothing_are_silent() {
    let mut scene = Scene::new();
    for (before, command) in UNCHANGING {
        assert_eq!(scene.heard(before, command), [false; 3], "{command} after {before:?}");
    }
}

#[test]
fn writes_that_redis_counts_are_heard() {
    let mut scene = Scene::new();
    for (before, command) in CHANGING {
        assert_eq!(scene.heard(before, command), [true; 3], "{command} after {before:?}");
    }
}

/// Each change of a request counts, and a transaction's when it is written.
#[test]
fn changes_are_counted_as_redis_counts_them() {
    let mut scene = Scene::new();
    let mut expected = scene.change_count().parse::<u64>().expect("a number");
    for (command, count) in [
        ("MSET a 1 b 2 c 3", 3),
        ("SET a 1 EX 100", 1),
        ("RENAME a d", 1),
        ("DEL b c nothing", 2),
        ("BITFIELD f SET u8 0 1 SET u8 0 2", 2),
        ("GET d", 0),
        ("MULTI", 0),
        ("MSET a 1 b 2", 0),
        ("EXEC", 2),
    ] {
        let reply = scene.client.say(command);
        assert!(!matches!(reply, Value::Error(_)), "{command}: {reply:?}");
        // Not in a transaction, which would queue INFO.
        if !matches!(reply, Value::Simple(ref text) if text == "QUEUED") && command != "MULTI" {
            expected += count;
            assert_eq!(scene.change_count(), expected.to_string(), "{command}");
        }
    }
}
