//! A clean close leaves free space, counts and the order of the keys for the next opening.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use hikv::{Durability, Error, Options, Stats, Store};
use tempfile::TempDir;

use crate::alone;

const ITEM_COUNT: u64 = 2_000;
const VALUE_BYTES: usize = 500;

/// No background and no waits for the disk, so that the effects of opening are visible.
fn options() -> Options {
    Options::new().background(false).durability(Durability::Buffered)
}

fn key(number: u64) -> Vec<u8> {
    format!("key {:04}", number * 7_919 % ITEM_COUNT).into_bytes()
}

/// Returns a closed store in which every second item was deleted, with or without an ordered index.
fn closed(in_order: bool) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = options().open(dir.path()).unwrap();
    (0..ITEM_COUNT).for_each(|number| store.put(key(number), [number as u8; VALUE_BYTES]).unwrap());
    (0..ITEM_COUNT).step_by(2).for_each(|number| assert!(store.delete(key(number)).unwrap()));
    if in_order {
        assert_eq!(store.ordered().unwrap().count::<&[u8]>(..).unwrap(), ITEM_COUNT / 2);
    }
    store.close().unwrap();
    dir
}

fn region(dir: &TempDir) -> Vec<u8> {
    fs::read(dir.path().join("store.hikv")).unwrap()
}

/// Returns the figures once the keys are in order, and the keys.
fn in_order(store: &Store) -> (Stats, Vec<Vec<u8>>) {
    let keys = store.ordered().unwrap().range::<&[u8]>(..).unwrap().map(|item| item.unwrap().0).collect();
    (store.stats(), keys)
}

fn expected() -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = (1..ITEM_COUNT).step_by(2).map(key).collect();
    keys.sort_unstable();
    keys
}

/// Asserts one step for each key: the order was loaded, and no key was collected.
fn assert_loaded(store: &Store) {
    let (stats, keys) = in_order(store);
    assert!(keys == expected());
    assert_eq!((stats.order, stats.order_done, stats.order_total), ("ready", ITEM_COUNT / 2, ITEM_COUNT / 2));
}

fn assert_collected(store: &Store, item_count: u64) {
    let (stats, keys) = in_order(store);
    assert_eq!((stats.items, keys.len() as u64, stats.order_total), (item_count, item_count, 2 * item_count));
}

/// Waits until a journal's base is loaded: free space in parts that are not loaded cannot be used.
fn wait_until_read(store: &Store) {
    while store.stats().journal.is_some_and(|journal| journal.loaded_bytes < journal.base_bytes) {
        thread::yield_now();
    }
}

#[test]
fn free_space_is_known_at_once() {
    let _turn = alone();
    let dir = closed(false);
    let used_bytes = Options::new().read_only(true).open(dir.path()).unwrap().stats().used_bytes;
    let store = options().open(dir.path()).unwrap();
    wait_until_read(&store);
    (0..ITEM_COUNT).step_by(2).for_each(|number| store.put(key(number), [1; VALUE_BYTES]).unwrap());
    let stats = store.stats();
    assert_eq!(stats.items, ITEM_COUNT);
    assert!(stats.used_bytes <= used_bytes, "{stats:?}: the store grew beyond {used_bytes} bytes");
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

#[test]
fn reader_knows_what_writer_knew() {
    let _turn = alone();
    let dir = closed(true);
    let before = region(&dir);
    let store = Store::open_read_only(dir.path()).unwrap();
    let stats = store.stats();
    assert_eq!(stats.items, ITEM_COUNT / 2);
    assert!(stats.free_bytes > (ITEM_COUNT / 2) * VALUE_BYTES as u64, "{stats:?}");
    assert_loaded(&store);
    drop(store);
    assert!(region(&dir) == before);
}

#[test]
fn an_opening_that_changes_nothing_writes_nothing() {
    let _turn = alone();
    let dir = closed(true);
    let before = region(&dir);
    for _ in 0..2 {
        let store = options().open(dir.path()).unwrap();
        assert_eq!(store.len().unwrap(), ITEM_COUNT / 2);
        assert_loaded(&store);
        store.close().unwrap();
        assert!(region(&dir) == before);
    }
}

/// Nothing was changed since, but this close knows more than the last one did.
#[test]
fn an_order_that_was_built_is_kept() {
    let _turn = alone();
    let dir = closed(false);
    let store = options().open(dir.path()).unwrap();
    assert_collected(&store, ITEM_COUNT / 2);
    store.close().unwrap();
    assert_loaded(&options().open(dir.path()).unwrap());
}

#[test]
fn change_comes_before_order() {
    let _turn = alone();
    let dir = closed(true);
    let store = options().open(dir.path()).unwrap();
    store.put("new", "").unwrap();
    assert_collected(&store, ITEM_COUNT / 2 + 1);
}

#[test]
fn order_includes_changes_made_during_load() {
    let _turn = alone();
    let dir = closed(true);
    for round in 0..8u8 {
        let store = Options::new().durability(Durability::Buffered).open(dir.path()).unwrap();
        store.ordered().unwrap();
        let mut contents: BTreeMap<_, _> = (0..ITEM_COUNT).map(|number| (key(number), [round; 9])).collect();
        thread::scope(|scope| {
            for first in 0..2 {
                let store = &store;
                let put = move |number| store.put(key(number), [round; 9]).unwrap();
                scope.spawn(move || (first..ITEM_COUNT).step_by(2).for_each(put));
            }
        });
        for number in (0..ITEM_COUNT).step_by(3) {
            assert!(store.delete(key(number)).unwrap());
            contents.remove(&key(number));
        }
        let items = store.ordered().unwrap().range::<&[u8]>(..).unwrap().map(|item| item.unwrap());
        assert!(items.eq(contents.into_iter().map(|(key, value)| (key, value.to_vec()))));
        assert_eq!(store.verify(|_| {}).unwrap().damage, []);
        store.close().unwrap();
    }
}

/// The last clone to be dropped writes the image.
#[test]
fn every_handle_may_be_the_last() {
    let _turn = alone();
    let dir = closed(false);
    let store = options().open(dir.path()).unwrap();
    let clone = store.clone();
    store.put("new", "").unwrap();
    assert!(matches!(store.close(), Err(Error::StillOpen { .. })));
    assert_collected(&clone, ITEM_COUNT / 2 + 1);
    drop(clone);
    let (stats, _) = in_order(&options().open(dir.path()).unwrap());
    assert_eq!(stats.order_total, ITEM_COUNT / 2 + 1);
}
