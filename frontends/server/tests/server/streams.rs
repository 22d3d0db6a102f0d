//! Commands on the entries of streams.

use crate::common::{TestServer, Value, array, bulk, error, int, ok};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";
const SMALL_ID: &str = "ERR The ID specified in XADD is equal or smaller than the target stream top item";

/// An entry in replies.
pub(crate) fn entry<const N: usize>(id: &str, texts: [&str; N]) -> Value {
    array([bulk(id), array(texts.map(bulk))])
}

/// The streams that XREAD and XREADGROUP reply with.
pub(crate) fn read<const N: usize>(key: &str, entries: [Value; N]) -> Value {
    array([array([bulk(key), array(entries)])])
}

#[test]
fn entries_are_added_in_id_order() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("XLEN s", int(0)),
        ("XADD s NOMKSTREAM 1-1 f v", Value::Null),
        ("EXISTS s", int(0)),
        ("XADD s 0-0 f v", error("ERR The ID specified in XADD must be greater than 0-0")),
        ("XADD s 5-1 f v g w", bulk("5-1")),
        ("XADD s 5-1 f v", error(SMALL_ID)),
        ("XADD s 4 f v", error(SMALL_ID)),
        ("XADD s 5-* f x", bulk("5-2")),
        ("XADD s 4-* f x", error(SMALL_ID)),
        ("XADD s 6-* f y", bulk("6-0")),
        ("XADD s 7 f z", bulk("7-0")),
        ("XADD s + f v", error(INVALID_ID)),
        ("XADD s 8 f", error("ERR wrong number of arguments for 'xadd' command")),
        ("XADD s NOMKSTREAM MAXLEN 5", error("ERR wrong number of arguments for 'xadd' command")),
        ("XLEN s", int(4)),
        ("TYPE s", Value::Simple("stream".into())),
        ("OBJECT ENCODING s", bulk("stream")),
        ("XRANGE s - +", {
            let entries = [("5-1", "v"), ("5-2", "x"), ("6-0", "y"), ("7-0", "z")];
            let mut entries = entries.map(|(id, value)| entry(id, ["f", value]));
            entries[0] = entry("5-1", ["f", "v", "g", "w"]);
            array(entries)
        }),
        ("XRANGE s 5 5", array([entry("5-1", ["f", "v", "g", "w"]), entry("5-2", ["f", "x"])])),
        ("XRANGE s (5-1 (7", array([entry("5-2", ["f", "x"]), entry("6-0", ["f", "y"]), entry("7-0", ["f", "z"])])),
        ("XRANGE s (5-1 (7-0", array([entry("5-2", ["f", "x"]), entry("6-0", ["f", "y"])])),
        ("XREVRANGE s + - COUNT 1", array([entry("7-0", ["f", "z"])])),
        ("XREVRANGE s 6 (5-1", array([entry("6-0", ["f", "y"]), entry("5-2", ["f", "x"])])),
        ("XRANGE s - + COUNT 0", Value::Null),
        ("XRANGE none - + COUNT 0", array([])),
        ("XRANGE s 9 8", array([])),
        ("XRANGE s (18446744073709551615-18446744073709551615 +", error("ERR invalid start ID for the interval")),
        ("XRANGE s - (0-0", error("ERR invalid end ID for the interval")),
        ("XRANGE s - x", error(INVALID_ID)),
        ("XRANGE s - + COUNT", error("ERR syntax error")),
        ("SET string x", ok()),
        ("XADD string * f v", error(WRONG_TYPE)),
        ("XLEN string", error(WRONG_TYPE)),
        ("XRANGE string - +", error(WRONG_TYPE)),
        ("GET s", error(WRONG_TYPE)),
        ("SADD s m", error(WRONG_TYPE)),
        ("XADD s 18446744073709551615-18446744073709551615 f v", bulk("18446744073709551615-18446744073709551615")),
        ("XADD s * f v", error("ERR The stream has exhausted the last possible ID, unable to add more items")),
    ]);
}

