//! Batches are atomic for readers, whichever keys they read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hikv::{Options, Store, WriteBatch};

use crate::place::Placed;

const PAIR_COUNT: u64 = 8;
const WRITER_COUNT: u64 = 2;

/// Returns the two keys of a pair, in arbitrary buckets.
fn keys(pair: u64) -> [Vec<u8>; 2] {
    ["left", "right"].map(|side| format!("{side} {pair}").into_bytes())
}

/// Writes unique values to both keys of each pair. Every third batch deletes the right key instead.
fn write_pairs(store: &Store, writer: u64, count: u64) {
    let mut batch = WriteBatch::new();
    for number in 0..count {
        let [left, right] = keys(number * 7 % PAIR_COUNT);
        let value = (number * WRITER_COUNT + writer) * 3 + number % 3;
        batch.clear();
        batch.put(left, value.to_le_bytes());
        if number % 3 == 0 {
            batch.delete(right)
        } else {
            batch.put(right, value.to_le_bytes())
        };
        store.write(&batch).unwrap();
    }
}

fn value(store: &Store, key: &[u8]) -> Option<u64> {
    store.in_place().get(key, |value| u64::from_le_bytes(value.try_into().unwrap())).unwrap()
}

/// If the left key has the same value before and after, the right key must have the value of the same batch. Returns
/// how often that was the case.
fn read_pairs(store: &Store, is_over: &AtomicBool) -> u64 {
    let mut agreed_count = 0;
    while !is_over.load(Ordering::Relaxed) {
        for pair in 0..PAIR_COUNT {
            let [left, right] = keys(pair);
            let (before, seen, after) = (value(store, &left), value(store, &right), value(store, &left));
            if let Some(written) = before.filter(|_| before == after) {
                assert_eq!(seen, (written % 3 > 0).then_some(written), "half of a batch");
                agreed_count += 1;
            }
        }
    }
    agreed_count
}

/// Runs writers and two readers, and, with `clears`, a thread that clears the store repeatedly.
fn pairs_agree(options: &Options, write_count: u64, clears: bool) {
    let placed = Placed::open(options);
    let (store, is_over) = (&placed.store, AtomicBool::new(false));
    thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| read_pairs(store, &is_over)));
        let clearing = clears.then(|| scope.spawn(|| clear_until(store, &is_over)));
        let writers: Vec<_> =
            (0..WRITER_COUNT).map(|writer| scope.spawn(move || write_pairs(store, writer, write_count))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        clearing.into_iter().for_each(|clearing| clearing.join().unwrap());
        let agreed_count: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert!(agreed_count > 100, "{agreed_count} pairs were compared");
    });
    placed.assert_sound();
}

fn clear_until(store: &Store, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        store.clear().unwrap();
    }
}

/// Runs batches while the ordered index is built, maintained and scanned.
fn order_is_kept(write_count: u64) {
    let placed = Placed::open(&options().ordered(true));
    let (store, is_over) = (&placed.store, AtomicBool::new(false));
    thread::scope(|scope| {
        let scans = scope.spawn(|| {
            let mut scan_count = 0;
            while !is_over.load(Ordering::Relaxed) {
                let items: Vec<_> = store.ordered().unwrap().iter().unwrap().map(Result::unwrap).collect();
                assert!(items.is_sorted() && items.len() <= 2 * PAIR_COUNT as usize);
                scan_count += 1;
            }
            scan_count
        });
        let writers: Vec<_> =
            (0..WRITER_COUNT).map(|writer| scope.spawn(move || write_pairs(store, writer, write_count))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        assert!(scans.join().unwrap() > 1);
    });
    let report = store.ordered().unwrap().verify().unwrap();
    assert_eq!((report.items, report.damage), (store.len().unwrap(), vec![]));
    placed.assert_sound();
}

/// Writes batches of new keys, which split segments. A reader that has seen the first key of a batch must find all its
/// keys.
fn groups_are_whole(options: &Options, group_count: u32) {
    const GROUP_KEY_COUNT: u32 = 50;
    let placed = Placed::open(options);
    let store = &placed.store;
    let key = |group: u32, number: u32| [group.to_be_bytes(), number.to_be_bytes()].concat();
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            for group in 0..group_count {
                while !store.contains(key(group, 0)).unwrap() {
                    thread::yield_now();
                }
                let is_there = |number| store.contains(key(group, number)).unwrap();
                assert!((1..GROUP_KEY_COUNT).all(is_there), "half of batch {group}");
            }
        });
        for group in 0..group_count {
            let mut batch = WriteBatch::new();
            (0..GROUP_KEY_COUNT).for_each(|number| _ = batch.put(key(group, number), b"value"));
            store.write(&batch).unwrap();
        }
        reader.join().unwrap();
    });
    assert_eq!(store.len().unwrap(), u64::from(group_count * GROUP_KEY_COUNT));
    assert!(placed.store.stats().figure("split_count").unwrap() > 5.0, "{:?}", placed.store.stats());
    placed.assert_sound();
}

