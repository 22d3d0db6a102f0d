//! Replies that are held until they are durable. The store is on a disk, and so journaled; if the file system of
//! temporary files is not a disk, levels are limited by the medium.

use crate::common::{TestServer, Value, array, bulk, encode, error, int, ok};
use hikv::Durability;

#[test]
fn pipeline_is_answered_in_order() {
    let server = TestServer::start();
    let (mut one, mut other) = (server.client(), server.client());
    for i in 0..50 {
        let value = i.to_string();
        let requests = [
            encode(&["SET", "shared", &value]),
            encode(&["GET", "shared"]),
            encode(&["INCR", "count"]),
            encode(&["MULTI"]),
            encode(&["SET", "a", &value]),
            encode(&["GET", "a"]),
            encode(&["EXEC"]),
            encode(&["ECHO", &value]),
        ];
        one.send(&requests.concat());
        other.send(&[encode(&["GET", "own"]), encode(&["SET", "own", &value]), encode(&["GET", "own"])].concat());
        assert_eq!((one.reply(), one.reply(), one.reply()), (ok(), bulk(&value), int(i + 1)));
        let queued = Value::Simple("QUEUED".into());
        assert_eq!((one.reply(), one.reply(), one.reply()), (ok(), queued.clone(), queued));
        assert_eq!((one.reply(), one.reply()), (array([ok(), bulk(&value)]), bulk(&value)));
        let before = if i == 0 { Value::Null } else { bulk((i - 1).to_string()) };
        assert_eq!((other.reply(), other.reply(), other.reply()), (before, ok(), bulk(&value)));
        // Written by one client, and read by the other before or after it is on the disk.
        assert_eq!(other.call(&["GET", "shared"]), bulk(&value));
    }
}

#[test]
fn messages_precede_following_reply() {
    let server = TestServer::single();
    let (mut listener, mut writer) = (server.client(), server.client());
    writer.converse([("CONFIG SET notify-keyspace-events E$", ok())]);
    listener.say("SUBSCRIBE __keyevent@0__:set news");
    listener.reply();
    for i in 0..100 {
        let key = i.to_string();
        writer.send(&[encode(&["SET", &key, "v"]), encode(&["PUBLISH", "news", &key])].concat());
        assert_eq!(listener.reply(), array([bulk("message"), bulk("__keyevent@0__:set"), bulk(&key)]));
        assert_eq!(listener.reply(), array([bulk("message"), bulk("news"), bulk(&key)]));
        assert_eq!((writer.reply(), writer.reply()), (ok(), int(1)));
    }
}

#[test]
fn accepted_requests_are_answered_at_stop() {
    let mut server = TestServer::start();
    let mut clients: Vec<_> = (0..20).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.say("PING"), Value::Simple("PONG".into())));
    for (i, client) in clients.iter_mut().enumerate() {
        client.send(&(0..10).flat_map(|j| encode(&["SET", &format!("{i}/{j}"), "v"])).collect::<Vec<u8>>());
    }
    server.stop.stop();
    server.join().expect("the server ends without an error");
    for client in &mut clients {
        (0..10).for_each(|_| assert_eq!(client.reply(), ok()));
        assert!(client.is_at_end());
    }
    assert_eq!(server.store.len().expect("the store is open"), 200);
}

#[test]
fn write_may_request_offered_durability() {
    let server = TestServer::start();
    let mut client = server.client();
    for level in [Durability::Process, Durability::Buffered, Durability::Power] {
        let request = format!("SET {level} v DURABLE {level}");
        if level <= hikv::FrontEnd::of(&server.store).durability_max() {
            client.converse([(&request, ok()), (&format!("GET {level}"), bulk("v"))]);
        } else {
            assert!(matches!(client.say(&request), Value::Error(_)), "{request}");
            assert_eq!(client.say(&format!("GET {level}")), Value::Null);
        }
    }
    client.converse([
        ("SET k v DURABLE process NX GET", Value::Null),
        ("SET k w XX DURABLE process EX 100", ok()),
        ("SET k v DURABLE", error("ERR syntax error")),
        ("SET k v DURABLE always", error("ERR syntax error")),
        ("SET k v DURABLE process DURABLE process", error("ERR syntax error")),
        ("GET k", bulk("w")),
    ]);
}

#[test]
fn memory_refuses_more_than_it_gives() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return };
    let server = TestServer::at_dir(dir);
    let mut client = server.client();
    let Value::Error(text) = client.say("SET k v DURABLE power") else { panic!("it was taken") };
    assert!(text.contains("'power'") && text.contains("'process'"), "{text}");
    client.converse([("GET k", Value::Null), ("SET k v DURABLE process", ok())]);
}

/// After a write every message is held behind it, even long after it is durable. One message larger than a turn for
/// several clients, and many that are as large together.
#[test]
fn many_messages_reach_all_subscribers() {
    let server = TestServer::single();
    let mut publisher = server.client();
    assert_eq!(publisher.say("SET k v"), ok());
    for (subscriber_count, len_bytes) in [(4, 300_000), (200, 2_000)] {
        let channel = format!("c{subscriber_count}");
        let mut subscribers: Vec<_> = (0..subscriber_count).map(|_| server.client()).collect();
        for subscriber in &mut subscribers {
            subscriber.call(&["SUBSCRIBE", &channel]);
        }
        let message = "x".repeat(len_bytes);
        for _ in 0..3 {
            assert_eq!(publisher.call(&["PUBLISH", &channel, &message]), int(subscriber_count));
            for subscriber in &mut subscribers {
                assert_eq!(subscriber.reply(), array([bulk("message"), bulk(&channel), bulk(&message)]));
            }
        }
        assert_eq!(subscribers[0].say("UNSUBSCRIBE"), array([bulk("unsubscribe"), bulk(&channel), int(0)]));
    }
}

/// The messages report writes that are not durable when they arrive.
#[test]
fn messages_during_a_value_follow_it() {
    let server = TestServer::single();
    let (mut reader, mut writer) = (server.client(), server.client());
    // Larger than the sockets' buffers, and streamed.
    let value = crate::common::patterned(20 << 20);
    assert_eq!(writer.call(&[b"SET".as_slice(), b"large", &value]), ok());
    reader.say("HELLO 3");
    reader.say("SUBSCRIBE news");
    for round in 0..10 {
        reader.send(b"GET large\r\n");
        let round = round.to_string();
        writer.send(&[encode(&["SET", "k", &round]), encode(&["PUBLISH", "news", &round])].concat());
        assert_eq!((writer.reply(), writer.reply()), (ok(), int(1)));
        let (mut values, mut messages) = (0, 0);
        while values + messages < 2 {
            match reader.reply() {
                Value::Bulk(bytes) => {
                    assert!(bytes == value, "another value came");
                    values += 1;
                }
                message => {
                    assert_eq!(message, Value::Push(vec![bulk("message"), bulk("news"), bulk(&round)]));
                    messages += 1;
                }
            }
        }
    }
    assert_eq!(reader.say("ECHO after"), bulk("after"));
}
