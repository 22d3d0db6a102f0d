//! Pipelined requests: order, split input, groups of reads, large values.

use crate::common::{Client, TestServer, Value, bulk, encode, error, int, ok, patterned};

/// Returns a pipeline of every kind of request, and its replies on an empty store.
fn mixed() -> (Vec<u8>, Vec<Value>) {
    let steps: Vec<(Vec<u8>, Option<Value>)> = vec![
        (encode(&["SET", "a", "1"]), Some(ok())),
        (encode(&["GET", "a"]), Some(bulk("1"))),
        (encode(&["GET", "b"]), Some(Value::Null)),
        (b"mget a b \"a\"\r\n".into(), Some(Value::Array(vec![bulk("1"), Value::Null, bulk("1")]))),
        (b"\r\n".into(), None),
        (encode(&["SET", "b", "\r\n"]), Some(ok())),
        (encode(&["GET", "b"]), Some(bulk("\r\n"))),
        (b"PING\n".into(), Some(Value::Simple("PONG".into()))),
        (encode(&["GET"]), Some(error("ERR wrong number of arguments for 'get' command"))),
        (encode(&["DEL", "a", "b"]), Some(Value::Integer(2))),
        (encode(&["MGET", "a"]), Some(Value::Array(vec![Value::Null]))),
    ];
    let bytes = steps.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
    (bytes, steps.into_iter().filter_map(|(_, reply)| reply).collect())
}

fn expect(client: &mut Client, replies: &[Value]) {
    for reply in replies {
        assert_eq!(&client.reply(), reply);
    }
}

#[test]
fn cut_at_every_byte() {
    let server = TestServer::single();
    let (mut client, mut other) = (server.client(), server.client());
    let (bytes, replies) = mixed();
    for cut in 0..=bytes.len() {
        client.send(&bytes[..cut]);
        // On a single event loop, this reply comes after the first piece has been read.
        other.say("PING");
        client.send(&bytes[cut..]);
        expect(&mut client, &replies);
    }
}

#[test]
fn byte_by_byte() {
    let server = TestServer::single();
    let (mut client, mut other) = (server.client(), server.client());
    let (bytes, replies) = mixed();
    for byte in bytes {
        client.send(&[byte]);
        other.say("PING");
    }
    expect(&mut client, &replies);
}

#[test]
fn long_runs_of_reads_keep_their_order() {
    let server = TestServer::start();
    let mut client = server.client();
    let names: Vec<String> = (0..1_000).map(|number| format!("key-{number}")).collect();
    let sets: Vec<u8> = names.iter().step_by(2).flat_map(|name| encode(&["SET", name, name])).collect();
    client.send(&sets);
    (0..500).for_each(|_| assert_eq!(client.reply(), ok()));

    let value = |index: usize| if index.is_multiple_of(2) { bulk(&names[index]) } else { Value::Null };
    let mut requests: Vec<u8> = names.iter().flat_map(|name| encode(&["GET", name])).collect();
    let all: Vec<&str> = std::iter::once("MGET").chain(names.iter().map(String::as_str)).collect();
    requests.extend(encode(&all));
    requests.extend(encode(&["GET", "key-0"]));
    client.send(&requests);
    (0..1_000).for_each(|index| assert_eq!(client.reply(), value(index)));
    assert_eq!(client.reply(), Value::Array((0..1_000).map(value).collect()));
    assert_eq!(client.reply(), bulk("key-0"));
}

#[test]
fn value_of_64_mib() {
    let server = TestServer::start();
    let mut client = server.client();
    let value = patterned(64 << 20);
    assert_eq!(client.call(&[b"SET", &b"large"[..], &value]), ok());
    client.send(b"GET large\r\nPING\r\n");
    let Value::Bulk(found) = client.reply() else { panic!("not a value") };
    assert!(found == value, "the value came back changed");
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
}

/// Of the two large values, one is just small enough to copy and one just large enough to stream.
#[test]
fn large_values_among_small_ones() {
    let server = TestServer::start();
    let mut client = server.client();
    let (copied, streamed) = (patterned((16 << 20) - 1), patterned(16 << 20));
    client.say("SET small s");
    client.call(&[b"SET", &b"copied"[..], &copied]);
    client.call(&[b"SET", &b"streamed"[..], &streamed]);
    client.send(b"GET streamed\r\nMGET streamed small absent copied small streamed\r\nGET small\r\n");
    client.send(b"GET copied\r\nGET copied\r\nGET streamed\r\nMGET small\r\n");
    let all = [bulk(&streamed), bulk("s"), Value::Null, bulk(&copied), bulk("s"), bulk(&streamed)];
    assert_eq!(client.reply(), bulk(&streamed));
    assert_eq!(client.reply(), Value::Array(all.into()));
    assert_eq!(client.reply(), bulk("s"));
    assert_eq!(client.reply(), bulk(&copied));
    assert_eq!(client.reply(), bulk(&copied));
    assert_eq!(client.reply(), bulk(&streamed));
    assert_eq!(client.reply(), Value::Array(vec![bulk("s")]));
}

