//! A walk visits each key that exists throughout exactly once, whatever other threads do.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hikv::{Options, Store};
use testkit::Stamped;

use crate::place::Placed;

const STAYING_COUNT: u64 = 2000;

fn put(store: &Store, key: u64, put: u64) {
    store.put(key.to_le_bytes(), Stamped { key, put }.value(40)).unwrap();
}

/// Updates the permanent keys, and inserts and deletes others until segments split.
fn write(store: &Store, walked: &AtomicBool) {
    for round in 1.. {
        (0..STAYING_COUNT).for_each(|key| put(store, key, round));
        let others = STAYING_COUNT * (round + 1)..STAYING_COUNT * (round + 3);
        others.clone().for_each(|key| put(store, key, round));
        others.for_each(|key| assert!(store.delete(key.to_le_bytes()).unwrap()));
        if walked.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Returns how often each key was visited.
fn walk(store: &Store) -> HashMap<u64, u32> {
    let mut shown = HashMap::new();
    let each = |key: &[u8], value: &[u8]| {
        let key = u64::from_le_bytes(key.try_into().unwrap());
        assert_eq!(Stamped::read(value).map(|value| value.key), Some(key), "a torn or foreign value");
        *shown.entry(key).or_default() += 1;
    };
    store.for_each(each).unwrap();
    shown
}

fn walks(count: u32) {
    let placed = Placed::open(&Options::new().tuning(|tuning| tuning.partition_count(1)));
    let (store, walked) = (&placed.store, AtomicBool::new(false));
    (0..STAYING_COUNT).for_each(|key| put(store, key, 0));
    thread::scope(|scope| {
        scope.spawn(|| write(store, &walked));
        for _ in 0..count {
            let shown = walk(store);
            let wrong: Vec<_> = (0..STAYING_COUNT).filter(|key| shown.get(key) != Some(&1)).collect();
            assert!(wrong.is_empty(), "not shown once: {wrong:?}");
        }
        walked.store(true, Ordering::Relaxed);
    });
    assert!(store.stats().figure("split_count").unwrap() > 0.0);
    placed.assert_sound();
}

#[test]
fn walks_show_what_stays_once() {
    walks(300);
}

#[test]
#[ignore = "minutes"]
fn walks_show_what_stays_once_for_long() {
    walks(20_000);
}
