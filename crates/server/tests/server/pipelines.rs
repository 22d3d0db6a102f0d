//! Requests sent together: order, cuts, groups of reads, large values.

use crate::common::{Client, TestServer, Value, bulk, encode, error, ok, patterned};

/// A pipeline of every kind of request, and its replies on an empty store.
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
        // On one event loop, this reply comes after the first piece has been read.
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

/// Of the two large values one is just copied and one just streamed.
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
fn an_end_that_comes_with_data_is_seen() {
    let server = TestServer::single();
    let (mut client, mut other) = (server.client(), server.client());
    let large = patterned(20 << 20);
    client.call(&[b"SET", &b"large"[..], &large]);
    client.send(b"GET large\r\n");
    // On one event loop, this reply comes after the server has stopped reading from the client.
    other.say("PING");
    client.send(b"PING\r\n");
    client.end();
    assert_eq!(client.reply(), bulk(&large));
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
    assert!(client.is_at_end());
}