#[test]
fn entries_are_deleted_and_trimmed() {
    let server = TestServer::start();
    let mut client = server.client();
    for number in 1..=250 {
        client.say(&format!("XADD s {number} f v"));
    }
    client.converse([
        ("XDEL s 1 3-0 3 999", int(2)),
        ("XDEL s x", error(INVALID_ID)),
        ("XDEL none 1", int(0)),
        ("XLEN s", int(248)),
        ("XTRIM s MAXLEN 240", int(8)),
        ("XTRIM s MAXLEN = 240", int(0)),
        ("XTRIM s MINID 20", int(9)),
        // Whole nodes of 100 entries, of which the first one has lost some.
        ("XTRIM s MAXLEN ~ 100", int(81)),
        ("XTRIM s MAXLEN ~ 100", int(0)),
        ("XTRIM s MINID ~ 250-0 LIMIT 99", int(0)),
        ("XTRIM s MINID ~ 250-0 LIMIT 0", int(100)),
        ("XTRIM s MAXLEN ~ 0", int(50)),
        ("XLEN s", int(0)),
        ("EXISTS s", int(1)),
        ("XTRIM none MAXLEN 1", int(0)),
        ("XTRIM s MAXLEN -1", error("ERR The MAXLEN argument must be >= 0.")),
        ("XTRIM s MAXLEN x", error("ERR value is not an integer or out of range")),
        ("XTRIM s MAXLEN 1 LIMIT 1", error("ERR syntax error, LIMIT cannot be used without the special ~ option")),
        ("XTRIM s MAXLEN ~ 1 LIMIT -1", error("ERR The LIMIT argument must be >= 0.")),
        (
            "XTRIM s MAXLEN 1 MINID 1",
            error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible"),
        ),
        (
            "XADD s LIMIT 1 * f v",
            error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"),
        ),
        ("XTRIM s what 1", error("ERR syntax error")),
        // Ids go on after the last one.
        ("XADD s 250 f v", error(SMALL_ID)),
        ("XADD s MAXLEN 1 251 f a", bulk("251-0")),
        ("XADD s MAXLEN 1 252 f b", bulk("252-0")),
        ("XRANGE s - +", array([entry("252-0", ["f", "b"])])),
        ("XADD s MAXLEN 0 253 f c", bulk("253-0")),
        ("XADD t MINID 5 4 f c", bulk("4-0")),
        ("XLEN s", int(0)),
        ("XLEN t", int(0)),
        ("DEL s t", int(2)),
        ("XADD s 1 f v", bulk("1-0")),
    ]);
}

#[test]
fn last_ids_are_set() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("XSETID none 1", error("ERR no such key")),
        ("XADD s 5 f v", bulk("5-0")),
        ("XSETID s 4", error("ERR The ID specified in XSETID is smaller than the target stream top item")),
        ("XSETID s x", error(INVALID_ID)),
        ("XSETID s 9 ENTRIESADDED -1", error("ERR entries_added must be positive")),
        (
            "XSETID s 9 ENTRIESADDED 0",
            error("ERR The entries_added specified in XSETID is smaller than the target stream length"),
        ),
        (
            "XSETID s 9 MAXDELETEDID 10",
            error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"),
        ),
        ("XSETID s 9 ENTRIESADDED 7 MAXDELETEDID 3", ok()),
        ("XADD s 9 f v", error(SMALL_ID)),
        (
            "XINFO STREAM s",
            array([
                bulk("length"),
                int(1),
                bulk("radix-tree-keys"),
                int(1),
                bulk("radix-tree-nodes"),
                int(2),
                bulk("last-generated-id"),
                bulk("9-0"),
                bulk("max-deleted-entry-id"),
                bulk("3-0"),
                bulk("entries-added"),
                int(7),
                bulk("recorded-first-entry-id"),
                bulk("5-0"),
                bulk("groups"),
                int(0),
                bulk("first-entry"),
                entry("5-0", ["f", "v"]),
                bulk("last-entry"),
                entry("5-0", ["f", "v"]),
            ]),
        ),
    ]);
}

#[test]
fn streams_are_read_after_an_id() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("XADD a 1 f v", bulk("1-0")),
        ("XADD a 2 f w", bulk("2-0")),
        ("XADD b 7 f x", bulk("7-0")),
        ("XREAD STREAMS a none b 1 0 7", read("a", [entry("2-0", ["f", "w"])])),
        ("XREAD STREAMS a $", Value::Null),
        (
            "XREAD COUNT 1 STREAMS a b 0 0",
            array([
                array([bulk("a"), array([entry("1-0", ["f", "v"])])]),
                array([bulk("b"), array([entry("7-0", ["f", "x"])])]),
            ]),
        ),
        ("XREAD BLOCK 1 STREAMS a b $ 7", Value::Null),
        ("XREAD BLOCK x STREAMS a 0", error("ERR timeout is not an integer or out of range")),
        ("XREAD BLOCK -1 STREAMS a 0", error("ERR timeout is negative")),
        (
            "XREAD STREAMS a b 0",
            error("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."),
        ),
        ("XREAD COUNT 1 BLOCK 0", error("ERR syntax error")),
        (
            "XREAD GROUP g c STREAMS a 0",
            error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."),
        ),
        (
            "XREAD STREAMS a >",
            error(
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
            ),
        ),
        ("SET string x", ok()),
        ("XREAD STREAMS a string 0 0", error(WRONG_TYPE)),
        ("COMMAND GETKEYS XREAD COUNT 1 STREAMS a b 0 0", array([bulk("a"), bulk("b")])),
        ("MULTI", ok()),
        ("XREAD BLOCK 0 STREAMS a $", Value::Simple("QUEUED".into())),
        ("XADD a 3 f y", Value::Simple("QUEUED".into())),
        ("XREAD STREAMS a 2", Value::Simple("QUEUED".into())),
        ("EXEC", array([Value::Null, bulk("3-0"), read("a", [entry("3-0", ["f", "y"])])])),
    ]);
    let script = "return redis.call('xread', 'BLOCK', 0, 'STREAMS', 'a', '$')";
    let reply = client.call(&["EVAL", script, "0"]);
    let wanted = "xread command is not allowed with BLOCK option from scripts";
    assert!(matches!(&reply, Value::Error(text) if text.contains(wanted)), "{reply:?}");
    let script = "redis.call('XADD', 'a', '9-1', 'f', 'v') return redis.call('XRANGE', 'a', '9', '+')";
    assert_eq!(client.call(&["EVAL", script, "0"]), array([entry("9-1", ["f", "v"])]));
}

