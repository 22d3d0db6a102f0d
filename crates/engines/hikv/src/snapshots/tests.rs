//! Snapshots and other threads.

use std::sync::Arc;

use engine::Error;
use engine::prelude::*;
use parking_lot::Mutex;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::{HiKv, Parameters};

const REGION_BYTES: u64 = 5 << 20;
const KEY_COUNT: u8 = 50;

type Store = HiKv<Sim, HostDram>;

fn store() -> Arc<Store> {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
    Arc::new(HiKv::format(Sim::new(REGION_BYTES, Model::Line), HostDram, &parameters).unwrap())
}

/// Puts every key; returns the bytes in use once no reader keeps a replaced item.
fn taken_bytes(store: &Store, value: u8) -> u64 {
    (0..KEY_COUNT).for_each(|key| store.put(&[key], &[value; 40]).unwrap());
    settled_bytes(store)
}

fn settled_bytes(store: &Store) -> u64 {
    while store.stats().garbage_count > 0 {
        store.run_idle_maintenance();
    }
    store.stats().live_bytes
}

#[test]
fn snapshot_space_is_freed_after_it() {
    let store = store();
    let before = taken_bytes(&store, 1);
    let snapshot = store.take_snapshot().unwrap();
    assert!(taken_bytes(&store, 2) > before, "it keeps nothing");
    store.release_snapshot(snapshot);
    assert_eq!(settled_bytes(&store), before);
}

#[test]
fn self_waiting_snapshot_is_refused() {
    let (store, mut taken) = (store(), None);
    store.put(b"key", b"value").unwrap();
    assert!(store.get(b"key", &mut |_, _, _| taken = Some(store.take_snapshot())).unwrap());
    assert!(matches!(taken, Some(Err(Error::InsideCallback))), "{taken:?}");
}

/// Two snapshots of one epoch would see only the items that the first has kept, and the epoch could fall.
#[test]
fn snapshot_excludes_writers_until_epoch_advances() {
    let (store, alone) = (store(), Arc::new(Mutex::new(Vec::new())));
    let (theirs, noted) = (Arc::clone(&store), Arc::clone(&alone));
    store
        .writer()
        .reader()
        .medium()
        .observe(Box::new(move |_, _| noted.lock().push(theirs.writer().snapshots().taking.is_locked())));
    store.take_snapshot().unwrap();
    store.writer().reader().medium().unobserve();
    let alone = alone.lock();
    assert!(!alone.is_empty() && alone.iter().all(|is_alone| *is_alone), "{alone:?}");
}

#[test]
fn epochs_do_not_come_round() {
    const LAST: u32 = u32::MAX - 2;
    let first = store();
    first.writer().space().heap().region().set_snapshot_epoch(first.writer().reader().medium(), LAST);
    let store = HiKv::open(first.writer().reader().medium().clone(), HostDram).unwrap();
    let snapshot = store.take_snapshot().unwrap();
    assert!(matches!(store.take_snapshot(), Err(Error::TooManySnapshots { count }) if count == u64::from(LAST) + 1));
    store.put(b"key", b"value").unwrap();
    store.release_snapshot(snapshot);
    assert!(store.take_snapshot().is_err() && store.get(b"key", &mut |_, _, _| ()).unwrap());
}

/// One version of a key for each snapshot, and one key that all snapshots see.
#[test]
fn each_snapshot_keeps_its_moment() {
    const COUNT: u32 = 300;
    let store = store();
    store.put(b"old", b"value").unwrap();
    let before = settled_bytes(&store);
    let snapshots: Vec<_> = (0..COUNT)
        .map(|number| {
            store.put(b"key", &number.to_le_bytes()).unwrap();
            store.take_snapshot().unwrap()
        })
        .collect();
    store.delete(b"key").unwrap();
    store.put(b"old", b"other").unwrap();
    let mut left: Vec<_> = snapshots.into_iter().enumerate().collect();
    // From the oldest, the newest, and from the middle.
    for round in 0.. {
        if left.is_empty() {
            break;
        }
        let ended = [0, left.len() - 1, left.len() / 2][round % 3];
        store.release_snapshot(left.remove(ended).1);
        for (number, at) in left.iter().step_by(left.len() / 5 + 1) {
            let mut seen = Vec::new();
            assert!(store.get_at(*at, b"key", &mut |_, _, value| seen = value.to_vec()).unwrap());
            assert_eq!(seen, (*number as u32).to_le_bytes());
            assert!(store.get_at(*at, b"old", &mut |_, _, value| assert_eq!(value, b"value")).unwrap());
        }
        let kept_count = store.stats().snapshots.kept_count;
        assert_eq!(kept_count, left.len() as u64 + u64::from(!left.is_empty()));
    }
    assert_eq!(settled_bytes(&store), before);
}