#[test]
fn key_too_long_spoils_no_other_read() {
    let server = TestServer::start();
    let mut client = server.client();
    client.say("SET k v");
    let long = "x".repeat(65_536);
    let refusal = error("ERR the key has 65536 bytes; the limit is 65535");
    client.send(&[encode(&["GET", "k"]), encode(&["GET", &long]), encode(&["MGET", "k", &long, "k"])].concat());
    assert_eq!(client.reply(), bulk("v"));
    assert_eq!(client.reply(), refusal);
    assert_eq!(client.reply(), Value::Array(vec![bulk("v"), refusal, bulk("v")]));
}

#[test]
fn pipeline_larger_than_all_buffers() {
    let server = TestServer::start();
    let mut client = server.client();
    let value = patterned(1_000);
    let count = 20_000;
    let sets: Vec<u8> = (0..count).flat_map(|n| encode(&[b"SET", format!("{n}").as_bytes(), &value])).collect();
    client.send(&sets);
    (0..count).for_each(|_| assert_eq!(client.reply(), ok()));
    let gets: Vec<u8> = (0..count).flat_map(|n| encode(&["GET", &n.to_string()])).collect();
    client.send(&gets);
    (0..count).for_each(|_| assert_eq!(client.reply(), bulk(&value)));
}

#[test]
fn requests_before_close_are_answered() {
    let server = TestServer::start();
    let mut client = server.client();
    let large = patterned(20 << 20);
    client.call(&[b"SET", &b"large"[..], &large]);
    client.send(b"GET large\r\nPING\r\nGET large\r\n*1\r\n$4\r\nPI");
    client.end();
    assert_eq!(client.reply(), bulk(&large));
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
    assert_eq!(client.reply(), bulk(&large));
    assert!(client.is_at_end());
}

#[test]
fn end_of_stream_with_data_is_seen() {
    let server = TestServer::single();
    let (mut client, mut other) = (server.client(), server.client());
    let large = patterned(20 << 20);
    client.call(&[b"SET", &b"large"[..], &large]);
    client.send(b"GET large\r\n");
    // On a single event loop, this reply comes after the server has stopped reading from the client.
    other.say("PING");
    client.send(b"PING\r\n");
    client.end();
    assert_eq!(client.reply(), bulk(&large));
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
    assert!(client.is_at_end());
}

/// More values than all socket buffers can hold.
const VALUE_COUNT: usize = 6_000;

/// Returns a client that has received a part of a long MGET's reply, and has not read it. Its pipeline ends with ECHO.
fn client_within_reply(server: &TestServer, login: &str) -> Client {
    let (mut client, mut other) = (server.client(), server.client());
    client.say(login);
    assert_eq!(client.call(&[&b"SET"[..], b"k", &patterned(8_000)]), ok());
    let mut mget = vec!["MGET"];
    mget.resize(1 + VALUE_COUNT, "k");
    client.send(&[encode(&mget), encode(&["ECHO", "behind"])].concat());
    while !other.is_listed("cmd=mget") {
        std::thread::yield_now();
    }
    client
}

fn values() -> Value {
    Value::Array(vec![bulk(patterned(8_000)); VALUE_COUNT])
}

#[test]
fn monitor_does_not_change_started_reply() {
    let server = TestServer::single();
    let (mut client, mut monitor) = (client_within_reply(&server, "PING"), server.client());
    assert_eq!(monitor.say("MONITOR"), ok());
    assert!(client.reply() == values(), "the reply was changed");
    assert_eq!(client.reply(), bulk("behind"));
    assert!(monitor.line().ends_with(r#""ECHO" "behind""#));
}

#[test]
fn message_follows_started_reply() {
    let server = TestServer::single();
    let mut client = client_within_reply(&server, "HELLO 3");
    // The client reads everything before it subscribes, and then starts a second long reply.
    assert!(client.reply() == values(), "the reply was changed");
    assert_eq!(client.reply(), bulk("behind"));
    assert_eq!(client.say("SUBSCRIBE news"), Value::Push(vec![bulk("subscribe"), bulk("news"), int(1)]));
    let mut mget = vec!["MGET"];
    mget.resize(1 + VALUE_COUNT, "k");
    client.send(&encode(&mget));
    let mut other = server.client();
    while !other.is_listed("cmd=mget") {
        std::thread::yield_now();
    }
    assert_eq!(other.say("PUBLISH news paper"), int(1));
    assert!(client.reply() == values(), "the reply was changed");
    assert_eq!(client.reply(), Value::Push(vec![bulk("message"), bulk("news"), bulk("paper")]));
    assert_eq!(client.say("ECHO after"), bulk("after"));
}

/// The reply ends early. The client's event loop continues to serve other clients.
#[test]
fn client_losing_rights_is_disconnected() {
    for rule in ["-mget", "resetkeys", "-@all"] {
        let server = TestServer::single();
        let mut admin = server.client();
        assert_eq!(admin.say("ACL SETUSER ada on nopass ~* +@all"), ok());
        let mut client = client_within_reply(&server, "AUTH ada x");
        assert_eq!(admin.say(&format!("ACL SETUSER ada {rule}")), ok());
        let reply = client.rest();
        assert!(reply.starts_with(b"*6000\r\n$8000\r\n"));
        assert!(reply.len() < VALUE_COUNT * 8_000, "the reply continued with {rule}");
        assert!(!reply.windows(6).any(|bytes| bytes == b"NOPERM"), "an error inside an array");
        assert_eq!(server.client().say("PING"), Value::Simple("PONG".into()), "{rule}");
    }
}
