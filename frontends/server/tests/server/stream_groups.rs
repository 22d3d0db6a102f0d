//! Consumer groups of streams.

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};
use crate::streams::{entry, read};

const NO_KEY: &str = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
                      MKSTREAM option to create an empty stream automatically.";
const NO_GROUP: &str = "NOGROUP No such key 's' or consumer group 'x'";

/// Returns a client of a server with the entries 1 to 4 in `s`, and the group `g`.
fn with_group(server: &TestServer) -> Client {
    let mut client = server.client();
    for number in 1..=4 {
        client.say(&format!("XADD s {number} f v{number}"));
    }
    client.converse([("XGROUP CREATE s g 0", ok())]);
    client
}

fn entry_of(number: u64) -> Value {
    entry(&format!("{number}-0"), ["f", &format!("v{number}")])
}

/// Returns the id, the consumer and the number of deliveries of each pending entry.
fn pending(client: &mut Client, line: &str) -> Vec<(String, String, i64)> {
    let Value::Array(entries) = client.say(line) else { panic!("{line}") };
    let text = |value: &Value| match value {
        Value::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?}"),
    };
    let parts = |entry: Value| match entry {
        Value::Array(parts) => match &parts[..] {
            [id, consumer, Value::Integer(_), Value::Integer(count)] => (text(id), text(consumer), *count),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    entries.into_iter().map(parts).collect()
}

fn owned(entries: &[(&str, &str, i64)]) -> Vec<(String, String, i64)> {
    entries.iter().map(|(id, consumer, count)| ((*id).into(), (*consumer).into(), *count)).collect()
}

#[test]
fn groups_are_made_and_removed() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("XGROUP CREATE s g $", error(NO_KEY)),
        ("XGROUP SETID s g $", error(NO_KEY)),
        ("XGROUP CREATE s g $ MKSTREAM", ok()),
        ("XLEN s", int(0)),
        ("XGROUP CREATE s g $", error("BUSYGROUP Consumer Group name already exists")),
        ("XGROUP CREATE s h 0 ENTRIESREAD 3", ok()),
        ("XGROUP CREATE s i 0 ENTRIESREAD -2", error("ERR value for ENTRIESREAD must be positive or -1")),
        (
            "XGROUP CREATE s i 0 WHAT",
            error("ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP."),
        ),
        ("XGROUP CREATE s i x", error("ERR Invalid stream ID specified as stream command argument")),
        ("XGROUP CREATECONSUMER s g c", int(1)),
        ("XGROUP CREATECONSUMER s g c", int(0)),
        ("XGROUP CREATECONSUMER s x c", error("NOGROUP No such consumer group 'x' for key name 's'")),
        ("XGROUP DELCONSUMER s g none", int(0)),
        ("XGROUP DELCONSUMER s g c", int(0)),
        ("XGROUP SETID s x 0", error("NOGROUP No such consumer group 'x' for key name 's'")),
        ("XGROUP DESTROY s x", int(0)),
        ("XGROUP DESTROY s g", int(1)),
        ("XGROUP DESTROY none g", error(NO_KEY)),
        ("XACK s g 1", int(0)),
        ("XACK none g x", int(0)),
        ("XPENDING s x", error(NO_GROUP)),
        ("XCLAIM s x c 0 1", error(NO_GROUP)),
        ("XAUTOCLAIM s x c 0 1", error(NO_GROUP)),
        (
            "XREADGROUP GROUP x c STREAMS s >",
            error("NOGROUP No such key 's' or consumer group 'x' in XREADGROUP with GROUP option"),
        ),
        ("XREADGROUP NOACK COUNT 1 BLOCK 1 STREAMS s >", error("ERR Missing GROUP option for XREADGROUP")),
        ("XINFO CONSUMERS s x", error("NOGROUP No such consumer group 'x' for key name 's'")),
        ("XINFO GROUPS none", error("ERR no such key")),
        (
            "XINFO GROUPS s",
            array([array([
                bulk("name"),
                bulk("h"),
                bulk("consumers"),
                int(0),
                bulk("pending"),
                int(0),
                bulk("last-delivered-id"),
                bulk("0-0"),
                bulk("entries-read"),
                int(3),
                bulk("lag"),
                int(0),
            ])]),
        ),
        ("DEL s", int(1)),
        ("DBSIZE", int(0)),
    ]);
}

