//! Commands that wait for an entry of a stream.

use crate::blocking::{await_waiting, waiting};
use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};
use crate::streams::{entry, read};

#[test]
fn every_waiting_reader_gets_the_entry() {
    let server = TestServer::start();
    let mut admin = server.client();
    admin.say("XADD s 5 f v");
    let lines = ["XREAD BLOCK 0 STREAMS s $", "XREAD BLOCK 0 STREAMS other s 0 7", "XREAD BLOCK 0 STREAMS s 5-0"];
    let mut clients: Vec<Client> =
        (1..).zip(lines).map(|(count, line)| waiting(&server, &mut admin, line, count)).collect();
    admin.say("XADD s 6 f w");
    for number in [0, 2] {
        assert_eq!(clients[number].reply(), read("s", [entry("6-0", ["f", "w"])]));
        assert_eq!(clients[number].say("PING"), Value::Simple("PONG".into()));
    }
    // It waits for what comes after 7.
    await_waiting(&mut admin, 1);
    admin.converse([("MULTI", ok())]);
    admin.say("XADD s 7 f x");
    admin.say("XADD s 8 f y");
    admin.say("XADD s 9 f z");
    admin.say("EXEC");
    assert_eq!(clients[1].reply(), read("s", [entry("8-0", ["f", "y"]), entry("9-0", ["f", "z"])]));
}

#[test]
fn every_stream_creation_serves_waiting_readers() {
    let server = TestServer::start();
    let (mut admin, mut client) = (server.client(), server.client());
    let script = "return redis.call('XADD', 's', '1-0', 'f', 'v')";
    let makers: [&[&[&str]]; 5] = [
        &[&["XADD", "s", "1", "f", "v"]],
        &[&["XADD", "t", "1", "f", "v"], &["RENAME", "t", "s"]],
        &[&["XADD", "t", "1", "f", "v"], &["COPY", "t", "s"], &["DEL", "t"]],
        &[&["EVAL", script, "0"]],
        &[&["RPUSH", "s", "x"], &["DEL", "s"], &["MULTI"], &["XADD", "s", "1", "f", "v"], &["EXEC"]],
    ];
    for maker in makers {
        client.send(b"XREAD BLOCK 0 STREAMS s $\r\n");
        await_waiting(&mut admin, 1);
        maker.iter().for_each(|words| _ = admin.call(words));
        assert_eq!(client.reply(), read("s", [entry("1-0", ["f", "v"])]), "{maker:?}");
        admin.converse([("DEL s", int(1)), ("DBSIZE", int(0))]);
    }
}

#[test]
fn one_group_consumer_gets_the_entry() {
    let server = TestServer::start();
    let mut admin = server.client();
    admin.converse([("XGROUP CREATE s g $ MKSTREAM", ok()), ("XGROUP CREATE s h $", ok())]);
    let lines = [
        "XREADGROUP GROUP g one BLOCK 0 STREAMS s >",
        "XREADGROUP GROUP g two BLOCK 0 STREAMS s >",
        "XREADGROUP GROUP h one BLOCK 0 NOACK STREAMS s >",
    ];
    let mut clients: Vec<Client> =
        (1..).zip(lines).map(|(count, line)| waiting(&server, &mut admin, line, count)).collect();
    admin.say("XADD s 1 f v");
    for number in [0, 2] {
        assert_eq!(clients[number].reply(), read("s", [entry("1-0", ["f", "v"])]));
    }
    await_waiting(&mut admin, 1);
    admin.say("XADD s 2 f w");
    assert_eq!(clients[1].reply(), read("s", [entry("2-0", ["f", "w"])]));
    admin.converse([
        ("XPENDING s h", array([int(0), Value::Null, Value::Null, Value::Null])),
        (
            "XPENDING s g",
            array([
                int(2),
                bulk("1-0"),
                bulk("2-0"),
                array([array([bulk("one"), bulk("1")]), array([bulk("two"), bulk("1")])]),
            ]),
        ),
    ]);
}

#[test]
fn consumers_see_lost_stream_or_group() {
    let server = TestServer::start();
    let (mut admin, mut client, mut reader) = (server.client(), server.client(), server.client());
    let key_gone = "UNBLOCKED the stream key no longer exists";
    let enders: [(&[&str], &str); 7] = [
        (&["DEL s"], key_gone),
        (&["SET s x"], key_gone),
        (&["MULTI", "DEL s", "RPUSH s x", "EXEC"], key_gone),
        (&["FLUSHALL"], key_gone),
        (&["SWAPDB 0 1"], key_gone),
        (&["RENAME s t"], key_gone),
        (&["XGROUP DESTROY s g"], "NOGROUP the consumer group this client was blocked on no longer exists"),
    ];
    reader.send(b"XREAD BLOCK 0 STREAMS s 7\r\n");
    await_waiting(&mut admin, 1);
    for (lines, wanted) in enders {
        admin.converse([("XGROUP CREATE s g $ MKSTREAM", ok())]);
        client.send(b"XREADGROUP GROUP g c BLOCK 0 STREAMS s >\r\n");
        await_waiting(&mut admin, 2);
        lines.iter().for_each(|line| _ = admin.say(line));
        assert_eq!(client.reply(), error(wanted), "{lines:?}");
        admin.say("FLUSHALL");
    }
    // Other readers go on waiting.
    await_waiting(&mut admin, 1);
    admin.say("XADD s 8 f v");
    assert_eq!(reader.reply(), read("s", [entry("8-0", ["f", "v"])]));
}
