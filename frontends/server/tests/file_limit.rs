//! Exhaustion of file descriptors. The limit applies to the process, so this test has its own process.

#[path = "server/common.rs"]
mod common;

use std::fs::File;

use common::{TestServer, Value};
use rustix::process::{Resource, getrlimit, setrlimit};

#[test]
fn connection_waits_for_file_descriptor() {
    let server = TestServer::single();
    let mut first = server.client();
    assert_eq!(first.say("SET k v"), Value::Simple("OK".into()));

    let before = getrlimit(Resource::Nofile);
    let mut lowered = before;
    lowered.current = Some(64);
    setrlimit(Resource::Nofile, lowered).expect("a limit can be lowered");
    let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    // One for the client's side; none is left for the server's side.
    files.pop();
    let mut second = server.client();
    second.send(b"GET k\r\n");
    assert_eq!(first.say("GET k"), Value::Bulk(b"v".into()));
    files.pop();
    assert_eq!(second.reply(), Value::Bulk(b"v".into()));
    setrlimit(Resource::Nofile, before).expect("the old limit can be had back");
}
