//! Stores with a journal, on the file system of the temporary directory: several threads, full logs, damaged logs. If
//! that directory is in memory, there is no journal, and these tests check nothing.

mod copy_on_write;
mod damage;
mod filling;
mod levels;
mod loading;
mod small;

use std::fs;
use std::path::PathBuf;

use hikv::{Durability, Options, Store};
use tempfile::TempDir;

/// A directory for a journaled store.
struct Place {
    home: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { home: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("store")
    }

    fn log(&self) -> PathBuf {
        self.path().join("journal.hikv")
    }

    fn open(&self, options: &Options) -> Store {
        options.open(self.path()).unwrap()
    }
}

/// Acknowledged once the kernel has the write, which is the fastest level.
fn buffered() -> Options {
    Options::new().tuning(|tuning| tuning.partition_count(1)).durability(Durability::Buffered)
}

/// Copies the store's files in their present state, which a killed process would leave.
fn copied(place: &Place) -> Place {
    let copy = Place::new();
    fs::create_dir(copy.path()).unwrap();
    for name in ["store.hikv", "journal.hikv"] {
        fs::copy(place.path().join(name), copy.path().join(name)).unwrap();
    }
    copy
}
