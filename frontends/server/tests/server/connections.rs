//! Many connections, slow ones, malformed ones, more than `maxclients`.

use crate::common::{Client, TestServer, Value, bulk, encode, error, ok, patterned};
use server::{Config, Parameters};

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
fn too_long_argument_is_refused_when_announced() {
    let server = TestServer::with(Config { bulk_bytes_max: 100, ..Config::default() });
    let mut client = server.client();
    assert_eq!(client.call(&[b"ECHO", &[b'x'; 100][..]]), bulk([b'x'; 100]));
    client.send(b"*2\r\n$4\r\nECHO\r\n$101\r\n");
    assert_eq!(client.reply(), error("ERR Protocol error: invalid bulk length"));
    assert!(client.is_at_end());
}

#[test]
fn thousand_idle_connections_and_one_that_works() {
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
fn non_reading_client_stalls_no_other() {
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

/// More than the kernel's buffers hold; the replies to this many bytes are fifteen times as long.
const UNREAD_BYTES_MAX: usize = 32 << 20;

#[test]
fn non_reading_client_is_not_read_from() {
    let mut parameters = Parameters::default();
    parameters.set("maxmemory-clients", "1mb").expect("a parameter");
    let server = TestServer::with(Config { threads: 1, parameters, ..Config::default() });
    let (mut slow, mut other) = (server.client(), server.client());
    other.call(&[b"SET", &b"k"[..], &patterned(100)]);
    let requests = b"GET k\r\n".repeat(1_000);
    let (mut sent_bytes, mut refused_count) = (0, 0);
    while refused_count < 10 {
        let taken_bytes = slow.send_some(&requests[sent_bytes % requests.len()..]);
        sent_bytes += taken_bytes;
        assert!(sent_bytes < UNREAD_BYTES_MAX, "the server takes requests without end");
        // On a single event loop, this reply comes after the server has read as much as it wants.
        other.say("PING");
        refused_count = if taken_bytes == 0 { refused_count + 1 } else { 0 };
    }
}

#[test]
fn value_replaced_while_sent_ends_connection() {
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
fn busy_port_is_error() {
    let server = TestServer::start();
    let config = Config { addrs: vec![server.addr.to_string()], ..Config::default() };
    let outcome = server::Server::bind(server.store.clone(), config, server::StopHandle::new()).map(|_| ());
    assert_eq!(outcome.expect_err("the port is taken").kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn unauthenticated_client_may_authenticate_in_pipeline() {
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

/// Returns the bytes that a browser sends for `fetch(…, {method, mode: 'no-cors', body})`.
fn from_a_page(method: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} / HTTP/1.1\r\nHost: localhost:6379\r\nUser-Agent: Mozilla/5.0\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[test]
fn web_page_has_nothing_executed() {
    let server = TestServer::start();
    let body = "\r\nSET planted yes\r\n*3\r\n$3\r\nSET\r\n$7\r\nplanted\r\n$3\r\nyes\r\n";
    for method in ["POST", "post", "GET", "PUT", "OPTIONS", "HEAD"] {
        for piece_bytes in [1, 7, 4096] {
            let mut page = server.client();
            // The server may close it before everything was sent.
            let _ = from_a_page(method, body).chunks(piece_bytes).try_for_each(|piece| page.try_send(piece));
            let answer = page.rest();
            assert!(!answer.windows(3).any(|window| window == b"+OK"), "{method}: {}", answer.escape_ascii());
            assert_eq!(server.client().say("GET planted"), Value::Null, "{method}");
        }
    }
}

#[test]
fn http_requests_end_connections() {
    let server = TestServer::start();
    for words in ["POST / HTTP/1.1", "post", "Host: a.example", "HOST:"] {
        for before in [&["MULTI"][..], &["SUBSCRIBE c"], &["HELLO 3"], &["CLIENT REPLY SKIP"], &[]] {
            let mut client = server.client();
            let lines = before.iter().chain([&words, &"SET planted yes"]).map(|line| format!("{line}\r\n"));
            client.send(lines.collect::<String>().as_bytes());
            let answer = client.rest();
            assert!(!answer.ends_with(b"+OK\r\n") || before == ["MULTI"], "{}", answer.escape_ascii());
        }
        let mut client = server.client();
        let as_array: Vec<&str> = words.split(' ').collect();
        client.send(&encode(&as_array));
        assert!(client.is_at_end(), "{words}");
    }
    let mut client = server.client();
    client.converse([("GET planted", Value::Null), ("SET post 1", ok()), ("GET post", bulk("1"))]);
    client.say("CONFIG SET requirepass secret");
    let mut stranger = server.client();
    stranger.send(b"Host: a.example\r\nAUTH secret\r\n");
    assert!(stranger.is_at_end());
}