#[test]
fn entries_are_delivered_once_and_acknowledged() {
    let server = TestServer::start();
    let mut client = with_group(&server);
    client.converse([
        ("XREADGROUP GROUP g one COUNT 2 STREAMS s >", read("s", [entry_of(1), entry_of(2)])),
        ("XREADGROUP GROUP g two COUNT 1 STREAMS s >", read("s", [entry_of(3)])),
        ("XREADGROUP GROUP g two NOACK STREAMS s >", read("s", [entry_of(4)])),
        ("XREADGROUP GROUP g two STREAMS s >", Value::Null),
        ("XREADGROUP GROUP g one STREAMS s 1", read("s", [entry_of(2)])),
        ("XREADGROUP GROUP g three STREAMS s 0", read("s", [])),
        ("XDEL s 2", int(1)),
        ("XREADGROUP GROUP g one STREAMS s 0", read("s", [entry_of(1), array([bulk("2-0"), Value::Null])])),
    ]);
    let all = owned(&[("1-0", "one", 2), ("2-0", "one", 2), ("3-0", "two", 1)]);
    assert_eq!(pending(&mut client, "XPENDING s g - + 10"), all);
    assert_eq!(pending(&mut client, "XPENDING s g IDLE 0 - + 10"), all);
    assert_eq!(pending(&mut client, "XPENDING s g (1 3 10"), all[1..]);
    assert_eq!(pending(&mut client, "XPENDING s g - + 1"), all[..1]);
    assert_eq!(pending(&mut client, "XPENDING s g - + 10 two"), all[2..]);
    assert_eq!(pending(&mut client, "XPENDING s g IDLE 10000000 - + 10"), []);
    client.converse([
        ("XPENDING s g - + 10 none", array([])),
        ("XPENDING s g - +", error("ERR syntax error")),
        ("XPENDING s g IDLE 1 - +", error("ERR syntax error")),
        ("XPENDING s g - + x", error("ERR value is not an integer or out of range")),
        (
            "XPENDING s g",
            array([
                int(3),
                bulk("1-0"),
                bulk("3-0"),
                array([array([bulk("one"), bulk("2")]), array([bulk("two"), bulk("1")])]),
            ]),
        ),
        ("XACK s g 1 x", error("ERR Invalid stream ID specified as stream command argument")),
        ("XACK s g 1 1 9", int(1)),
        ("XGROUP DELCONSUMER s g one", int(1)),
        ("XPENDING s g", array([int(1), bulk("3-0"), bulk("3-0"), array([array([bulk("two"), bulk("1")])])])),
        ("XACK s g 3", int(1)),
        ("XPENDING s g", array([int(0), Value::Null, Value::Null, Value::Null])),
        // The group reads again from here on; another consumer takes what is pending.
        ("XGROUP SETID s g 2", ok()),
        ("XREADGROUP GROUP g one COUNT 1 STREAMS s >", read("s", [entry_of(3)])),
        ("XGROUP SETID s g 2", ok()),
        ("XREADGROUP GROUP g two STREAMS s s > >", read("s", [entry_of(3), entry_of(4)])),
    ]);
    assert_eq!(pending(&mut client, "XPENDING s g - + 10"), owned(&[("3-0", "two", 1), ("4-0", "two", 1)]));
    client.converse([("XGROUP DESTROY s g", int(1)), ("DEL s", int(1))]);
}

#[test]
fn entries_are_claimed() {
    let server = TestServer::start();
    let mut client = with_group(&server);
    client.say("XREADGROUP GROUP g one COUNT 3 STREAMS s >");
    client.converse([
        ("XCLAIM s g two 10000000 1 2 3", array([])),
        ("XCLAIM s g two 0 1 9", array([entry_of(1)])),
        ("XCLAIM s g two 0 2 JUSTID", array([bulk("2-0")])),
        ("XCLAIM s g two 0 4", array([])),
        ("XCLAIM s g two 0 4 FORCE RETRYCOUNT 7 IDLE 5000 LASTID 4", array([entry_of(4)])),
        ("XCLAIM s g two x 4", error("ERR Invalid min-idle-time argument for XCLAIM")),
        ("XCLAIM s g two 0 4 IDLE x", error("ERR Invalid IDLE option argument for XCLAIM")),
        ("XCLAIM s g two 0 4 what", error("ERR Unrecognized XCLAIM option 'what'")),
        ("XREADGROUP GROUP g two STREAMS s >", Value::Null),
    ]);
    let wanted = owned(&[("1-0", "two", 2), ("2-0", "two", 1), ("3-0", "one", 1), ("4-0", "two", 7)]);
    assert_eq!(pending(&mut client, "XPENDING s g - + 10"), wanted);
    assert_eq!(pending(&mut client, "XPENDING s g IDLE 4000 - + 10"), wanted[3..]);
    client.converse([
        ("XDEL s 2 3", int(2)),
        ("XCLAIM s g one 0 3", array([])),
        ("XAUTOCLAIM s g three 0 - COUNT 2", array([bulk("4-0"), array([entry_of(1)]), array([bulk("2-0")])])),
        ("XAUTOCLAIM s g three 0 4 JUSTID", array([bulk("0-0"), array([bulk("4-0")]), array([])])),
        ("XAUTOCLAIM s g three 10000000 -", array([bulk("0-0"), array([]), array([])])),
        ("XAUTOCLAIM s g three 0 - COUNT 0", error("ERR COUNT must be > 0")),
        ("XAUTOCLAIM s g three x -", error("ERR Invalid min-idle-time argument for XAUTOCLAIM")),
        ("XAUTOCLAIM s g three 0 x", error("ERR Invalid stream ID specified as stream command argument")),
        ("XAUTOCLAIM s g three 0 0 WHAT", error("ERR syntax error")),
    ]);
    assert_eq!(pending(&mut client, "XPENDING s g - + 10"), owned(&[("1-0", "three", 3), ("4-0", "three", 7)]));
}

