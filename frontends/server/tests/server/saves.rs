//! SAVE, BGSAVE and LASTSAVE: backups that open as stores.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;

use crate::common::{Client, TestServer, Value, bulk, error, ok};
use hikv::Store;
use server::{Config, Server, StopHandle};

fn value_in(backup: &Path, key: &str) -> Option<Vec<u8>> {
    Store::open_read_only(backup).expect("a backup opens as a store").get(key).unwrap().map(Vec::from)
}

fn field(client: &mut Client, name: &str) -> String {
    let Value::Bulk(info) = client.say("INFO persistence") else { panic!("INFO is not answered with a text") };
    let info = String::from_utf8(info).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name}")).to_owned()
}

#[test]
fn last_backup_is_of_last_save() {
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
fn failed_save_keeps_last_backup() {
    let place = tempfile::tempdir().unwrap();
    let backup = place.path().join("there");
    let mut server = TestServer::with(Config { backup_dir: Some(backup.clone()), ..Config::default() });
    let mut client = server.client();
    client.converse([("SET k 1", ok()), ("SAVE", ok()), ("SET k 2", ok())]);
    // A file that no interrupted backup leaves.
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

fn config(backup_dir: PathBuf) -> Config {
    Config { addrs: vec!["127.0.0.1:0".into()], backup_dir: Some(backup_dir), ..Config::default() }
}

#[test]
fn unusable_backup_place_is_refused_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/store");
    let store = Store::open(&path).unwrap();
    symlink(&path, dir.path().join("link")).unwrap();
    for place in ["data/store", "data/store/", "link", "data", "", "data/store/x", "data/store/backup/.."] {
        let bound = Server::bind(store.clone(), config(dir.path().join(place)), StopHandle::new());
        let error = bound.err().unwrap_or_else(|| panic!("'{place}' was taken"));
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().starts_with("backup-dir: "), "{error}");
    }
    assert!(Server::bind(store, config(path.join("backup")), StopHandle::new()).is_ok());
    let server = TestServer::start();
    let refused = server.client().call(&["CONFIG", "SET", "backup-dir", path.to_str().unwrap()]);
    assert_eq!(
        refused,
        error("ERR CONFIG SET failed (possibly related to argument 'backup-dir') - can't set immutable config")
    );
}

#[test]
fn nothing_but_the_last_backup_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let backup = place.path().join("letters");
    fs::create_dir(&backup).unwrap();
    fs::write(backup.join("dear"), "you").unwrap();
    let server = TestServer::with(Config { backup_dir: Some(backup.clone()), ..Config::default() });
    let mut client = server.client();
    client.converse([("SET k 1", ok())]);
    let Value::Error(text) = client.say("SAVE") else { panic!("it was saved") };
    assert!(text.contains("in the way, and nothing is removed"), "{text}");
    client.say("BGSAVE");
    while field(&mut client, "rdb_bgsave_in_progress") == "1" {
        thread::yield_now();
    }
    assert_eq!(field(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(fs::read(backup.join("dear")).unwrap(), b"you");
    assert_eq!(place.path().read_dir().unwrap().count(), 1);
    // As the text suggests.
    fs::rename(&backup, place.path().join("elsewhere")).unwrap();
    client.converse([("SAVE", ok()), ("SET k 2", ok()), ("SAVE", ok())]);
    assert_eq!(value_in(&backup, "k").as_deref(), Some(&b"2"[..]));
}