#[test]
fn keys_of_streams_are_those_of_collections() {
    let server = TestServer::start();
    let (mut client, mut watcher) = (server.client(), server.client());
    client.converse([
        ("XGROUP CREATE s g $ MKSTREAM", ok()),
        ("XADD s 1 f v", bulk("1-0")),
        ("XADD s 2 f w", bulk("2-0")),
        ("XREADGROUP GROUP g c STREAMS s >", read("s", [entry("1-0", ["f", "v"]), entry("2-0", ["f", "w"])])),
        ("COPY s t", int(1)),
        ("RENAME s u", ok()),
        ("XRANGE t 2 2", array([entry("2-0", ["f", "w"])])),
        ("XACK t g 1", int(1)),
        ("XPENDING t g", array([int(1), bulk("2-0"), bulk("2-0"), array([array([bulk("c"), bulk("1")])])])),
        ("XPENDING u g", { array([int(2), bulk("1-0"), bulk("2-0"), array([array([bulk("c"), bulk("2")])])]) }),
        ("SCAN 0 TYPE stream MATCH t COUNT 1000", array([bulk("0"), array([bulk("t")])])),
        ("EXPIRE t 100", int(1)),
        ("TTL t", int(100)),
        ("XADD t 3 f x", bulk("3-0")),
        ("TTL t", int(100)),
    ]);
    watcher.converse([("WATCH u", ok()), ("MULTI", ok()), ("PING", Value::Simple("QUEUED".into()))]);
    client.say("XADD u 9 f v");
    watcher.converse([("EXEC", Value::Null)]);
    let server = server.restarted();
    let mut client = server.client();
    client.converse([
        ("XLEN u", int(3)),
        ("XPENDING t g", array([int(1), bulk("2-0"), bulk("2-0"), array([array([bulk("c"), bulk("1")])])])),
        ("SET u x", ok()),
        ("GET u", bulk("x")),
        ("DEL t", int(1)),
        ("DBSIZE", int(1)),
    ]);
}

#[test]
fn changes_of_streams_are_announced() {
    let server = TestServer::start();
    let (mut client, mut subscriber) = (server.client(), server.client());
    client.say("CONFIG SET notify-keyspace-events Kt");
    subscriber.say("SUBSCRIBE __keyspace@0__:s");
    let lines = [
        ("XGROUP CREATE s g 0 MKSTREAM", &["xgroup-create"][..]),
        ("XADD s 1 f v", &["xadd"]),
        ("XADD s MAXLEN 1 2 f v", &["xadd", "xtrim"]),
        ("XREADGROUP GROUP g c STREAMS s >", &["xgroup-createconsumer"]),
        ("XGROUP CREATECONSUMER s g d", &["xgroup-createconsumer"]),
        ("XGROUP DELCONSUMER s g d", &["xgroup-delconsumer"]),
        ("XGROUP SETID s g 0", &["xgroup-setid"]),
        ("XCLAIM s g e 0 2", &["xgroup-createconsumer"]),
        ("XSETID s 9", &["xsetid"]),
        ("XDEL s 2", &["xdel"]),
        ("XADD s 10 f v", &["xadd"]),
        ("XTRIM s MAXLEN 0", &["xtrim"]),
        ("XGROUP DESTROY s g", &["xgroup-destroy"]),
    ];
    for (line, events) in lines {
        let reply = client.say(line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
        for event in events {
            let wanted = array([bulk("message"), bulk("__keyspace@0__:s"), bulk(event)]);
            assert_eq!(subscriber.reply(), wanted, "{line}");
        }
    }
}
