//! Keys that expire during other writes, and in a store that keeps its keys in order.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use engine::prelude::*;
use engine::{BatchOp, Clock, Decision, Direction, Early, Progress, ScanCursor};
use engine_hikv::{HiKv, Ordered};
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::expired_keys_stay_few;

const REGION_BYTES: u64 = 16 << 20;
const QUEUE_COUNT: usize = 2;
const SECOND: Duration = Duration::from_secs(1);

type Store = HiKv<Sim, HostDram>;

fn unordered_store() -> Store {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 4, region_bytes: REGION_BYTES };
    HiKv::format(Sim::new(REGION_BYTES, Model::Line), HostDram, &parameters).unwrap()
}

fn store(clock: &Clock) -> Store {
    unordered_store().keeping_order(Ordered::new(QUEUE_COUNT, HostDram)).by_clock(clock.clone())
}

fn put_for(store: &Store, key: &[u8], time: Duration) {
    store.put_until(key, b"value", store.clock().after(time)).unwrap();
}

fn work(store: &Store) {
    while store.step().unwrap() == Progress::More {}
}

fn scanned(store: &Store) -> Vec<Vec<u8>> {
    store.catch_up(Early::Wait).unwrap();
    let (mut cursor, mut keys) = (ScanCursor::new(Bound::Unbounded, Direction::Forward), Vec::new());
    let mut each = |key: &[u8], _: &[u8]| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    };
    while store.scan(&mut cursor, &mut each).unwrap() {}
    keys
}

fn count(store: &Store) -> u64 {
    let (mut cursor, mut total) = (ScanCursor::new(Bound::Unbounded, Direction::Forward), 0);
    loop {
        let (count, has_more) = store.count(&mut cursor, Bound::Unbounded).unwrap();
        total += count;
        if !has_more {
            return total;
        }
    }
}

/// More keys expire together than a queue of the order holds changes.
#[test]
fn burst_of_expiries_is_reaped() {
    const COUNT: u32 = 12_000;
    let clock = Clock::manual(0);
    let store = store(&clock);
    store.catch_up(Early::Wait).unwrap();
    for number in 0..COUNT {
        put_for(&store, &number.to_be_bytes(), if number % 100 == 0 { 9 * SECOND } else { SECOND });
    }
    assert_eq!((scanned(&store).len(), count(&store)), (COUNT as usize, COUNT.into()));
    clock.advance(SECOND);
    let staying: Vec<_> = (0..COUNT).step_by(100).map(|number| number.to_be_bytes().to_vec()).collect();
    assert_eq!((scanned(&store), count(&store)), (staying.clone(), staying.len() as u64));
    work(&store);
    assert_eq!(store.len().unwrap(), staying.len() as u64);
    assert_eq!(scanned(&store), staying);
}

/// With a queue that is always full, a step deletes as many keys as without order, and a round skips none.
#[test]
fn full_queue_delays_no_expiry() {
    const COUNT: u64 = 5_000;
    let clock = Clock::manual(0);
    let store = unordered_store().keeping_order(Ordered::bounded(1, 16, HostDram)).by_clock(clock.clone());
    store.catch_up(Early::Wait).unwrap();
    (0..COUNT).for_each(|number| put_for(&store, &number.to_be_bytes(), SECOND));
    clock.advance(SECOND);
    let segment_count = store.stats().figure("segment_count").unwrap() as u64;
    let step_count = (1..).find(|_| store.step().unwrap() == Progress::Idle).unwrap();
    assert_eq!(store.len().unwrap(), 0);
    let step_max = COUNT / 256 + 2 * segment_count + 4;
    assert!(step_count <= step_max, "{step_count} steps for {COUNT} keys in {segment_count} segments");
    store.check_order(&mut |damage| panic!("{damage:?}")).unwrap();
}

#[test]
fn reaper_keeps_up_with_constant_writes() {
    let clock = Clock::manual(0);
    for store in [
        unordered_store().by_clock(clock.clone()),
        unordered_store().keeping_order(Ordered::bounded(1, 64, HostDram)).by_clock(clock.clone()),
    ] {
        if store.ordered().is_some() {
            store.catch_up(Early::Wait).unwrap();
        }
        expired_keys_stay_few(&store, &clock);
    }
}

