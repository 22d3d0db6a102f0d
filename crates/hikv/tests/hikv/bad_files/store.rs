//! A small store to be damaged.

use std::fs;
use std::path::{Path, PathBuf};

use hikv::{Durability, OpenError, Options, Report, Store};
use tempfile::TempDir;

pub(crate) const ITEM_COUNT: usize = 200;

/// A closed store in a separate directory.
pub(crate) struct Closed {
    home: TempDir,
}

pub(crate) fn key(i: usize) -> Vec<u8> {
    format!("the key of item {i:04}").into_bytes()
}

pub(crate) fn value(i: usize) -> Vec<u8> {
    format!("the value of item {i:04}").repeat(3).into_bytes()
}

impl Closed {
    /// Creates a store with [`ITEM_COUNT`] items whose file is the region, without a journal.
    pub(crate) fn new() -> Closed {
        let home = tempfile::tempdir().unwrap();
        let options = Options::new().tuning(|tuning| tuning.partition_count(1)).durability(Durability::Process);
        let store = options.open(home.path().join("store")).unwrap();
        (0..ITEM_COUNT).for_each(|i| store.put(key(i), value(i)).unwrap());
        drop(store);
        Closed { home }
    }

    /// Returns the store's directory.
    pub(crate) fn path(&self) -> PathBuf {
        self.home.path().join("store")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path().join("store.hikv")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.file()).unwrap()
    }

    /// Changes the region's bytes.
    pub(crate) fn alter(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.bytes();
        change(&mut bytes);
        fs::write(self.file(), bytes).unwrap();
    }

    /// Flips the lowest bit of the byte at `at`.
    pub(crate) fn flip(&self, at: usize) {
        self.alter(|bytes| bytes[at] ^= 1);
    }

    /// Returns the offset of a text that the region contains once.
    pub(crate) fn find(&self, text: &[u8]) -> usize {
        let bytes = self.bytes();
        let mut found = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
        let at = found.next().expect("the region holds the text").0;
        assert!(found.next().is_none(), "the region holds the text twice");
        at
    }

    /// Asserts that opening fails, for writing and for reading, and that the file does not change. The error's text is
    /// a plain sentence that names the store's path and contains each of `parts`.
    pub(crate) fn assert_refused(&self, parts: &[&str]) {
        let before = self.bytes();
        for error in [Store::open(self.path()).unwrap_err(), Store::open_read_only(self.path()).unwrap_err()] {
            assert_names(&error, &self.path(), parts);
        }
        assert!(self.bytes() == before, "the refused file was changed");
    }

    /// Asserts that the store opens, has no damage, and has every item.
    pub(crate) fn assert_intact(&self) {
        for options in [Options::new().read_only(true), Options::new()] {
            let store = options.open(self.path()).unwrap();
            assert_holds(&store, 0..ITEM_COUNT);
            assert_eq!(verify(&store), Report { items: ITEM_COUNT as u64, damage: vec![] });
        }
    }
}

/// Asserts that the error's text is a plain sentence that names `path` and contains each of `parts`.
pub(crate) fn assert_names(error: &OpenError, path: &Path, parts: &[&str]) {
    let text = error.to_string();
    assert_plain(&text);
    for part in [path.to_str().unwrap()].iter().chain(parts) {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

/// Asserts that the text is one line without debug output and without a full stop.
pub(crate) fn assert_plain(text: &str) {
    let is_plain = !text.is_empty() && !text.contains(['\n', '{', '}', '"']) && !text.ends_with('.');
    assert!(is_plain, "not a plain sentence: {text}");
}

pub(crate) fn assert_holds(store: &Store, items: impl IntoIterator<Item = usize>) {
    for i in items {
        assert_eq!(store.get(key(i)).unwrap(), Some(value(i).into()), "item {i}");
    }
}

pub(crate) fn verify(store: &Store) -> Report {
    store.verify(|_| {}).unwrap()
}
