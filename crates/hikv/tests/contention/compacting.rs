//! Compaction alongside readers and writers: moved keys remain linearizable, walks and scans complete.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hikv::{Options, Store};
use testkit::{Contention, Stamped, contend};

use crate::place::Placed;

/// Runs `work` while another thread compacts continuously. Returns the number of moved items as well.
fn while_compacted<R>(store: &Store, work: impl FnOnce() -> R) -> (R, u64) {
    let (done, moved_items) = (AtomicBool::new(false), AtomicU64::new(0));
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let compacted = store.compact(|_| {}).expect("a sound store can be compacted");
                assert!(compacted.damaged.is_empty(), "{:?}", compacted.damaged);
                moved_items.fetch_add(compacted.moved_items, Ordering::Relaxed);
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    });
    (result, moved_items.into_inner())
}

/// The number of stores to try before a test may fail because no item was moved. Writers reuse freed space
/// immediately, so that one run may have nothing to move.
const STORE_COUNT_MAX: u64 = 40;

fn judge(options: &Options, contention: &Contention, is_ordered: bool) {
    let moves = |seed| moved_items(options, &Contention { seed, ..*contention }, is_ordered) > 0;
    assert!((0..STORE_COUNT_MAX).any(|run| moves(contention.seed + run)), "nothing was moved");
}

/// Returns the number of items moved in a new store while threads contend for its keys.
fn moved_items(options: &Options, contention: &Contention, is_ordered: bool) -> u64 {
    let placed = Placed::open(options);
    if is_ordered {
        drop(placed.store.ordered().unwrap());
    }
    let (judged, moved_items) = while_compacted(&placed.store, || contend(&placed, contention));
    judged.unwrap_or_else(|disorder| panic!("seed {}: {disorder}", contention.seed));
    placed.assert_sound();
    if is_ordered {
        assert_eq!(placed.store.ordered().unwrap().verify().unwrap().damage, []);
    }
    moved_items
}

const MANY_KEYS: Contention = Contention {
    thread_count: 3,
    call_count: 30_000,
    key_count: 5_000,
    clear_every: 0,
    swaps: true,
    scans: false,
    seed: 1,
};

#[test]
fn keys_are_registers_while_items_are_moved() {
    judge(&Options::new().tuning(|tuning| tuning.partition_count(1)), &MANY_KEYS, false);
    judge(
        &Options::new().tuning(|tuning| tuning.partition_count(1)),
        &Contention { clear_every: 5_000, ..MANY_KEYS },
        false,
    );
}

#[test]
fn cached_keys_are_registers_during_compaction() {
    judge(&Options::new().tuning(|tuning| tuning.partition_count(1)).read_cache_bytes(1 << 20), &MANY_KEYS, false);
}

#[test]
fn ordered_keys_are_registers_during_compaction() {
    judge(&Options::new(), &MANY_KEYS, true);
    judge(&Options::new(), &Contention { key_count: 500, scans: true, ..MANY_KEYS }, true);
}

const STAYING_COUNT: u64 = 4_000;
const ROUND_COUNT: u64 = 20;

/// Keeps some keys among others that come and go, so that compaction always has work.
fn churn(store: &Store) {
    for round in 1..=ROUND_COUNT {
        for key in STAYING_COUNT..3 * STAYING_COUNT {
            store.put(key.to_be_bytes(), Stamped { key, put: round }.value((key % 900) as usize)).unwrap();
        }
        for key in STAYING_COUNT..3 * STAYING_COUNT {
            assert!(store.delete(key.to_be_bytes()).unwrap());
        }
    }
}

/// Asserts that a scan returns every remaining key once, in order, with its value.
fn assert_scan(store: &Store) {
    let ordered = store.ordered().unwrap();
    let end = STAYING_COUNT.to_be_bytes();
    let items = ordered.range(..&end[..]).unwrap().map(Result::unwrap);
    let keys: Vec<u64> = items
        .map(|(key, value)| {
            let key = u64::from_be_bytes(key.try_into().unwrap());
            assert_eq!(Stamped::read(&value), Some(Stamped { key, put: 0 }), "a torn or foreign value");
            key
        })
        .collect();
    assert!(keys.iter().copied().eq(0..STAYING_COUNT), "{} keys of {STAYING_COUNT}", keys.len());
}

#[test]
fn scans_return_moved_items_once() {
    let placed = Placed::open(&Options::new());
    let store = &placed.store;
    for key in 0..STAYING_COUNT {
        store.put(key.to_be_bytes(), Stamped { key, put: 0 }.value((key % 900) as usize)).unwrap();
    }
    let (scan_count, moved_items) = while_compacted(store, || {
        let is_churned = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                churn(store);
                is_churned.store(true, Ordering::Relaxed);
            });
            let mut scan_count = 0;
            while !is_churned.load(Ordering::Relaxed) {
                assert_scan(store);
                scan_count += 1;
            }
            scan_count
        })
    });
    assert!(scan_count > 0 && moved_items > 0, "{scan_count} scans, {moved_items} items moved");
    assert_scan(store);
    placed.assert_sound();
}