/// Each thread lets its own keys expire and puts them again, while other threads reap.
#[test]
fn reaper_spares_rewritten_keys() {
    const THREAD_COUNT: u8 = 3;
    const ROUND_COUNT: u32 = 300;
    let clock = Clock::manual(0);
    let (store, is_over) = (store(&clock), AtomicBool::new(false));
    thread::scope(|scope| {
        let reaper = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                clock.advance(SECOND);
                work(&store);
            }
        });
        let writers: Vec<_> = (0..THREAD_COUNT)
            .map(|thread| {
                scope.spawn({
                    let store = &store;
                    move || {
                        for round in 0..ROUND_COUNT {
                            let keys: Vec<_> = (0..16).map(|number| [thread, number]).collect();
                            keys.iter().for_each(|key| put_for(store, key, SECOND));
                            keys.iter().for_each(|key| store.put(key, &round.to_le_bytes()).unwrap());
                            for key in &keys {
                                let mut value = None;
                                store.get(key, &mut |_, _, found| value = Some(found.to_vec())).unwrap();
                                assert_eq!(value.as_deref(), Some(&round.to_le_bytes()[..]), "{key:?}");
                            }
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Release);
        reaper.join().unwrap();
    });
    assert!(store.stats().reaped_count > 0, "nothing was reaped between two puts");
    assert_eq!(store.len().unwrap(), u64::from(THREAD_COUNT) * 16);
}

/// Lets keys expire, and removes their items from the index in each possible way; returns their number.
fn let_expire(store: &Store, clock: &Clock) -> usize {
    let expire = |keys: &[&[u8]]| {
        keys.iter().for_each(|key| put_for(store, key, SECOND));
        clock.advance(2 * SECOND);
    };
    let put = |key| BatchOp::Put { key, value: b"new" };
    expire(&[b"put"]);
    store.put(b"put", b"new").unwrap();
    expire(&[b"deleted"]);
    assert!(!store.delete(b"deleted").unwrap());
    expire(&[b"updated"]);
    assert!(store.update(b"updated", &mut |_| Decision::Put(b"new".into())).unwrap());
    expire(&[b"in a batch", b"also in a batch"]);
    store.write_batch(&[put(b"in a batch"), put(b"also in a batch")]).unwrap();
    expire(&[b"many", b"many more"]);
    store.multi_put(&[(b"many", b"new"), (b"many more", b"new")]).unwrap();
    expire(&[b"reaped"]);
    work(store);
    8
}

/// The state that a callback found.
#[derive(Debug)]
struct Found {
    key: Vec<u8>,
    /// Changes that the ordered index does not have, and does not get.
    stuck_count: u64,
    scanned: Vec<Vec<u8>>,
    has_snapshot: bool,
}

/// Scans, takes a snapshot and writes, unless a change is stuck: a scan would wait for it.
fn use_store(store: &Store, key: &[u8]) -> Found {
    work(store);
    let stuck_count = store.stats().order.unwrap().queued_count;
    let scanned = if stuck_count == 0 { scanned(store) } else { Vec::new() };
    let snapshot = store.snapshots().unwrap().take_snapshot();
    let has_snapshot = snapshot.map(|at| store.snapshots().unwrap().release_snapshot(at)).is_ok();
    store.put(&[b"told of ", key].concat(), b"").unwrap();
    store.write_batch(&[BatchOp::Put { key: b"told", value: key }]).unwrap();
    Found { key: key.to_vec(), stuck_count, scanned, has_snapshot }
}

#[test]
fn expiry_callback_may_use_store() {
    let clock = Clock::manual(0);
    let (store, found) = (Arc::new(store(&clock)), Arc::new(Mutex::new(Vec::new())));
    store.catch_up(Early::Wait).unwrap();
    let (weak, note) = (Arc::downgrade(&store), Arc::clone(&found));
    let reported = move |key: &[u8]| {
        let found = use_store(&weak.upgrade().unwrap(), key);
        note.lock().unwrap().push(found);
    };
    store.on_expired(Some(Arc::new(reported)));
    let count = let_expire(&store, &clock);
    let found = found.lock().unwrap();
    assert_eq!(found.len(), count);
    for Found { key, stuck_count, scanned, has_snapshot } in &*found {
        assert!(*stuck_count == 0 && *has_snapshot, "{}: {stuck_count} changes wait for it", key.escape_ascii());
        let is_there = ![&b"deleted"[..], b"reaped"].contains(&&**key);
        assert_eq!(scanned.contains(key), is_there, "{}", key.escape_ascii());
        assert!(store.get(&[b"told of ", &**key].concat(), &mut |_, _, _| ()).unwrap());
    }
    store.check_order(&mut |damage| panic!("{damage:?}")).unwrap();
}

#[test]
fn expiry_callback_panic_is_harmless() {
    let clock = Clock::manual(0);
    let (store, reported_count) = (store(&clock), Arc::new(AtomicU32::new(0)));
    store.catch_up(Early::Wait).unwrap();
    let count = Arc::clone(&reported_count);
    let reported = move |key: &[u8]| {
        count.fetch_add(1, Ordering::Relaxed);
        panic!("called for '{}', as this test intends", key.escape_ascii());
    };
    store.on_expired(Some(Arc::new(reported)));
    let expired_count = let_expire(&store, &clock);
    assert_eq!(reported_count.load(Ordering::Relaxed) as usize, expired_count);
    assert_eq!(store.check_order(&mut |damage| panic!("{damage:?}")).unwrap(), store.len().unwrap());
    // No thread waits for a call that ended by a panic.
    store.on_expired(None);
}

/// Each call removes the next key, and the last one unregisters the callback.
#[test]
fn chained_expiry_callbacks_do_not_nest() {
    const COUNT: u32 = 20_000;
    let clock = Clock::manual(0);
    let (store, reported_count) = (Arc::new(store(&clock)), Arc::new(AtomicU32::new(0)));
    (0..=COUNT).for_each(|number| put_for(&store, &number.to_be_bytes(), SECOND));
    clock.advance(SECOND);
    let (weak, count) = (Arc::downgrade(&store), Arc::clone(&reported_count));
    let reported = move |key: &[u8]| {
        let store = weak.upgrade().unwrap();
        let next = u32::from_be_bytes(key.try_into().unwrap()) + 1;
        if count.fetch_add(1, Ordering::Relaxed) + 1 == COUNT {
            store.on_expired(None);
        }
        store.put(&next.to_be_bytes(), b"new").unwrap();
    };
    store.on_expired(Some(Arc::new(reported)));
    store.put(&0u32.to_be_bytes(), b"new").unwrap();
    assert_eq!(reported_count.load(Ordering::Relaxed), COUNT);
}