/// Two writers write batches of thousands of keys over all partitions. Other threads insert and delete keys, and the
/// batches wait for the resulting splits. With an ordered index. A reader that reads one key of a batch twice, and
/// another key in between, must find values of one batch.
fn large_ones_agree(batch_count: u64) {
    const KEY_COUNT: u64 = 5_000;
    let placed = Placed::open(&options().ordered(true));
    let (store, is_over) = (&placed.store, &AtomicBool::new(false));
    store.ordered().unwrap().iter().unwrap().for_each(|item| _ = item.unwrap());
    let write_all = |written: u64| {
        let mut batch = WriteBatch::new();
        (0..KEY_COUNT).for_each(|key| _ = batch.put(key.to_be_bytes(), written.to_le_bytes()));
        store.write(&batch).unwrap();
    };
    write_all(u64::MAX);
    thread::scope(|scope| {
        let others = [0u64, 1].map(|other| scope.spawn(move || put_until(store, other, is_over)));
        let reader = scope.spawn(move || {
            let mut agreed_count = 0;
            for key in (1..KEY_COUNT).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                let of = |key: u64| value(store, &key.to_be_bytes()).expect("it is never deleted");
                let (before, seen, after) = (of(0), of(key), of(0));
                assert!(seen == before || before != after, "half of a batch: {before} and {seen}");
                agreed_count += u64::from(before == after);
            }
            agreed_count
        });
        let writer = |writer| (0..batch_count).for_each(|number| write_all(number * WRITER_COUNT + writer));
        let writers: Vec<_> = (0..WRITER_COUNT).map(|number| scope.spawn(move || writer(number))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        let kept_count: u64 = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert!(reader.join().unwrap() > 0);
        assert_eq!(store.len().unwrap(), KEY_COUNT + kept_count);
    });
    let last = value(store, &0u64.to_be_bytes());
    assert!((0..KEY_COUNT).all(|key| value(store, &key.to_be_bytes()) == last), "half of a batch");
    let report = store.ordered().unwrap().verify().unwrap();
    assert_eq!((report.items, report.damage), (store.len().unwrap(), vec![]));
    placed.assert_sound();
}

/// Puts new keys and deletes every third of them. Returns the number of remaining keys.
fn put_until(store: &Store, other: u64, is_over: &AtomicBool) -> u64 {
    let mut kept_count = 0;
    for number in (0u64..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
        let key = format!("other {other} {number}");
        store.put(&key, number.to_le_bytes()).unwrap();
        kept_count += u64::from(number % 3 > 0 || !store.delete(&key).unwrap());
    }
    kept_count
}

fn options() -> Options {
    Options::new().tuning(|tuning| tuning.partition_count(4))
}

/// Persists take as long as on slow memory, so that readers see batches in every state.
fn slow() -> Options {
    options().emulation(|emulation| emulation.persist_delay(Duration::from_micros(2)))
}

#[test]
fn two_keys_change_together() {
    pairs_agree(&options(), 5_000, false);
    pairs_agree(&slow(), 5_000, false);
}

#[test]
fn batches_are_atomic_during_clears() {
    pairs_agree(&options(), 5_000, true);
}

#[test]
fn batches_are_kept_in_order() {
    order_is_kept(20_000);
}

#[test]
fn batches_are_atomic_during_splits() {
    groups_are_whole(&options().tuning(|tuning| tuning.partition_count(1)), 400);
    groups_are_whole(&slow(), 400);
}

#[test]
fn large_batches_are_atomic_during_splits() {
    large_ones_agree(8);
}

#[test]
#[ignore = "minutes"]
fn batches_are_one_step_for_long() {
    large_ones_agree(2_000);
    pairs_agree(&options(), 1_000_000, false);
    pairs_agree(&slow(), 1_000_000, true);
    groups_are_whole(&options(), 10_000);
}
