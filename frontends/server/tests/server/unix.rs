//! Clients of the Unix socket.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use server::{Config, Parameters};

use crate::common::{Client, TestServer, Value, array, bulk, ok};

#[test]
fn clients_come_by_a_path() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("hikv.sock");
    let server = TestServer::with(Config { threads: 2, unix: Some((path.clone(), Some(0o700))), ..Config::default() });
    assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o700);
    let mut client = Client::over(UnixStream::connect(&path).expect("it listens"));
    let (mut other, mut monitor) = (server.client(), server.client());
    assert_eq!(monitor.say("MONITOR"), ok());
    client.converse([("SET k v", ok()), ("GET k", bulk("v"))]);
    assert_eq!(other.say("GET k"), bulk("v"));
    let line = monitor.line();
    assert!(line.contains(&format!(" [0 unix:{}] ", path.display())), "{line}");
    let Value::Bulk(list) = other.say("CLIENT LIST") else { panic!("not a text") };
    let list = String::from_utf8(list).expect("a text");
    let shown = format!(" addr={0}:0 laddr={0}:0 ", path.display());
    assert!(list.lines().any(|line| line.contains(&shown) && line.contains(" flags=U ")), "{list}");
    let pair = array([bulk("unixsocket"), bulk(path.to_str().expect("a text"))]);
    assert_eq!(other.say("CONFIG GET unixsocket"), pair);
    assert_eq!(other.say("CONFIG GET unixsocketperm"), array([bulk("unixsocketperm"), bulk("700")]));
    // Long values in both directions.
    let value = crate::common::patterned(3 << 20);
    assert_eq!(client.call(&[b"SET", &b"long"[..], &value]), ok());
    assert_eq!(client.call(&["GET", "long"]), bulk(&value));
    drop(server);
    assert!(!path.exists(), "it goes with the server");
}

#[test]
fn parameters_name_the_socket() {
    let mut parameters = Parameters::default();
    parameters.set("unixsocket", "/run/hikv.sock").expect("a path");
    assert_eq!(parameters.config().unix, Some(("/run/hikv.sock".into(), None)));
    parameters.set("unixsocketperm", "770").expect("a mode");
    assert_eq!(parameters.config().unix, Some(("/run/hikv.sock".into(), Some(0o770))));
    assert!(parameters.set("unixsocketperm", "1777").is_err() && parameters.set("unixsocketperm", "rwx").is_err());
}
