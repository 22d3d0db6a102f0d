//! Keys in order: scans show the contents of the store, whenever the order is requested and whatever is written at the
//! same time.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::prelude::*;
use engine::{Direction, Early, Error, OrderState, Progress, ScanCursor, WantedThreads};
use engine_hikv::{HiKv, Ordered};
use fastrand::Rng;
use heap::Parameters;
use pmem::{Probe, Probed, Span};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

const REGION_BYTES: u64 = 16 << 20;
const QUEUE_COUNT: usize = 2;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
type Store = HiKv<Sim, HostDram>;

fn store() -> Store {
    store_on(Sim::new(REGION_BYTES, Model::Line))
}

fn store_on(medium: Sim) -> Store {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 4, region_bytes: REGION_BYTES };
    HiKv::format(medium, HostDram, &parameters).unwrap().keeping_order(Ordered::new(QUEUE_COUNT, HostDram))
}

/// Workers are woken by the length of a queue: none while no thread writes, one for some changes, all if the queue is
/// more than half full. If the caller's threads apply, workers are woken only at that length.
#[test]
fn queue_depth_determines_wanted_workers() {
    const BOUND: u32 = 1024;
    for (callers_apply, at_some) in [(false, WantedThreads::One), (true, WantedThreads::None)] {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
        let store = HiKv::format(Sim::new(REGION_BYTES, Model::Line), HostDram, &parameters).unwrap();
        let store = store.keeping_order(Ordered::bounded(1, BOUND as usize, HostDram));
        store.catch_up(Early::Wait).unwrap();
        store.set_callers_apply(callers_apply);
        while store.step().unwrap() != Progress::Idle {}
        let put = |numbers: std::ops::Range<u32>| {
            numbers.for_each(|number| store.put(&(number % 100).to_be_bytes(), b"value").unwrap());
            store.wanted_threads()
        };
        assert_eq!(put(0..255), WantedThreads::None);
        assert_eq!(put(255..512), at_some);
        assert_eq!(put(512..768), WantedThreads::All, "more than half full");
        let count = store.apply().unwrap();
        assert_eq!((count, store.queue_stats().queued_count), (16, 752), "one group");
        while store.step().unwrap() != Progress::Idle {}
        assert_eq!((store.wanted_threads(), store.queue_stats().queued_count), (WantedThreads::None, 0));
    }
}

/// Most of a group finds the queue full: each item is put once nevertheless, and the items of a key in their order.
#[test]
fn group_filling_its_queue_is_ordered() {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
    let store = HiKv::format(Sim::new(REGION_BYTES, Model::Line), HostDram, &parameters).unwrap();
    let store = store.keeping_order(Ordered::bounded(1, 4, HostDram));
    store.catch_up(Early::Wait).unwrap();
    let (keys, values) = ([[0], [1], [2]], (0..16).map(|value| [value]).collect::<Vec<[u8; 1]>>());
    let items: Vec<_> = values.iter().map(|value| (&keys[usize::from(value[0]) % 3][..], &value[..])).collect();
    let mut reported = [0; 16];
    store.multi_put_each(&items, &mut |number, done| {
        done.unwrap();
        reported[number] += 1;
    });
    let stats = store.queue_stats();
    assert_eq!((reported, stats.applied_count + stats.queued_count), ([1; 16], 16));
    for (key, last) in keys.iter().zip([15, 13, 14]) {
        assert!(store.get(key, &mut |_, _, value| assert_eq!(value, [last])).unwrap());
    }
}

