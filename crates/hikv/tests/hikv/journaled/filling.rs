//! Logs that fill up, and writers that share a sync.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hikv::{Durability, Options, Store};

use crate::journaled::{Place, buffered, copied};

const THREAD_COUNT: u64 = 4;
const VALUE_BYTES: usize = 4_000;

fn key(thread: u64, number: u64) -> Vec<u8> {
    format!("{thread} {number}").into_bytes()
}

/// Sets the smallest possible log.
fn small_log(options: Options) -> Options {
    options.tuning(|tuning| tuning.log_bytes_max(8 << 20))
}

/// Each thread puts its keys in order. Asserts that a prefix of at least `acknowledged` of them exists.
fn assert_prefixes(store: &Store, acknowledged: &[u64]) {
    for (thread, &count) in (0..).zip(acknowledged) {
        for number in 0..count {
            let value = store.get(key(thread, number)).unwrap();
            assert_eq!(value, Some(vec![number as u8; VALUE_BYTES].into()), "key {number} of thread {thread}");
        }
        let later = (count + 1..count + 100).filter(|&number| store.contains(key(thread, number)).unwrap()).count();
        assert_eq!(later, 0, "keys of thread {thread} that it had not come to");
    }
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

#[test]
fn full_log_makes_writers_wait() {
    const PUT_COUNT: u64 = 3_000;
    let place = Place::new();
    let store = place.open(&small_log(buffered()));
    thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            let store = &store;
            scope.spawn(move || {
                (0..PUT_COUNT).for_each(|number| store.put(key(thread, number), [number as u8; VALUE_BYTES]).unwrap());
            });
        }
    });
    assert_prefixes(&store, &[PUT_COUNT; THREAD_COUNT as usize]);
    let log_bytes = std::fs::metadata(place.log()).unwrap().len();
    assert!(log_bytes <= 8 << 20, "the log has {log_bytes} bytes");
    assert_prefixes(&copied(&place).open(&buffered()), &[PUT_COUNT; THREAD_COUNT as usize]);
    store.close().unwrap();
    assert_prefixes(&place.open(&buffered()), &[PUT_COUNT; THREAD_COUNT as usize]);
}

/// A copy of the files made while threads write has at least the writes that were acknowledged before the copy began.
#[test]
fn shared_sync_acknowledges_nothing_early() {
    const PUT_COUNT: u64 = 200;
    let place = Place::new();
    let store =
        place.open(&small_log(Options::new().tuning(|tuning| tuning.partition_count(1)).durability(Durability::Power)));
    let acknowledged: [AtomicU64; THREAD_COUNT as usize] = Default::default();
    thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            let (store, acknowledged) = (&store, &acknowledged[thread as usize]);
            scope.spawn(move || {
                for number in 0..PUT_COUNT {
                    store.put(key(thread, number), [number as u8; VALUE_BYTES]).unwrap();
                    acknowledged.store(number + 1, Ordering::Release);
                }
            });
        }
    });
    let counts = acknowledged.map(AtomicU64::into_inner);
    assert_prefixes(&copied(&place).open(&buffered()), &counts);
}

#[test]
fn unsynced_writes_are_synced_soon() {
    let place = Place::new();
    let store = place.open(&buffered().sync_interval(std::time::Duration::from_millis(1)));
    store.put("k", "v").unwrap();
    store.sync().unwrap();
    assert_eq!(copied(&place).open(&buffered()).get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// A store with few items occupies little of a disk: when it is new, after loading and closing, and after opening
/// again. Its log grows with the amount written. A file system that does not report holes may return their space late,
/// or never.
#[test]
fn log_has_reserved_space() {
    let place = Place::new();
    let options = Options::new().durability(Durability::Buffered);
    let taken_bytes = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().blocks() * 512;
    let store = place.open(&options);
    store.put("key", "value").unwrap();
    let new_bytes = [taken_bytes(place.log()), taken_bytes(hikv::FrontEnd::of(&store).region_path().to_owned())];
    assert!(new_bytes[0] <= 256 << 10 && new_bytes[1] <= 4608 << 10, "{new_bytes:?}");
    for number in 0..3_000 {
        store.put(key(0, number), [0; VALUE_BYTES]).unwrap();
    }
    assert!(taken_bytes(place.log()) > 4 << 20, "12 MB were written");
    store.close().unwrap();
    assert!(taken_bytes(place.log()) <= 256 << 10, "{}", taken_bytes(place.log()));
    let store = place.open(&options);
    assert_eq!(store.len().unwrap(), 3_001);
    store.put("key", "another").unwrap();
    assert!(taken_bytes(place.log()) <= 256 << 10, "{}", taken_bytes(place.log()));
}
