//! Space given back: after much more was deleted and put again than a store holds, its file takes little more than that.

mod churn;
mod clearing;
mod snapshots;

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use std::{fs, thread};

use hikv::{Error, Options, Store};
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

#[test]
fn who_is_told_of_progress_may_use_the_store_but_for_compacting_it() {
    let dir = place();
    let store = Options::new().durability(hikv::Durability::Process).compact_above(None).open(dir.path()).unwrap();
    for number in 0..20_000u32 {
        store.put(number.to_be_bytes(), [7; 200]).unwrap();
    }
    for number in (0..20_000u32).filter(|number| number % 10 > 0) {
        store.delete(number.to_be_bytes()).unwrap();
    }
    let mut called_count = 0;
    let use_it = |_| {
        called_count += 1;
        assert!(matches!(store.compact(|_| {}), Err(Error::InsideCallback)));
        store.put("told", called_count.to_string()).unwrap();
        assert_sound(&store);
    };
    assert!(store.compact(use_it).unwrap().moved_items > 0);
    assert!(called_count > 0);
    assert_eq!(store.get("told").unwrap(), Some(called_count.to_string().into_bytes()));
    store.compact(|_| {}).unwrap();
    assert_sound(&store);
}