#[test]
fn deleting_an_entry_makes_lag_unknown() {
    let server = TestServer::start();
    let mut client = with_group(&server);
    let lag = |client: &mut Client| {
        let Value::Array(groups) = client.say("XINFO GROUPS s") else { panic!("groups") };
        let Value::Array(fields) = &groups[0] else { panic!("fields") };
        (fields[9].clone(), fields[11].clone())
    };
    assert_eq!(lag(&mut client), (Value::Null, int(4)));
    client.say("XREADGROUP GROUP g one COUNT 1 STREAMS s >");
    assert_eq!(lag(&mut client), (int(1), int(3)));
    client.say("XDEL s 3");
    assert_eq!(lag(&mut client), (int(1), Value::Null));
    client.say("XREADGROUP GROUP g one COUNT 1 STREAMS s >");
    assert_eq!(lag(&mut client), (Value::Null, Value::Null));
    client.say("XREADGROUP GROUP g one STREAMS s >");
    assert_eq!(lag(&mut client), (int(4), int(0)));
}

#[test]
fn streams_are_described_in_full() {
    let server = TestServer::start();
    let mut client = with_group(&server);
    client.say("XREADGROUP GROUP g one COUNT 1 STREAMS s >");
    client.say("XCLAIM s g one 0 1 TIME 1000 RETRYCOUNT 3");
    client.say("XGROUP CREATECONSUMER s g two");
    let Value::Array(fields) = client.say("XINFO STREAM s FULL COUNT 2") else { panic!("fields") };
    assert_eq!(fields[15], array([entry_of(1), entry_of(2)]));
    let Value::Array(groups) = &fields[17] else { panic!("groups") };
    let Value::Array(group) = &groups[0] else { panic!("a group") };
    let begin = [
        bulk("name"),
        bulk("g"),
        bulk("last-delivered-id"),
        bulk("1-0"),
        bulk("entries-read"),
        int(1),
        bulk("lag"),
        int(3),
        bulk("pel-count"),
        int(1),
        bulk("pending"),
        array([array([bulk("1-0"), bulk("one"), int(1000), int(3)])]),
        bulk("consumers"),
    ];
    assert_eq!(group[..13], begin);
    let Value::Array(consumers) = &group[13] else { panic!("consumers") };
    let Value::Array(one) = &consumers[0] else { panic!("a consumer") };
    assert_eq!(one[1], bulk("one"));
    assert_eq!(one[5..], [int(1), bulk("pending"), array([array([bulk("1-0"), int(1000), int(3)])])]);
    let Value::Array(two) = &consumers[1] else { panic!("a consumer") };
    assert_eq!(two[1], bulk("two"));
    assert_eq!(two[5..], [int(0), bulk("pending"), array([])]);
    client.converse([(
        "XINFO STREAM s WHAT",
        error("ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."),
    )]);
}

/// The keys that a user needs and the keys that are read are the same, whatever groups and consumers are named.
#[test]
fn groups_named_streams_grant_no_rights() {
    let server = TestServer::start();
    let mut admin = with_group(&server);
    admin.converse([
        ("XGROUP CREATE s streams 0", ok()),
        ("ACL SETUSER ada on nopass ~c ~STREAMS +@all", ok()),
        ("ACL SETUSER bob on nopass ~s +@all", ok()),
    ]);
    let (line, mut client) = ("XREADGROUP COUNT 1 GROUP streams c STREAMS s >", server.client());
    let refused = error("NOPERM this user has no permissions to access one of the keys used as arguments");
    client.converse([("AUTH ada any", ok()), (line, refused), ("AUTH bob any", ok())]);
    assert_eq!(client.say(line), read("s", [entry_of(1)]));
}