thread_local! {
    /// Items that this thread reads before it dies; `None` for no limit.
    static READS_LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Kills the thread with a panic when it reads an item.
#[derive(Debug)]
struct Dying;

impl Probe for Dying {
    fn read(&self, _span: Span) {
        match READS_LEFT.get() {
            Some(0) => panic!("this thread dies here"),
            left => READS_LEFT.set(left.map(|left| left - 1)),
        }
    }
}

/// At any read within a group: the next drainer takes over the queue. If the tree had taken a part of the group, it is
/// rebuilt.
#[test]
fn dead_thread_leaves_queue_to_others() {
    let mut death_count = 0;
    for reads in (0..60).step_by(3) {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
        let medium = Probed::with_probe(Sim::new(REGION_BYTES, Model::Line), Dying);
        let store = HiKv::format(medium, HostDram, &parameters).unwrap().keeping_order(Ordered::new(1, HostDram));
        let mut contents = Contents::new();
        // Keys that differ only in their items.
        let mut put = |numbers: std::ops::Range<u32>| {
            for number in numbers {
                let key = format!("a beginning that all of them share, and a number: {:06}", number * 7919 % 1_000);
                store.put(key.as_bytes(), &number.to_le_bytes()).unwrap();
                contents.insert(key.into_bytes(), number.to_le_bytes().to_vec());
            }
        };
        put(0..300);
        store.catch_up(Early::Wait).unwrap();
        put(200..500);
        READS_LEFT.set(Some(reads));
        let died = catch_unwind(AssertUnwindSafe(|| while store.apply().unwrap() > 0 {})).is_err();
        READS_LEFT.set(None);
        death_count += u32::from(died);
        // The error of a lost order, if it was lost, is returned once.
        let _ = store.catch_up(Early::Wait);
        assert_in_order(&store, &contents);
        assert_eq!(store.queue_stats().queued_count, 0);
    }
    assert!(death_count > 5, "{death_count} threads died");
}

/// Short keys, keys with long common prefixes, and keys that are prefixes of others.
fn key(rng: &mut Rng, count: u32) -> Vec<u8> {
    let number = rng.u32(..count);
    match number % 4 {
        0 => number.to_be_bytes().to_vec(),
        1 => format!("https://example.org/a/rather/long/path/that/is/shared/{number:06}").into_bytes(),
        2 => vec![b'a'; number as usize % 90],
        _ => format!("user{number:012}").into_bytes(),
    }
}

/// One random write, in the store and in the model.
fn write(store: &Store, contents: &mut Contents, rng: &mut Rng, key_count: u32) {
    let key = key(rng, key_count);
    if rng.u8(..4) == 0 {
        assert_eq!(store.delete(&key).unwrap(), contents.remove(&key).is_some());
    } else {
        let value = rng.u64(..).to_le_bytes().repeat(rng.usize(1..20));
        store.put(&key, &value).unwrap();
        contents.insert(key, value);
    }
}

fn scanned(store: &impl OrderedEngine, from: Bound<&[u8]>, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    store.catch_up(Early::Wait).unwrap();
    let (mut cursor, mut items) = (ScanCursor::new(from, direction), Vec::new());
    while store
        .scan(&mut cursor, &mut |key, value| {
            items.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap()
    {}
    items
}

fn assert_in_order(store: &impl OrderedEngine, contents: &Contents) {
    let expected: Vec<_> = contents.clone().into_iter().collect();
    assert!(scanned(store, Bound::Unbounded, Direction::Forward) == expected, "forwards");
    assert!(scanned(store, Bound::Unbounded, Direction::Backward).into_iter().rev().eq(expected), "backwards");
}

#[test]
fn scans_show_writes_around_order_request() {
    let (store, mut contents, mut rng) = (store(), Contents::new(), Rng::with_seed(1));
    for count in [0, 10, 2_000, 10_000, 10_000] {
        for _ in 0..count {
            write(&store, &mut contents, &mut rng, 3_000);
        }
        assert_in_order(&store, &contents);
    }
    for from in [&b""[..], b"a", b"https://", b"user000000000100", b"zzz"] {
        let expected: Vec<_> = contents.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).collect();
        let items = scanned(&store, Bound::Included(from), Direction::Forward);
        assert!(items.iter().map(|(key, value)| (key, value)).eq(expected));
        let expected: Vec<_> = contents.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(from))).rev().collect();
        let items = scanned(&store, Bound::Excluded(from), Direction::Backward);
        assert!(items.iter().map(|(key, value)| (key, value)).eq(expected));
    }
}

