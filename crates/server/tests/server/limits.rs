//! What a client may leave unread, and how long it may say nothing.

use std::time::{Duration, Instant};

use crate::common::{TestServer, Value, array, bulk, error, int, ok};
use server::Config;

fn limits(server: &TestServer) -> Value {
    server.client().say("CONFIG GET client-output-buffer-limit")
}

#[test]
fn limits_of_classes_are_set_one_by_one() {
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
fn a_subscriber_that_does_not_read_is_given_up() {
    let server = TestServer::single();
    let (mut slow, mut other) = (server.client(), server.client());
    other.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"]);
    slow.say("SUBSCRIBE news");
    let message = "x".repeat(100_000);
    // More than the sockets' buffers hold, and as much again.
    let heard = (0..1_000).map(|_| other.call(&["PUBLISH", "news", &message])).take_while(|heard| *heard == int(1));
    assert!(heard.count() < 1_000, "the server keeps messages without end");
    assert_eq!(other.say("PUBSUB NUMSUB news"), array([bulk("news"), int(0)]));
}

#[test]
fn a_client_is_given_up_whose_one_reply_is_too_long() {
    let server = TestServer::single();
    let (mut slow, mut other) = (server.client(), server.client());
    let value = "x".repeat(15 << 20);
    other.call(&["SET", "k", &value]);
    other.call(&["CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0"]);
    slow.send(b"GET k\r\n");
    let received = slow.rest();
    assert!(received.len() < value.len(), "{} bytes came", received.len());
    assert_eq!(other.say("PING"), Value::Simple("PONG".into()));
}

#[test]
fn who_says_nothing_is_closed_after_the_timeout_but_for_subscribers() {
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

/// Publishers wait for loops that have not taken their letters: all messages come, and little memory is used meanwhile.
#[test]
fn messages_that_wait_for_a_loop_hold_publishers_back() {
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

/// Nothing happens on the connection, but time goes by.
#[test]
fn a_subscriber_over_its_soft_limit_is_given_up_though_nothing_more_comes() {
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
