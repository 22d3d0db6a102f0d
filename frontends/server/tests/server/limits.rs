//! Limits on a client's unread output and idle time.

use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use hikv::{Durability, Options, PutOptions};
use server::Config;

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

fn limits(server: &TestServer) -> Value {
    server.client().say("CONFIG GET client-output-buffer-limit")
}

#[test]
fn class_limits_are_set_individually() {
    let server = TestServer::start();
    let mut client = server.client();
    let name = bulk("client-output-buffer-limit");
    assert_eq!(limits(&server), array([name.clone(), bulk("normal 0 0 0 slave 0 0 0 pubsub 33554432 8388608 60")]));
    assert_eq!(client.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"]), ok());
    assert_eq!(limits(&server), array([name, bulk("normal 0 0 0 slave 0 0 0 pubsub 1048576 0 0")]));
    let refused = client.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb"]);
    assert!(matches!(refused, Value::Error(_)), "{refused:?}");
}

#[test]
fn non_reading_subscriber_is_dropped() {
    let server = TestServer::single();
    let (mut slow, mut other) = (server.client(), server.client());
    other.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"]);
    slow.say("SUBSCRIBE news");
    let message = "x".repeat(100_000);
    // Twice as much as the sockets' buffers hold.
    let heard = (0..1_000).map(|_| other.call(&["PUBLISH", "news", &message])).take_while(|heard| *heard == int(1));
    assert!(heard.count() < 1_000, "the server keeps messages without end");
    assert_eq!(other.say("PUBSUB NUMSUB news"), array([bulk("news"), int(0)]));
}

#[test]
fn client_with_oversized_reply_is_dropped() {
    let server = TestServer::single();
    let (mut slow, mut other) = (server.client(), server.client());
    let value = "x".repeat(15 << 20);
    other.call(&["SET", "k", &value]);
    other.call(&["CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0"]);
    slow.send(b"GET k\r\n");
    // The only loop has executed both, and the reply does not fit into the socket's buffers.
    assert_eq!(other.say("PING"), Value::Simple("PONG".into()));
    let received = slow.rest();
    assert!(received.len() < value.len(), "{} bytes came", received.len());
}

#[test]
fn idle_client_is_closed_subscribers_stay() {
    let server = TestServer::start();
    let (mut idle, mut subscriber, mut other) = (server.client(), server.client(), server.client());
    let began = Instant::now();
    idle.say("PING");
    subscriber.say("SUBSCRIBE news");
    assert_eq!(other.say("CONFIG SET timeout 1"), ok());
    assert!(idle.is_at_end());
    assert!(began.elapsed() >= Duration::from_secs(1));
    let mut other = server.client();
    assert_eq!(other.say("PUBLISH news x"), int(1));
    assert_eq!(
        other.say("CONFIG SET timeout -1"),
        error(
            "ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive"
        )
    );
}

/// Publishers wait for loops that have not taken their messages, and no waiting publisher is forgotten: all messages
/// arrive. The wait itself is tested in `messages/mod.rs`.
#[test]
fn paused_publishers_lose_no_messages() {
    let server = TestServer::with(Config { threads: 3, ..Config::default() });
    let mut subscribers: Vec<_> = (0..3).map(|_| server.client()).collect();
    subscribers.iter_mut().for_each(|subscriber| drop(subscriber.say("SUBSCRIBE news")));
    let (message, count) = ("x".repeat(200_000), 300);
    let heard = std::thread::scope(|scope| {
        for subscriber in &mut subscribers {
            let message = &message;
            scope.spawn(move || {
                for _ in 0..2 * count {
                    assert_eq!(subscriber.reply(), array([bulk("message"), bulk("news"), bulk(message)]));
                }
            });
        }
        let publishers: Vec<_> = (0..2)
            .map(|_| {
                let (mut publisher, message) = (server.client(), &message);
                scope.spawn(move || (0..count).all(|_| publisher.call(&["PUBLISH", "news", message]) == int(3)))
            })
            .collect();
        publishers.into_iter().all(|publisher| publisher.join().expect("it does not panic"))
    });
    assert!(heard);
}

/// Returns whether one client's line contains both words.
fn has_line(client: &mut Client, words: [&str; 2]) -> bool {
    let Value::Bulk(list) = client.say("CLIENT LIST") else { panic!("not a text") };
    let list = String::from_utf8(list).expect("a text");
    list.lines().any(|line| words.iter().all(|word| line.contains(word)))
}

fn waiting_bytes(client: &mut Client) -> usize {
    let Value::Bulk(info) = client.say("INFO memory") else { panic!("not a text") };
    let info = String::from_utf8(info).expect("a text");
    let figure = info.lines().find_map(|line| line.strip_prefix("messages_waiting_bytes:"));
    figure.and_then(|figure| figure.parse().ok()).expect("it is listed")
}

/// A loop is kept busy while its client receives more messages than it may leave unread.
#[test]
fn queued_messages_count_for_subscribers() {
    const MESSAGE_BYTES: usize = 1 << 20;
    let options = Options::new().durability(Durability::Buffered);
    let server = TestServer::of(&options, Config { threads: 2, ..Config::default() });
    // Clients are assigned to the loops in turn.
    let (mut publisher, mut subscriber, mut other, mut busy) =
        (server.client(), server.client(), server.client(), server.client());
    other.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 2mb 0 0"]);
    subscriber.say("SUBSCRIBE news");
    busy.say("CLIENT SETNAME busy");
    let stalled = Arc::new(RwLock::new(()));
    let end_of_stall = stalled.write().expect("nobody panics");
    stall_expiry(&server, &stalled);
    busy.send(b"SET k w\r\n");
    while !has_line(&mut other, [" name=busy ", " cmd=set "]) {
        std::thread::yield_now();
    }
    let message = "x".repeat(MESSAGE_BYTES);
    (0..3).for_each(|_| assert_eq!(publisher.call(&["PUBLISH", "news", &message]), int(1)));
    assert!(waiting_bytes(&mut other) >= 3 * MESSAGE_BYTES);
    drop(end_of_stall);
    assert_eq!(busy.reply(), ok());
    assert!(subscriber.rest().len() < 3 * MESSAGE_BYTES, "it was given up for what waited");
    assert_eq!(other.say("PUBSUB NUMSUB news"), array([bulk("news"), int(0)]));
    assert_eq!(waiting_bytes(&mut other), 0);
}

/// Makes every thread that removes an expired key wait for `stalled`; the reaper already does, and `k` has expired.
fn stall_expiry(server: &TestServer, stalled: &Arc<RwLock<()>>) {
    let (began, begins) = std::sync::mpsc::channel();
    let (began, stalled) = (Mutex::new(began), Arc::clone(stalled));
    let reported = move |_: &[u8]| {
        let _ = began.lock().expect("nobody panics").send(());
        drop(stalled.read());
    };
    server.store.on_expired(Some(Arc::new(reported))).expect("it is this process'");
    server.store.put_with("first", "v", PutOptions::new().ttl(Duration::from_millis(1))).expect("the store takes it");
    begins.recv().expect("the reaper comes");
    server.store.put_with("k", "v", PutOptions::new().ttl(Duration::from_millis(1))).expect("the store takes it");
    while server.store.contains("k").expect("it is read") {
        std::thread::yield_now();
    }
}

/// Time passes without any event on the connection.
#[test]
fn soft_limit_drops_idle_subscriber() {
    let server = TestServer::single();
    let (mut slow, mut other) = (server.client(), server.client());
    other.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 1mb 1"]);
    slow.say("SUBSCRIBE news");
    // More than the sockets' buffers hold, in one message.
    let message = "x".repeat(30 << 20);
    assert_eq!(other.call(&["PUBLISH", "news", &message]), int(1));
    while other.say("PUBSUB NUMSUB news") != array([bulk("news"), int(0)]) {
        std::thread::yield_now();
    }
    assert!(slow.rest().len() < message.len());
}

/// Replies are bounded in other ways, so only messages count for the limit on messages.
#[test]
fn long_replies_to_listeners_are_no_messages() {
    let server = TestServer::start();
    let mut other = server.client();
    let value = "x".repeat(2 << 20);
    assert_eq!(other.call(&["SET", "k", &value]), ok());
    assert_eq!(other.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"]), ok());
    let pipeline = encode(&["ECHO", &"x".repeat(1_000)]).repeat(32_000);
    for listen in ["CLIENT TRACKING ON", "SUBSCRIBE news"] {
        let mut client = server.client();
        client.say("HELLO 3");
        client.say(listen);
        client.converse([("GETRANGE k 0 -1", bulk(&value)), ("STRLEN k", int(2 << 20))]);
        client.send(&encode(&["GET", "k"]).repeat(40));
        (0..40).for_each(|number| assert!(client.reply() == bulk(&value), "{listen}: {number}"));
        client.send(&pipeline);
        (0..32_000).for_each(|_| assert_eq!(client.reply(), bulk("x".repeat(1_000))));
        // In the background.
        client.say("MULTI");
        (0..5).for_each(|_| drop(client.say("GETRANGE k 0 -1")));
        assert_eq!(client.say("EXEC"), array([(); 5].map(|()| bulk(&value))), "{listen}");
    }
}