/// Every stage of the build meets writes, and some meet a `clear`.
fn write_while_the_order_is_built(medium: impl Fn() -> Sim) {
    for seed in 0..40 {
        let (store, mut contents, mut rng) = (store_on(medium()), Contents::new(), Rng::with_seed(seed));
        for _ in 0..2_000 {
            write(&store, &mut contents, &mut rng, 1_000);
        }
        let clears_after = rng.usize(..40);
        for step in 0.. {
            store.request_order().unwrap();
            if store.stats().order.unwrap().state == OrderState::Ready {
                break;
            }
            store.step().unwrap();
            if step == clears_after && seed % 2 == 0 {
                store.clear().unwrap();
                contents.clear();
            }
            for _ in 0..rng.usize(..40) {
                write(&store, &mut contents, &mut rng, 1_000);
            }
        }
        assert_in_order(&store, &contents);
        for _ in 0..500 {
            write(&store, &mut contents, &mut rng, 1_000);
        }
        assert_in_order(&store, &contents);
    }
}

#[test]
fn writes_during_order_build_are_in_it() {
    write_while_the_order_is_built(|| Sim::new(REGION_BYTES, Model::Line));
}

#[test]
fn unnoted_write_during_build_is_caught() {
    let medium = || Sim::new(REGION_BYTES, Model::Line).with_canary(engine_hikv::canary::CHANGE_MISSES_DELTA);
    assert_caught(|| write_while_the_order_is_built(medium));
}

fn assert_caught(variant: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(variant)).is_err(), "the broken variant went unnoticed");
}

#[test]
fn clear_empties_order_and_order_continues() {
    let (store, mut contents, mut rng) = (store(), Contents::new(), Rng::with_seed(2));
    for _ in 0..3 {
        for _ in 0..1_000 {
            write(&store, &mut contents, &mut rng, 500);
        }
        assert_in_order(&store, &contents);
        store.clear().unwrap();
        contents.clear();
        assert_in_order(&store, &contents);
    }
}

#[test]
fn early_scan_is_refused_instead_of_deadlock() {
    let store = store();
    store.put(b"key", b"value").unwrap();
    let refused = |result| matches!(result, Err(Error::NotOrderedYet { .. }));
    assert!(refused(store.catch_up(Early::Refuse)));
    assert!(store.get(b"key", &mut |_, _, _| assert!(refused(store.catch_up(Early::Wait)))).unwrap());
    store.catch_up(Early::Wait).unwrap();
    assert!(store.get(b"key", &mut |_, _, _| store.catch_up(Early::Wait).unwrap()).unwrap());
}

/// No background thread runs: writers drain the full queues themselves, and the items that they replaced are freed.
#[test]
fn writers_help_where_queues_are_full() {
    let (store, mut contents, mut rng) = (store(), Contents::new(), Rng::with_seed(3));
    store.catch_up(Early::Wait).unwrap();
    for _ in 0..40_000 {
        write(&store, &mut contents, &mut rng, 200);
    }
    assert!(store.stats().order.unwrap().queued_count > 0, "a queue that is not full was drained");
    while store.step().unwrap() == Progress::More {}
    assert_eq!(store.stats().order.unwrap().queued_count, 0);
    // Threads of other tests read, and move on.
    let is_freed = |_: &u32| {
        store.run_idle_maintenance();
        store.stats().garbage_count == 0
    };
    assert!((0..1_000_000).find(is_freed).is_some(), "{} items wait", store.stats().garbage_count);
    assert_in_order(&store, &contents);
}

