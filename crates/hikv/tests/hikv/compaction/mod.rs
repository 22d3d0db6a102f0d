//! Space given back: after much more was deleted and put again than a store holds, its file takes little more than that.

mod churn;
mod clearing;
mod snapshots;

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use std::{fs, thread};

use hikv::Store;
use tempfile::TempDir;

/// A directory on tmpfs, where there is one: a file's blocks are its pages there.
fn place() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// What the file takes, as the operating system counts.
fn allocated_bytes(store: &Store) -> u64 {
    fs::metadata(store.region_path()).unwrap().blocks() * 512
}

/// Until the background has done its part; how much it takes is seen from outside alone.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        thread::yield_now();
    }
}

fn assert_sound(store: &Store) {
    let report = store.verify(|_| {}).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}
