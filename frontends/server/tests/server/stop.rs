//! Stopping: received requests are answered, all clients are disconnected, and no client can prevent it.

use std::time::Duration;

use crate::common::{TestServer, Value, bulk, error, ok, patterned};
use server::Config;

#[test]
fn received_requests_are_answered_at_stop() {
    let drain_max = Duration::from_secs(3_600);
    let mut server = TestServer::with(Config { drain_max, ..Config::default() });
    let mut idle = server.client();
    assert_eq!(idle.say("SET kept yes"), ok());
    let mut busy = server.client();
    let large = patterned(20 << 20);
    busy.call(&[b"SET", &b"large"[..], &large]);
    busy.send(b"PING\r\nGET large\r\nGET large\r\nSET last 1\r\nPING end\r\n");
    assert_eq!(busy.reply(), Value::Simple("PONG".into()));
    server.stop.stop();
    assert_eq!(busy.reply(), bulk(&large));
    assert_eq!(busy.reply(), bulk(&large));
    assert_eq!(busy.reply(), ok());
    assert_eq!(busy.reply(), bulk("end"));
    assert!(busy.is_at_end() && idle.is_at_end());
    server.join().expect("the server ends without an error");
    assert!(server.store.contains("kept").expect("the store reads") && server.store.contains("last").expect("it does"));
    assert!(std::net::TcpStream::connect(server.addr).is_err());
}

#[test]
fn non_reading_client_is_closed_at_stop() {
    let mut server = TestServer::with(Config { drain_max: Duration::from_millis(50), ..Config::default() });
    let mut client = server.client();
    client.call(&[b"SET", &b"large"[..], &patterned(64 << 20)]);
    client.send(b"PING\r\nGET large\r\n");
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
    server.stop.stop();
    server.join().expect("the server ends without an error");
}

#[test]
fn stopped_before_it_runs() {
    let mut server = TestServer::start();
    server.stop.stop();
    server.stop.stop();
    server.join().expect("the server ends without an error");
}

/// As in Redis, contradictory options stop nothing.
#[test]
fn shutdown_refuses_contradictions() {
    let mut server = TestServer::start();
    let mut client = server.client();
    let refused = || error("ERR syntax error");
    client.converse([
        ("SHUTDOWN NOSAVE SAVE", refused()),
        ("SHUTDOWN SAVE NOW NOSAVE", refused()),
        ("SHUTDOWN ABORT NOW", refused()),
        ("SHUTDOWN WHAT", refused()),
        ("SHUTDOWN ABORT", error("ERR No shutdown in progress.")),
        ("PING", Value::Simple("PONG".into())),
    ]);
    client.send(b"SHUTDOWN NOSAVE NOW\r\n");
    assert!(client.is_at_end());
    server.join().expect("the server ends without an error");
}
