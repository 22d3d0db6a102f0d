//! Returned space: after deletes and re-inserts of much more than a store holds, its file occupies little more than
//! its items.
//!
//! On a busy machine, a stalled reader of another test's store keeps deleted items while it is stalled (`alone`). So
//! tests wait until the items are free, or compact again.

mod churn;
mod clearing;
mod engines;
mod snapshots;

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use std::{fs, thread};

use hikv::{Error, Options, Store};
use tempfile::TempDir;

/// Returns a directory on tmpfs, if there is one: a file's blocks are its pages there.
fn place() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Returns the bytes that the file occupies, as the operating system counts them.
fn allocated_bytes(store: &Store) -> u64 {
    fs::metadata(hikv::FrontEnd::of(store).region_path()).unwrap().blocks() * 512
}

/// Waits until the background has done its work; its progress is only visible from outside.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        thread::yield_now();
    }
}

/// Writes until most deleted or replaced items are free and may be compacted: each write frees some of them.
fn free_most(store: &Store) {
    const GARBAGE_COUNT_MAX: u64 = 1_000;
    wait_until("what was deleted is free", || {
        store.put("written", "again").unwrap();
        store.stats().garbage_count < GARBAGE_COUNT_MAX
    });
}

/// Compacts on request, repeatedly if a reader has kept items.
pub(crate) fn compact_until(store: &Store, is_so: impl Fn() -> bool) {
    wait_until("space given back by request", || {
        store.compact(|_| {}).unwrap();
        is_so()
    });
}

fn assert_sound(store: &Store) {
    let report = store.verify(|_| {}).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

#[test]
fn progress_callback_may_use_store() {
    let dir = place();
    let store = Options::new()
        .durability(hikv::Durability::Process)
        .tuning(|tuning| tuning.compact_above(None))
        .open(dir.path())
        .unwrap();
    for number in 0..20_000u32 {
        store.put(number.to_be_bytes(), [7; 200]).unwrap();
    }
    for number in (0..20_000u32).filter(|number| number % 10 > 0) {
        store.delete(number.to_be_bytes()).unwrap();
    }
    free_most(&store);
    let mut called_count = 0;
    let use_it = |_| {
        called_count += 1;
        assert!(matches!(store.compact(|_| {}), Err(Error::InsideCallback)));
        store.put("told", called_count.to_string()).unwrap();
        assert_sound(&store);
    };
    assert!(store.compact(use_it).unwrap().moved_items > 0);
    assert!(called_count > 0);
    assert_eq!(store.get("told").unwrap(), Some(called_count.to_string().into_bytes().into()));
    store.compact(|_| {}).unwrap();
    assert_sound(&store);
}
