//! Tests stores whose files are removed or moved while they are open.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::serve::Serving;
use crate::support::{Place, hikv};

/// Starts a server with an HTTP port for health.
pub(crate) fn watched(place: &Place, options: &[&str]) -> Serving {
    let arguments = ["--addr", "127.0.0.1:0", "--threads", "1", "--http", "127.0.0.1:0"];
    Serving::spawned(hikv("serve", &place.store(), &[&arguments, options].concat()))
}

/// Returns the response to an HTTP request.
pub(crate) fn shown(serving: &Serving, path: &str) -> String {
    let (_, address) = serving.banner().split_once("http://").unwrap();
    let mut socket = TcpStream::connect(address.split('/').next().unwrap()).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the first line of the reply to a request.
pub(crate) fn answered(serving: &Serving, request: &str) -> String {
    first_line(serving, request).expect("an answer")
}

/// Like [`answered`]; `None` if the server closes the connection.
fn first_line(serving: &Serving, request: &str) -> Option<String> {
    let mut socket = serving.connect();
    let words: Vec<String> = request.split(' ').map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    write!(socket, "*{}\r\n{}QUIT\r\n", words.len(), words.concat()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.lines().next().map(str::to_owned)
}

#[test]
fn removed_journals_acknowledge_nothing() {
    let place = Place::new();
    let serving = watched(&place, &["--durability", "power"]);
    assert_eq!(answered(&serving, "SET before 1"), "+OK");
    fs::remove_dir_all(place.store()).unwrap();
    // The reply to a write whose sync fails is not sent: the connection ends.
    let first = first_line(&serving, "SET after 1");
    assert!(first.as_ref().is_none_or(|refusal| refusal.starts_with("-ERR ")), "{first:?}");
    let refusal = answered(&serving, "SET after 2");
    assert!(refusal.starts_with("-ERR ") && refusal.contains("removed"), "{refusal}");
    assert_eq!(serving.ask(b"GET before\r\n", 7), b"$1\r\n1\r\n", "reads go on");
    let health = shown(&serving, "/health/serving");
    assert!(health.contains(" 503 ") && health.contains("\"status\":\"removed\""), "{health}");
    assert!(shown(&serving, "/metrics").contains("hikv_files_in_place 0"));
    serving.signal(Signal::TERM);
    serving.ended().failed(2, &["removed"]);
}

/// The region's file has no part in a sync of the log, and a truncated file keeps its name. A value of a new size makes
/// the region longer, which must not hide that its file was truncated. Health and errors give the reason, also if no
/// write comes as far as a sync.
#[test]
fn lost_files_end_acknowledgements() {
    let new_size = "z".repeat(100);
    for (file, value) in [("store.hikv", "1"), ("store.hikv", &new_size), ("journal.hikv", "1")] {
        for length in [None, Some(0), Some(8192)] {
            let place = Place::new();
            let serving = watched(&place, &["--durability", "power"]);
            assert_eq!(answered(&serving, "SET before 1"), "+OK");
            let path = place.store().join(file);
            let reason = match length {
                None => {
                    fs::remove_file(path).unwrap();
                    "removed"
                }
                Some(length) => {
                    fs::File::options().write(true).open(path).unwrap().set_len(length).unwrap();
                    "truncated"
                }
            };
            for key in 0..5 {
                let first = first_line(&serving, &format!("SET after{key} {value}"));
                let is_refused =
                    first.as_ref().is_none_or(|refusal| refusal.starts_with("-ERR ") && refusal.contains(reason));
                assert!(is_refused, "{file}, {length:?}: {first:?}");
            }
            assert!(shown(&serving, "/health").contains(" 503 "), "{file}, {length:?}");
            assert_eq!(serving.ask(b"GET before\r\n", 7), b"$1\r\n1\r\n", "reads go on");
            serving.signal(Signal::TERM);
            serving.ended().failed(2, &[]);
        }
    }
}

#[test]
fn removed_memory_is_noticed_by_the_background() {
    Place::on_tmpfs(64, |place| {
        let serving = watched(place, &[]);
        assert_eq!(answered(&serving, "SET before 1"), "+OK");
        fs::remove_file(place.store().join("store.hikv")).unwrap();
        // The server checks its files once a second.
        while answered(&serving, "SET after 1") == "+OK" {}
        assert!(answered(&serving, "SET after 1").contains("removed"));
        assert_eq!(serving.ask(b"GET before\r\n", 7), b"$1\r\n1\r\n", "reads go on");
        assert!(shown(&serving, "/health").contains("\"status\":\"removed\""));
        serving.signal(Signal::TERM);
        let ended = serving.ended();
        assert!(ended.messages().contains("the store's files were removed"), "{}", ended.messages());
        ended.failed(2, &["removed"]);
    });
}

#[test]
fn moved_stores_save_into_no_other() {
    let place = Place::new();
    let serving = watched(&place, &[]);
    assert_eq!(answered(&serving, "SET k 1"), "+OK");
    assert_eq!(answered(&serving, "SAVE"), "+OK");
    let elsewhere = place.file("elsewhere");
    fs::rename(place.store(), &elsewhere).unwrap();
    let refusal = answered(&serving, "SAVE");
    assert!(refusal.contains("moved"), "{refusal}");
    assert!(!place.store().exists(), "nothing was made in the old place");
    place.run("put", &["another", "store"]).succeeded();
    let names = |dir| fs::read_dir(dir).unwrap().count();
    let before = names(place.store());
    assert!(answered(&serving, "SAVE").contains("moved"));
    assert_eq!(names(place.store()), before, "nothing was put into another store");
    assert_eq!(answered(&serving, "SET k 2"), "+OK", "writes are as durable as before");
    let health = shown(&serving, "/health");
    assert!(health.contains(" 200 ") && health.contains("were moved"), "{health}");
    fs::remove_dir_all(place.store()).unwrap();
    fs::rename(&elsewhere, place.store()).unwrap();
    assert_eq!(answered(&serving, "SAVE"), "+OK");
    assert!(shown(&serving, "/health").contains("\"reason\":\"\""));
    serving.stop(Signal::TERM);
    assert_eq!(place.run("get", &["k"]).succeeded(), b"2");
}
