//! Many connections, slow ones, malformed ones, too many.

use crate::common::{Client, TestServer, Value, bulk, encode, error, ok, patterned};
use server::Config;

fn pong() -> Value {
    Value::Simple("PONG".into())
}

#[test]
fn malformed_requests_are_answered_and_closed() {
    let server = TestServer::start();
    let mut witness = server.client();
    let endless = vec![b'a'; (64 << 10) + 1];
    let malformed: [(&[u8], &str); 6] = [
        (b"*x\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*1048577\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*1\r\n:1\r\n", "ERR Protocol error: expected '$', got ':'"),
        (b"*1\r\n$-5\r\n", "ERR Protocol error: invalid bulk length"),
        (b"SET \"a\r\n", "ERR Protocol error: unbalanced quotes in request"),
        (&endless, "ERR Protocol error: too big inline request"),
    ];
    for (bytes, text) in malformed {
        let mut client = server.client();
        client.send(&encode(&["PING"]));
        client.send(bytes);
        assert_eq!(client.reply(), pong());
        assert_eq!(client.reply(), error(text));
        assert!(client.is_at_end());
        assert_eq!(witness.say("PING"), pong());
    }
}

#[test]
fn an_argument_over_the_limit_is_refused_when_announced() {
    let server = TestServer::with(Config { bulk_bytes_max: 100, ..Config::default() });
    let mut client = server.client();
    assert_eq!(client.call(&[b"ECHO", &[b'x'; 100][..]]), bulk([b'x'; 100]));
    client.send(b"*2\r\n$4\r\nECHO\r\n$101\r\n");
    assert_eq!(client.reply(), error("ERR Protocol error: invalid bulk length"));
    assert!(client.is_at_end());
}

#[test]
fn a_thousand_idle_connections_and_one_that_works() {
    let server = TestServer::start();
    let mut idle: Vec<Client> = (0..1_000).map(|_| server.client()).collect();
    idle.iter_mut().for_each(|client| client.send(b"*2\r\n$4\r\nECHO\r\n$3\r\nab"));
    let mut worker = server.client();
    for number in 0..1_000 {
        let text = number.to_string();
        assert_eq!(worker.call(&["SET", &text, &text]), ok());
        assert_eq!(worker.call(&["GET", &text]), bulk(&text));
    }
    for client in &mut idle {
        client.send(b"c\r\n");
        assert_eq!(client.reply(), bulk("abc"));
    }
}

#[test]
fn who_does_not_read_stalls_nobody_else() {
    let server = TestServer::single();
    let (mut slow, mut other) = (server.client(), server.client());
    let (large, small) = (patterned(32 << 20), patterned(10_000));
    other.call(&[b"SET", &b"large"[..], &large]);
    other.call(&[b"SET", &b"small"[..], &small]);
    let small_count = 5_000;
    slow.send(&[&b"GET large\r\n"[..], &b"GET small\r\n".repeat(small_count)].concat());
    for _ in 0..1_000 {
        assert_eq!(other.say("GET small"), bulk(&small));
    }
    assert_eq!(slow.reply(), bulk(&large));
    (0..small_count).for_each(|_| assert_eq!(slow.reply(), bulk(&small)));
}

/// More than the kernel's buffers hold; the replies to as much have fifteen times its size.
const UNREAD_BYTES_MAX: usize = 32 << 20;

#[test]
fn who_does_not_read_is_not_read_from() {
    let server = TestServer::single();
    let (mut slow, mut other) = (server.client(), server.client());
    other.call(&[b"SET", &b"k"[..], &patterned(100)]);
    let requests = b"GET k\r\n".repeat(1_000);
    let (mut sent_bytes, mut refused_count) = (0, 0);
    while refused_count < 10 {
        let taken_bytes = slow.send_some(&requests[sent_bytes % requests.len()..]);
        sent_bytes += taken_bytes;
        assert!(sent_bytes < UNREAD_BYTES_MAX, "the server takes requests without end");
        // On one event loop, this reply comes after the server has read what it wants to.
        other.say("PING");
        refused_count = if taken_bytes == 0 { refused_count + 1 } else { 0 };
    }
}

#[test]
fn a_value_replaced_while_it_is_sent_ends_the_connection() {
    let server = TestServer::single();
    let (mut slow, mut other) = (server.client(), server.client());
    let large = patterned(64 << 20);
    other.call(&[b"SET", &b"large"[..], &large]);
    slow.send(b"PING\r\nGET large\r\n");
    assert_eq!(slow.reply(), pong());
    assert_eq!(other.say("SET large small"), ok());
    assert_eq!(slow.line(), format!("${}", large.len()));
    let received = slow.rest();
    assert!(received.len() < large.len() && large.starts_with(&received));
    assert_eq!(other.say("GET large"), bulk("small"));
}

#[test]
fn one_client_too_many() {
    let server = TestServer::with(Config { threads: 1, max_clients: 2, ..Config::default() });
    let (mut first, mut second) = (server.client(), server.client());
    assert_eq!((first.say("PING"), second.say("PING")), (pong(), pong()));
    let mut third = server.client();
    assert_eq!(third.reply(), error("ERR max number of clients reached"));
    assert!(third.is_at_end());
    assert_eq!(second.say("QUIT"), ok());
    assert!(second.is_at_end());
    assert_eq!(server.client().say("PING"), pong());
    assert_eq!(first.say("PING"), pong());
}

#[test]
fn a_busy_port_is_an_error() {
    let server = TestServer::start();
    let config = Config { addrs: vec![server.addr.to_string()], ..Config::default() };
    let outcome = server::Server::bind(server.store.clone(), config, server::StopHandle::new()).map(|_| ());
    assert_eq!(outcome.expect_err("the port is taken").kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn strangers_may_send_little_and_become_somebody_in_one_pipeline() {
    let server = TestServer::with(Config { threads: 1, password: Some("secret".into()), ..Config::default() });
    for (bytes, what) in [(&b"*11\r\n"[..], "multibulk"), (b"*1\r\n$16385\r\n", "bulk")] {
        let mut stranger = server.client();
        stranger.send(bytes);
        assert_eq!(stranger.reply(), error(&format!("ERR Protocol error: unauthenticated {what} length")));
        assert!(stranger.is_at_end());
    }
    let mut client = server.client();
    let long = patterned(20_000);
    client.send(&[encode(&["AUTH", "secret"]), encode(&[b"SET", &b"long"[..], &long]), encode(&["RESET"])].concat());
    assert_eq!((client.reply(), client.reply()), (ok(), ok()));
    assert_eq!(client.reply(), Value::Simple("RESET".into()));
    client.send(b"*11\r\n");
    assert_eq!(client.reply(), error("ERR Protocol error: unauthenticated multibulk length"));
}
