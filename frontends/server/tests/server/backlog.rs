//! Clients that send an entire pipeline before reading, and the limits on their unread replies.

use std::sync::Barrier;
use std::thread;

use server::{Config, Parameters};

use crate::common::{Client, TestServer, Value, array, bulk, encode, ok, patterned};

/// Returns this figure of `INFO`.
fn figure(client: &mut Client, name: &str) -> usize {
    let Value::Bulk(text) = client.say("INFO") else { panic!("not a text") };
    let text = String::from_utf8(text).expect("a text");
    let figure = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    figure.unwrap_or_else(|| panic!("{name} is not shown")).parse().expect("a number")
}

fn echoes(count: usize, word: &str) -> Vec<u8> {
    encode(&["ECHO", word]).repeat(count)
}

/// All clients that run this concurrently need their replies to be held.
fn answers_pipelines(server: &TestServer, client_count: usize, request_count: usize) {
    let (all_sent, word) = (Barrier::new(client_count), "x".repeat(1_000));
    let pipeline = echoes(request_count, &word);
    thread::scope(|scope| {
        for _ in 0..client_count {
            scope.spawn(|| {
                let mut client = server.client();
                client.send(&pipeline);
                all_sent.wait();
                (0..request_count).for_each(|_| assert_eq!(client.reply(), bulk(&word)));
                assert_eq!(client.say("PING"), Value::Simple("PONG".into()));
            });
        }
    });
    let mut client = server.client();
    assert_eq!((figure(&mut client, "unread_replies_bytes"), figure(&mut client, "evicted_clients")), (0, 0));
}

#[test]
fn pipeline_is_answered_before_replies_are_read() {
    let server = TestServer::start();
    answers_pipelines(&server, 1, 32_000);
    answers_pipelines(&server, 8, 16_000);
}

/// The values are large enough to be streamed, and are held in pieces here.
#[test]
fn large_values_in_long_pipeline_are_whole() {
    let server = TestServer::single();
    let mut client = server.client();
    let (large, word) = (patterned(20 << 20), "x".repeat(1_000));
    assert_eq!(client.call(&[b"SET", &b"large"[..], &large]), ok());
    let requests = [echoes(1_000, &word), encode(&["GET", "large"]), encode(&["MGET", "absent", "large"])].concat();
    client.send(&[requests, echoes(16_000, &word)].concat());
    (0..1_000).for_each(|_| assert_eq!(client.reply(), bulk(&word)));
    assert!(client.reply() == bulk(&large), "the value came back changed");
    assert!(client.reply() == array([Value::Null, bulk(&large)]), "the value came back changed");
    (0..16_000).for_each(|_| assert_eq!(client.reply(), bulk(&word)));
}

/// With a journal, writes wait for the disk; their replies are held behind that as well.
#[test]
fn writes_in_long_pipeline_keep_order() {
    let server = TestServer::start();
    let mut client = server.client();
    let word = "x".repeat(1_000);
    let count = 16_000;
    let step = |number: usize| [encode(&["SET", "k", &number.to_string(), "GET"]), encode(&["ECHO", &word])].concat();
    client.send(&(0..count).flat_map(step).collect::<Vec<u8>>());
    for number in 0..count {
        let before = if number == 0 { Value::Null } else { bulk((number - 1).to_string()) };
        assert_eq!((client.reply(), client.reply()), (before, bulk(&word)));
    }
}

/// Three use three quarters of the limit, and the fourth needs more than a quarter.
#[test]
fn non_reading_client_makes_way() {
    let mut parameters = Parameters::default();
    parameters.set("maxmemory-clients", "32mb").expect("a parameter");
    let server = TestServer::with(Config { threads: 2, parameters, ..Config::default() });
    let mut other = server.client();
    let word = "x".repeat(1_000);
    let pipeline = echoes(1_000, &word);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut deaf = server.client();
                // An error means the connection was closed.
                while deaf.try_send(&pipeline).is_ok() {}
            });
        }
        while figure(&mut other, "unread_replies_bytes") < 20 << 20 {
            thread::yield_now();
        }
        assert!(figure(&mut other, "unread_replies_bytes") < 36 << 20);
        let Value::Bulk(list) = other.say("CLIENT LIST") else { panic!("not a text") };
        let list = String::from_utf8(list).expect("a text");
        assert!(list.lines().any(|line| line.contains(" oll=1 ") && !line.contains(" omem=0 ")), "{list}");
        let mut late = server.client();
        late.send(&pipeline.repeat(14));
        (0..14_000).for_each(|_| assert_eq!(late.reply(), bulk(&word)));
        // The other clients hold the memory that the late one has freed, until they need more.
        while figure(&mut other, "evicted_clients") < 3 {
            thread::yield_now();
        }
    });
    assert_eq!(figure(&mut other, "unread_replies_bytes"), 0);
}

/// The reply of one command may be longer than the limit; those of many clients together may not stay.
#[test]
fn single_long_replies_are_limited_together() {
    const REPLY_BYTES: usize = 16 << 20;
    let mut parameters = Parameters::default();
    parameters.set("maxmemory-clients", "20mb").expect("a parameter");
    let server = TestServer::with(Config { threads: 2, parameters, ..Config::default() });
    let mut other = server.client();
    let word = "x".repeat(REPLY_BYTES / 16);
    (0..16).for_each(|_| drop(other.call(&["RPUSH", "l", &word])));
    let whole = Value::Array(vec![bulk(&word); 16]);
    let ask = |clients: &mut Vec<Client>, words: &[&str]| {
        let mut client = server.client();
        client.send(&encode(words));
        clients.push(client);
    };
    let mut deaf = Vec::new();
    for words in [&["LRANGE", "l", "0", "-1"][..], &["EVAL", "return redis.call('lrange', 'l', 0, -1)", "0"]] {
        (0..6).for_each(|_| ask(&mut deaf, words));
    }
    // More than a socket holds. At most twice the limit stays, except replies that have just been made.
    while figure(&mut other, "evicted_clients") < 10 || figure(&mut other, "unread_replies_bytes") > 41 << 20 {
        thread::yield_now();
    }
    // Clients that read nothing also leave when no further reply comes.
    while figure(&mut other, "unread_replies_bytes") > 20 << 20 {
        thread::yield_now();
    }
    drop(deaf);
    assert!(other.call(&["LRANGE", "l", "0", "-1"]) == whole, "a client that reads gets a long reply");
}

#[test]
fn pipeline_over_client_limit_is_dropped() {
    let server = TestServer::single();
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(other.call(&["CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0"]), ok());
    assert_eq!(other.say("CONFIG GET maxmemory-clients"), array([bulk("maxmemory-clients"), bulk("1073741824")]));
    let pipeline = echoes(1_000, &"x".repeat(1_000));
    while client.try_send(&pipeline).is_ok() {}
    assert_eq!(figure(&mut other, "client_output_buffer_limit_disconnections"), 1);
    assert_eq!(figure(&mut other, "unread_replies_bytes"), 0);
}
