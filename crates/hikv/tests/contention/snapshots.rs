//! Snapshots taken alongside writers: each shows one moment, does not change, and frees the kept items.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hikv::{Options, Snapshot, Store, WriteBatch};

use crate::place::Placed;

const WRITER_COUNT: u64 = 2;
/// The number of keys of each writer, which writes them in order.
const KEY_COUNT: u64 = 50;

fn key(writer: u64, key: u64) -> [u8; 2] {
    [writer as u8, key as u8]
}

/// Two keys that one batch puts.
fn together(writer: u64, key: u8) -> [u8; 3] {
    [254, writer as u8, key]
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// Writes round after round to its keys in their order, by every kind of put, and lets other keys come and go.
/// Publishes each finished round.
fn write(store: &Store, writer: u64, done: &AtomicU64, stop: &AtomicBool) {
    for round in 1u64.. {
        let value = round.to_le_bytes();
        for i in 0..KEY_COUNT {
            match i % 3 {
                0 => store.put(key(writer, i), value).unwrap(),
                1 => store.multi_put([(key(writer, i), value)]).unwrap(),
                _ => store.put_from(key(writer, i), 8, &value[..]).unwrap(),
            }
        }
        store.write(WriteBatch::new().put(together(writer, 0), value).put(together(writer, 1), value)).unwrap();
        let other = |round: u64| [&[255, writer as u8][..], &round.to_le_bytes()].concat();
        store.put(other(round), value).unwrap();
        store.delete(other(round - 1)).unwrap();
        done.store(round, Ordering::Release);
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn listed(snapshot: &Snapshot) -> BTreeMap<Vec<u8>, u64> {
    let mut listed = BTreeMap::new();
    let each = |key: &[u8], value: &[u8]| {
        assert_eq!(listed.insert(key.to_vec(), number(value)), None, "{key:?} is shown twice");
    };
    snapshot.for_each(each).unwrap();
    listed
}

/// Asserts that the snapshot shows a writer's keys at one moment: some keys of one round, the remaining keys of the
/// round before, and at least the round that was finished before the snapshot.
fn assert_of_one_moment(listed: &BTreeMap<Vec<u8>, u64>, writer: u64, done_before: u64) {
    let rounds: Vec<_> = (0..KEY_COUNT).map(|i| listed[&key(writer, i)[..]]).collect();
    assert!(rounds.windows(2).all(|pair| pair[1] <= pair[0]), "a later write without an earlier one: {rounds:?}");
    let [first, last] = [rounds[0], rounds[KEY_COUNT as usize - 1]];
    assert!(first <= last + 1 && last >= done_before, "{rounds:?}, and {done_before} was done");
    let [one, other] = [0, 1].map(|key| listed.get(&together(writer, key)[..]));
    assert_eq!(one, other, "half a batch");
    let others = listed.range(vec![255, writer as u8]..vec![255, writer as u8 + 1]).map(|(_, round)| *round);
    let others: Vec<_> = others.collect();
    // The first round puts the first of these keys at its end.
    assert!((1..=2).contains(&others.len()) || others.is_empty() && last <= 1, "{others:?} beside {rounds:?}");
}

fn assert_reads_agree(snapshot: &Snapshot, listed: &BTreeMap<Vec<u8>, u64>, is_ordered: bool) {
    for (key, round) in listed {
        assert_eq!(snapshot.get(key).unwrap().map(|value| number(&value)), Some(*round), "{key:?}");
    }
    if is_ordered {
        let items = snapshot.range::<&[u8]>(..).unwrap().map(Result::unwrap);
        let found: Vec<_> = items.map(|(key, value)| (key, number(&value))).collect();
        assert!(found.iter().map(|(key, round)| (key, round)).eq(listed), "in order");
    }
}

/// Stops the writers when it is dropped, also by a panic.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn beside_writers(options: &Options, is_ordered: bool, count: u32) {
    let placed = Placed::open(options);
    let (store, stop) = (&placed.store, AtomicBool::new(false));
    let done: [AtomicU64; WRITER_COUNT as usize] = Default::default();
    for (writer, i) in (0..WRITER_COUNT).flat_map(|writer| (0..KEY_COUNT).map(move |i| (writer, i))) {
        store.put(key(writer, i), 0u64.to_le_bytes()).unwrap();
    }
    thread::scope(|scope| {
        for writer in 0..WRITER_COUNT {
            let (done, stop) = (&done[writer as usize], &stop);
            scope.spawn(move || write(store, writer, done, stop));
        }
        let _stops = Stops(&stop);
        let mut older: Option<(Snapshot, BTreeMap<_, _>)> = None;
        for _ in 0..count {
            let before = [0, 1].map(|writer: usize| done[writer].load(Ordering::Acquire));
            let snapshot = store.snapshot().unwrap();
            let first = listed(&snapshot);
            (0..WRITER_COUNT).for_each(|writer| assert_of_one_moment(&first, writer, before[writer as usize]));
            assert_reads_agree(&snapshot, &first, is_ordered);
            if let Some((older, shown)) = older.replace((snapshot, first)) {
                assert_eq!(listed(&older), shown, "it changed");
                assert_reads_agree(&older, &shown, is_ordered);
            }
        }
    });
    assert_eq!((store.stats().snapshot_count, store.stats().kept_count), (0, 0));
    placed.assert_sound();
}

#[test]
fn snapshots_are_of_one_moment() {
    beside_writers(&Options::new().ordered(false).tuning(|tuning| tuning.partition_count(1)), false, 300);
    beside_writers(&Options::new(), true, 300);
}

#[test]
#[ignore = "minutes"]
fn snapshots_are_of_one_moment_for_long() {
    beside_writers(&Options::new().ordered(false).tuning(|tuning| tuning.partition_count(1)), false, 50_000);
    beside_writers(&Options::new(), true, 50_000);
}
