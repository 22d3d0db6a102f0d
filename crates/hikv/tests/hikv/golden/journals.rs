//! Journals that killed processes of earlier releases left. The log contains all acknowledged writes, in that
//! release's version. Each journal opens, has its items, and continues in the present version.
//!
//! Each is a directory named after the log's version: `store.hikv.gz`, `journal.hikv.gz`, and `items.tsv.gz` as in an
//! image. That of a new version is made with `cargo test -p hikv --test hikv make_a_journal -- --ignored`.

use std::fs;
use std::path::{Path, PathBuf};

use hikv::{Durability, Options, Store};
use tempfile::TempDir;

use crate::golden::image::{Items, packed, parse_items, summary, text_of, unpacked};
use crate::golden::{assert_holds, assert_sound};

const NAMES: [&str; 2] = ["store.hikv", "journal.hikv"];

const ITEM_COUNT: usize = 300;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals")
}

/// Returns the directories of the journals of all versions.
fn journals() -> Vec<PathBuf> {
    let journals: Vec<_> = fs::read_dir(home()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!journals.is_empty(), "there are no journals");
    journals
}

fn unpack(journal: &Path) -> (TempDir, Items) {
    let dir = tempfile::tempdir().unwrap();
    for name in NAMES {
        fs::write(dir.path().join(name), unpacked(&journal.join(format!("{name}.gz")))).unwrap();
    }
    fs::write(dir.path().join("lock"), "").unwrap();
    (dir, parse_items(&journal.join("items.tsv.gz")))
}

#[test]
fn this_version_of_the_journal_is_kept() {
    assert!(home().join(format!("v{}", journal::layout::VERSION)).is_dir());
}

#[test]
fn killed_release_store_is_read_then_written() {
    for journal in journals() {
        let (dir, mut items) = unpack(&journal);
        let contents = || NAMES.map(|name| fs::read(dir.path().join(name)).unwrap());
        let before = contents();
        let store = Store::open_read_only(dir.path()).unwrap_or_else(|error| panic!("{}: {error}", journal.display()));
        assert_holds(&store, &items);
        assert_sound(&store, &items);
        drop(store);
        assert!(contents() == before, "{} was changed by reading", journal.display());
        for round in 0..2 {
            let store = Store::open(dir.path()).unwrap_or_else(|error| panic!("{}: {error}", journal.display()));
            assert_holds(&store, &items);
            let key = format!("after {round}").into_bytes();
            store.put(&key, b"new").unwrap();
            items.insert(key, summary(b"new"));
        }
        let store = Store::open(dir.path()).unwrap();
        assert_holds(&store, &items);
        assert_sound(&store, &items);
    }
}

#[test]
#[ignore = "makes a new journal, once for each version of the log"]
fn make_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        Options::new().tuning(|tuning| tuning.partition_count(1)).background(false).durability(Durability::Power);
    let store = options.open(dir.path()).unwrap();
    let mut items = Items::new();
    for i in 0..ITEM_COUNT {
        let (key, value) = (format!("key {i}").into_bytes(), vec![i as u8; i % 200]);
        store.put(&key, &value).unwrap();
        items.insert(key, summary(&value));
    }
    // As a killed process leaves them.
    let home = home().join(format!("v{}", journal::layout::VERSION));
    fs::create_dir_all(home.parent().unwrap()).unwrap();
    fs::create_dir(&home).unwrap_or_else(|error| panic!("a journal is never replaced: {}: {error}", home.display()));
    for name in NAMES {
        fs::write(home.join(format!("{name}.gz")), packed(&fs::read(dir.path().join(name)).unwrap())).unwrap();
    }
    fs::write(home.join("items.tsv.gz"), packed(text_of(&items).as_bytes())).unwrap();
}
