//! Files that are not stores, and stores with a missing part.

use std::fs::{self, File};

use hikv::Store;

use crate::bad_files::store::{Closed, assert_names};

#[test]
fn foreign_file_is_refused() {
    let store = Closed::new();
    store.alter(|bytes| *bytes = b"\x89PNG\r\n\x1a\n".iter().chain(&[7; 9_000]).copied().collect());
    store.assert_refused(&["store.hikv", "not a hikv store"]);
    store.alter(|bytes| *bytes = "To be, or not to be. ".repeat(10_000).into_bytes());
    store.assert_refused(&["not a hikv store"]);
}

#[test]
fn file_under_one_page_is_refused() {
    let store = Closed::new();
    for len in [0, 1, 4_095] {
        store.alter(|bytes| bytes.truncate(len));
        store.assert_refused(&["store.hikv", &format!("{len} bytes"), "4096"]);
        store.alter(|bytes| bytes.resize(4_096, 0));
    }
}

#[test]
fn file_of_zeroes_is_refused() {
    let store = Closed::new();
    for len in [4_096, 1 << 20] {
        store.alter(|bytes| *bytes = vec![0; len]);
        store.assert_refused(&["never formatted"]);
    }
}

#[test]
fn truncated_file_is_refused_until_restored() {
    let store = Closed::new();
    let whole = store.bytes();
    for len in [4_096, 8_192, 65_536, 1 << 20, whole.len() - 4_096, whole.len() - 1] {
        store.alter(|bytes| bytes.truncate(len));
        let left = (len - len % 4_096).to_string();
        store.assert_refused(&["store.hikv", &whole.len().to_string(), &left]);
        store.alter(|bytes| bytes.clone_from(&whole));
    }
    store.assert_intact();
}

#[test]
fn longer_file_opens() {
    let store = Closed::new();
    store.alter(|bytes| bytes.extend([0xEE; 100_000]));
    store.assert_intact();
}

/// A crash during growth leaves such a file.
#[test]
fn holes_at_file_end_are_filled() {
    let store = Closed::new();
    let len = store.bytes().len() as u64;
    File::options().write(true).open(store.file()).unwrap().set_len(len + (1 << 20)).unwrap();
    store.assert_intact();
}

#[test]
fn next_creation_removes_interrupted_one() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("store.hikv.new"), [7; 100_000]).unwrap();
    let missing = Store::open_read_only(dir.path()).unwrap_err();
    assert_names(&missing, dir.path(), &["no store"]);
    let store = Store::open(dir.path()).unwrap();
    store.put("a", "1").unwrap();
    assert!(!dir.path().join("store.hikv.new").exists());
}
