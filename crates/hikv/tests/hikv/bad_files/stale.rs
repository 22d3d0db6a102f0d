//! A disk loses the write of a page: the page is stale, and all others are current. No key may return another key's
//! value.

use std::fs;
use std::path::Path;

use hikv::{Durability, EngineKind, Error, Options, Store};

use super::aged::home;

const PAGE_BYTES: usize = 4096;
pub(super) const KEY_COUNT: usize = 600;
/// The number of times that all values are replaced.
const ROUND_COUNT: usize = 6;

pub(super) fn key(i: usize) -> Vec<u8> {
    format!("key of item {i:05}").into_bytes()
}

/// Values of a few lengths, so that other keys' values reuse freed slots.
pub(super) fn value(i: usize, version: usize) -> Vec<u8> {
    format!("{i:05}, version {version}, ").bytes().cycle().take(40 + (i + version) % 3 * 100).collect()
}

/// Returns true if the value belongs to this key, at any time.
pub(super) fn is_of(key: &[u8], value: &[u8]) -> bool {
    key.ends_with(&value[..5])
}

/// Returns the region of a store before and after keys were deleted, replaced and added.
pub(super) fn regions_of(engine: EngineKind, first: usize) -> [Vec<u8>; 3] {
    let home = home();
    let options = Options::new()
        .engine(engine)
        .tuning(|tuning| tuning.partition_count(1))
        .background(false)
        .durability(Durability::Process);
    let store = options.open(home.path()).unwrap();
    let region = || fs::read(home.path().join("store.hikv")).unwrap();
    (0..KEY_COUNT).for_each(|i| store.put(key(i), value(i, first)).unwrap());
    let before = region();
    (0..KEY_COUNT).step_by(5).for_each(|i| assert!(store.delete(key(i)).unwrap()));
    // Values become longer or shorter, several times, so that they use other keys' slots.
    for round in 1..=ROUND_COUNT {
        let changed = (0..KEY_COUNT).filter(|i| i % 5 != 0).map(|i| (i * 7 + round * 100) % KEY_COUNT);
        changed.for_each(|i| store.put(key(i), value(i, first + round + i % 2)).unwrap());
    }
    (KEY_COUNT..KEY_COUNT + KEY_COUNT / 4).for_each(|i| store.put(key(i), value(i, first)).unwrap());
    let after = region();
    store.close().unwrap();
    [before, after, region()]
}

/// Reads everything. Returns the number of errors.
fn read_all(store: &Store, engine: EngineKind, page: usize) -> usize {
    let mut error_count = 0;
    for i in 0..KEY_COUNT + KEY_COUNT / 4 {
        match store.get(key(i)) {
            Ok(Some(value)) => assert!(is_of(&key(i), &value), "{engine:?}, page {page}: key {i} has another's value"),
            Ok(None) => {}
            Err(error) => {
                assert!(matches!(error, Error::Corrupt { .. }), "{engine:?}, page {page}: {error}");
                error_count += 1;
            }
        }
    }
    let walked = store.for_each(|key, value| {
        assert!(is_of(key, value), "{engine:?}, page {page}: a walk gives a key another's value");
    });
    error_count + usize::from(walked.is_err())
}

/// Opens the region, if that is possible.
fn opened(dir: &Path, region: &[u8]) -> Option<Store> {
    fs::write(dir.join("store.hikv"), region).unwrap();
    Store::open_read_only(dir).ok()
}

#[test]
fn stale_page_gives_no_key_another_value() {
    for engine in [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv] {
        let [before, after, _] = regions_of(engine, 0);
        let home = home();
        let pages = after.len().min(before.len()) / PAGE_BYTES;
        let at = |page: usize| page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        let changed: Vec<usize> = (0..pages).filter(|&page| before[at(page)] != after[at(page)]).collect();
        let mut reported_count = 0;
        for &page in &changed {
            let mut region = after.clone();
            region[at(page)].copy_from_slice(&before[at(page)]);
            let Some(store) = opened(home.path(), &region) else { continue };
            if read_all(&store, engine, page) > 0 {
                reported_count += 1;
                let verified = store.verify(|_| {});
                let is_reported = verified.is_ok_and(|report| !report.damage.is_empty());
                assert!(is_reported, "{engine:?}, page {page}: reads meet damage, and a deep check does not");
            }
        }
        assert!(changed.len() > 20, "{engine:?}: {} pages show little", changed.len());
        assert!(engine != EngineKind::Ink || reported_count > 5, "{engine:?}: {reported_count} pages were told of");
    }
}