#[test]
fn range_is_counted_without_reading_it_all() {
    let store = store();
    (0..1_000u32).for_each(|number| store.put(&number.to_be_bytes(), b"value").unwrap());
    store.catch_up(Early::Wait).unwrap();
    for (from, to) in [(0, 1_000), (0, 0), (17, 18), (5, 999), (500, 2_000)] {
        for is_inclusive in [false, true] {
            let [first, last]: [[u8; 4]; 2] = [from, to].map(u32::to_be_bytes);
            let end = if is_inclusive { Bound::Included(&last[..]) } else { Bound::Excluded(&last[..]) };
            let mut cursor = ScanCursor::new(Bound::Included(&first), Direction::Forward);
            let (mut count, mut has_more) = (0, true);
            while has_more {
                let (more, goes_on) = store.count(&mut cursor, end).unwrap();
                (count, has_more) = (count + more, goes_on);
            }
            let expected = (0..1_000).filter(|n| *n >= from && (*n < to || is_inclusive && *n == to)).count() as u64;
            assert_eq!(count, expected, "{from}..{to}");
        }
    }
}

/// Items of one queue are replaced, freed and reused for other keys before the tree has the changes; then the other
/// queue's changes are compared with them.
fn replaced_items_are_compared_with(medium: Sim) -> Result<(), Error> {
    let store = store_on(medium);
    // Ten keys each share more bytes than a leaf's heads hold.
    let key = |number: u32| format!("{:02} the same bytes {}", number / 10, number % 10).into_bytes();
    store.catch_up(Early::Wait)?;
    let mut rng = Rng::with_seed(4);
    let mut contents = Contents::new();
    // Queues stay full: writers make space in one of them when they must, and freed space is reused immediately.
    for round in 0..100_000u32 {
        let key = key(rng.u32(..400));
        if rng.bool() {
            assert_eq!(store.delete(&key)?, contents.remove(&key).is_some());
        } else {
            store.put(&key, &round.to_le_bytes())?;
            contents.insert(key, round.to_le_bytes().to_vec());
        }
    }
    store.catch_up(Early::Wait)?;
    let order = store.stats().order.unwrap();
    assert_eq!(order.state, OrderState::Ready, "the tree fell");
    assert_in_order(&store, &contents);
    Ok(())
}

#[test]
fn replaced_items_stay_until_tree_releases_them() {
    replaced_items_are_compared_with(Sim::new(REGION_BYTES, Model::Line)).unwrap();
}

#[test]
fn items_freed_before_tree_are_caught() {
    let medium = Sim::new(REGION_BYTES, Model::Line).with_canary(engine_hikv::canary::RETIRE_BEFORE_TREE);
    assert_caught(|| replaced_items_are_compared_with(medium).unwrap());
}

/// The bytes in use once no reader keeps a replaced item.
fn taken_bytes(store: &Store) -> u64 {
    while store.stats().garbage_count > 0 {
        store.run_idle_maintenance();
    }
    store.stats().live_bytes
}

fn put_all(store: &Store, value: u8) {
    (0..100u32).for_each(|number| store.put(&number.to_be_bytes(), &[value; 40]).unwrap());
}

/// The changes of replaced items go to the tree, or to the delta of a build that ends after so many steps or more, or
/// of one that a `clear` ends, or nowhere.
#[test]
fn replaced_items_are_freed_in_every_phase() {
    for (step_count, is_cleared) in (0..12).flat_map(|count| [(count, true), (count, false)]) {
        let store = store();
        let empty = taken_bytes(&store);
        put_all(&store, 1);
        let full = taken_bytes(&store);
        store.request_order().unwrap();
        (0..step_count).for_each(|_| _ = store.step().unwrap());
        put_all(&store, 2);
        // While the order is built, into the delta.
        while store.apply().unwrap() > 0 {}
        if is_cleared {
            store.clear().unwrap();
        }
        while store.step().unwrap() == Progress::More {}
        store.catch_up(Early::Wait).unwrap();
        let expected = if is_cleared { empty } else { full };
        assert_eq!(taken_bytes(&store), expected, "after {step_count} steps, cleared: {is_cleared}");
        put_all(&store, 3);
        store.catch_up(Early::Wait).unwrap();
        assert_eq!(taken_bytes(&store), full, "in order");
    }
}
