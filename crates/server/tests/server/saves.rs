//! SAVE, BGSAVE and LASTSAVE: backups that open as stores.

use std::path::Path;
use std::thread;

use crate::common::{Client, TestServer, Value, bulk, error, ok};
use hikv::Store;
use server::Config;

fn value_in(backup: &Path, key: &str) -> Option<Vec<u8>> {
    Store::open_read_only(backup).expect("a backup opens as a store").get(key).unwrap()
}

fn field(client: &mut Client, name: &str) -> String {
    let Value::Bulk(info) = client.say("INFO persistence") else { panic!("INFO is not answered with a text") };
    let info = String::from_utf8(info).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name}")).to_owned()
}

#[test]
fn the_last_backup_is_of_the_last_save() {
    let server = TestServer::start();
    let (mut client, backup) = (server.client(), server.store.path().join("backup"));
    let Value::Integer(started) = client.say("LASTSAVE") else { panic!("LASTSAVE is a number") };
    client.converse([("SET k 1", ok()), ("SAVE", ok()), ("SET k 2", ok())]);
    assert_eq!(value_in(&backup, "k").as_deref(), Some(&b"1"[..]));
    assert_eq!(client.say("BGSAVE"), Value::Simple("Background saving started".into()));
    while field(&mut client, "rdb_bgsave_in_progress") == "1" {
        thread::yield_now();
    }
    assert_eq!((field(&mut client, "rdb_last_bgsave_status").as_str(), client.say("GET k")), ("ok", bulk("2")));
    assert_eq!(value_in(&backup, "k").as_deref(), Some(&b"2"[..]));
    let Value::Integer(last) = client.say("LASTSAVE") else { panic!("LASTSAVE is a number") };
    assert!(last >= started && last.to_string() == field(&mut client, "rdb_last_save_time"));
    assert_eq!(client.say("BGSAVE NOW"), error("ERR syntax error"));
    let names: Vec<_> = backup.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("backup.")), "{names:?}");
}

#[test]
fn a_save_that_fails_is_said_and_leaves_the_last_backup() {
    let place = tempfile::tempdir().unwrap();
    let backup = place.path().join("there");
    let mut server = TestServer::with(Config { backup_dir: Some(backup.clone()), ..Config::default() });
    let mut client = server.client();
    client.converse([("SET k 1", ok()), ("SAVE", ok()), ("SET k 2", ok())]);
    // Something that no interrupted backup has left.
    let occupied = place.path().join("there.new.partial");
    std::fs::create_dir(&occupied).unwrap();
    std::fs::write(occupied.join("something else"), "").unwrap();
    let Value::Error(text) = client.say("SAVE") else { panic!("it was saved") };
    assert!(text.contains("something else"), "{text}");
    assert_eq!(field(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(value_in(&backup, "k").as_deref(), Some(&b"1"[..]));
    std::fs::remove_dir_all(&occupied).unwrap();
    client.send(b"SHUTDOWN SAVE\r\n");
    assert!(client.is_at_end());
    server.join().unwrap();
    assert_eq!(value_in(&backup, "k").as_deref(), Some(&b"2"[..]));
}
