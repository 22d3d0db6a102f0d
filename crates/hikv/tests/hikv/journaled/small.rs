//! A new store occupies little of a disk, and grows as other stores do.

use std::fs;
use std::os::unix::fs::MetadataExt;

use hikv::{Options, Store};

use super::Place;

/// The limit of `docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`.
const NEW_BYTES_MAX: u64 = 1_750_000;
const GROWTH_BYTES: u64 = 4 << 20;
/// The unit of `stat`, whatever the file system's blocks are.
const BLOCK_BYTES: u64 = 512;

fn taken_bytes(place: &Place) -> u64 {
    let files = fs::read_dir(place.path()).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().blocks() * BLOCK_BYTES).sum()
}

#[test]
fn new_stores_take_little_of_a_disk() {
    let place = Place::new();
    let store = place.open(&Options::new());
    if store.stats().journal.is_none() {
        return;
    }
    store.put("session:1", "alice").unwrap();
    // The background has finished.
    while store.stats().awake_worker_count > 0 {
        std::thread::yield_now();
    }
    store.close().unwrap();
    assert!(taken_bytes(&place) < NEW_BYTES_MAX, "{} bytes", taken_bytes(&place));

    let store = place.open(&Options::new());
    for number in 0..100_u32 {
        store.put(number.to_be_bytes(), vec![number as u8; 10_000]).unwrap();
        let region_bytes = store.stats().region_bytes;
        assert!(region_bytes < GROWTH_BYTES || region_bytes.is_multiple_of(GROWTH_BYTES), "{region_bytes}");
    }
    drop(store);
    let store = Store::open_read_only(place.path()).unwrap();
    assert!(
        (0..100_u32).all(|number| store.get(number.to_be_bytes()).unwrap() == Some(vec![number as u8; 10_000].into()))
    );
}
