//! A region of fixed size that is full of keys: each of them can be deleted, and then there is space again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use engine::BatchOp;
use engine::prelude::*;
use engine_pmekv::{Options, Pmekv, canary};
use heap::Parameters;
use parking_lot::Mutex;
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim, StepKind};

use crate::subject::{OnSim, PARAMETERS, free_all, is_full, is_sound, scattered_key as key};

/// The number of polls after which a thread that does not continue is left waiting.
const LOOK_COUNT: usize = 20_000;

/// Returns the numbers below `count`, in an order that is unrelated to the order of keys and of places.
fn scattered(count: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    numbers.sort_unstable_by_key(|number| u64::from(number + 1).wrapping_mul(0xD134_2543_DE82_EF95).rotate_left(32));
    numbers
}

/// Lengths of values of one size class, or of several.
type Sizes = [usize];

const ONE_SIZE: &Sizes = &[40];
const SIZES: &Sizes = &[0, 40, 300, 24, 90, 2_000, 60, 150];

pub(crate) fn put(store: &OnSim, number: u32, sizes: &Sizes) -> bool {
    match store.put(&key(number), &vec![number as u8; sizes[number as usize % sizes.len()]]) {
        Ok(()) => true,
        Err(error) => {
            if is_full(&error) {
                false
            } else {
                panic!("{error}")
            }
        }
    }
}

/// Returns a full store of so many lanes whose region cannot grow, and its number of keys.
fn filled(lane_count: u32, growth_count: u64, sizes: &Sizes) -> (Sim, OnSim, u32) {
    let sim = Sim::new(0, Model::Line);
    let parameters = Parameters { partition_count: lane_count, ..PARAMETERS };
    let store = Pmekv::format(sim.clone(), HostDram, &parameters, Options::default()).unwrap();
    sim.fail_grow_after(growth_count);
    let count = (0..).take_while(|&number| put(&store, number, sizes)).count() as u32;
    (sim, store, count)
}

/// Returns the store as a crash leaves it.
fn opened_again(sim: &Sim, store: OnSim) -> (Sim, OnSim) {
    drop(store);
    let sim = Sim::from_image(&sim.images(1, 0).remove(0), Model::Line);
    sim.fail_grow_after(0);
    (sim.clone(), Pmekv::open(sim, HostDram, Options::default()).unwrap())
}

pub(crate) fn delete(store: &OnSim, number: u32) {
    let deleted = store.delete(&key(number)).unwrap_or_else(|error| panic!("{} keys: {error}", store.len().unwrap()));
    assert!(deleted, "{number}");
}

fn all_can_be_deleted(lane_count: u32, growth_count: u64, sizes: &Sizes, opening_count: u32) {
    let (mut sim, mut store, count) = filled(lane_count, growth_count, sizes);
    let opened_every = count / (opening_count + 1) + 1;
    for (number, turn) in scattered(count).into_iter().zip(1..) {
        delete(&store, number);
        if turn % opened_every == 0 {
            (sim, store) = opened_again(&sim, store);
        }
    }
    assert_eq!(store.len().unwrap(), 0);
    is_sound(&store);
    let again = (0..).take_while(|&number| put(&store, number, sizes)).count() as u32;
    assert!(again >= count / 2, "{again} keys where there were {count}");
    is_sound(&store);
}

#[test]
fn full_region_allows_deleting_all_keys() {
    for (lane_count, growth_count) in [(1, 1), (2, 1), (2, 4), (16, 4)] {
        all_can_be_deleted(lane_count, growth_count, ONE_SIZE, 0);
    }
}

#[test]
fn full_region_allows_deletes_across_reopens() {
    all_can_be_deleted(2, 4, ONE_SIZE, 5);
    all_can_be_deleted(16, 4, SIZES, 10);
}

#[test]
fn full_region_can_be_emptied() {
    all_can_be_deleted(1, 1, SIZES, 0);
    all_can_be_deleted(4, 4, SIZES, 0);
}

/// Two threads, each with keys of both lanes.
#[test]
fn full_region_allows_concurrent_deletes() {
    let (_, store, count) = filled(2, 4, SIZES);
    let halves = scattered(count);
    let (first, second) = halves.split_at(halves.len() / 2);
    thread::scope(|scope| {
        for half in [first, second] {
            scope.spawn(|| half.iter().for_each(|&number| delete(&store, number)));
        }
    });
    assert_eq!(store.len().unwrap(), 0);
    is_sound(&store);
    assert!((0..count / 2).all(|number| put(&store, number, SIZES)));
}

/// Each thread deletes a key and puts another; the other thread may have taken the freed slot.
#[test]
fn concurrent_puts_leave_space_for_deletes() {
    let (_, store, count) = filled(2, 1, ONE_SIZE);
    thread::scope(|scope| {
        for half in 0..2 {
            let store = &store;
            scope.spawn(move || {
                for number in (half..count).step_by(2) {
                    delete(store, number);
                    put(store, count + number, ONE_SIZE);
                }
            });
        }
    });
    let left = (count..2 * count).filter(|&number| store.delete(&key(number)).unwrap()).count();
    assert!(left > count as usize / 2, "{left} of {count}");
    assert_eq!(store.len().unwrap(), 0);
}

/// Replaces one key after the other, many times the number of keys.
#[test]
fn full_region_has_space_for_replacement_key() {
    let (sim, mut store, count) = filled(2, 1, ONE_SIZE);
    for number in 0..2 * count {
        delete(&store, number);
        free_all(&store);
        assert!(put(&store, count + number, ONE_SIZE), "{number} of {count}");
        if number == count {
            (_, store) = opened_again(&sim, store);
        }
    }
    assert_eq!(store.len().unwrap(), u64::from(count));
}

/// Groups and batches of deletes, also of lanes whose log has only the batch's end.
#[test]
fn full_region_allows_multi_deletes() {
    let (_, store, count) = filled(4, 1, SIZES);
    let numbers = scattered(count);
    let (groups, batches) = numbers.split_at(numbers.len() / 2);
    for group in groups.chunks(16) {
        let keys: Vec<_> = group.iter().map(|&number| key(number)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        store.multi_delete_each(&keys, &mut |number, deleted| assert!(deleted.unwrap(), "{number}"));
    }
    for batch in batches.chunks(7) {
        let keys: Vec<_> = batch.iter().map(|&number| key(number)).collect();
        let deletes: Vec<_> = keys.iter().map(|key| BatchOp::Delete { key }).collect();
        store.write_batch(&deletes).unwrap();
    }
    assert_eq!(store.len().unwrap(), 0);
    free_all(&store);
    assert!((0..count / 2).all(|number| put(&store, number, SIZES)));
    // One key, so that most lanes have none.
    let (_, store, count) = {
        let sim = Sim::new(0, Model::Line);
        let parameters = Parameters { partition_count: 64, ..PARAMETERS };
        let store = Pmekv::format(sim.clone(), HostDram, &parameters, Options::default()).unwrap();
        store.put(b"only", b"").unwrap();
        sim.fail_grow_after(0);
        let count = (0..10_000u32).filter(|_| store.put(b"only", &[7; 60_000]).is_ok()).count();
        (sim, store, count)
    };
    store.write_batch(&[BatchOp::Delete { key: b"only" }]).unwrap_or_else(|error| panic!("{count}: {error}"));
}

/// Batches that put are refused as single puts are, and use no space that deletes need.
#[test]
fn refused_batches_leave_space_for_deletes() {
    let (_, store, count) = filled(2, 1, ONE_SIZE);
    let news: Vec<_> = (count..count + 2_000).map(key).collect();
    for (number, turn) in scattered(count).into_iter().zip(0..) {
        if turn % 500 == 0 && turn < 3_000 {
            let puts: Vec<_> = news.iter().map(|key| BatchOp::Put { key, value: &[7; 300] }).collect();
            assert!(store.write_batch(&puts).is_err_and(|error| is_full(&error)));
        }
        delete(&store, number);
    }
}

#[test]
fn cleared_full_region_holds_as_much() {
    for (lane_count, sizes) in [(1, ONE_SIZE), (16, SIZES)] {
        let (sim, mut store, count) = filled(lane_count, 4, sizes);
        for is_opened in [false, true] {
            store.clear().unwrap();
            assert_eq!(store.len().unwrap(), 0);
            free_all(&store);
            if is_opened {
                (_, store) = opened_again(&sim, store);
            }
            let again = (0..).take_while(|&number| put(&store, number, sizes)).count() as u32;
            assert!(again >= count / 2, "{again} keys where there were {count}");
            is_sound(&store);
        }
        scattered(count / 2).into_iter().for_each(|number| delete(&store, number));
    }
}

/// Returns true if all keys can be deleted after an opening.
fn lets_deletes_through(canary: Canary) -> bool {
    let sim = Sim::new(0, Model::Line).with_canary(canary);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap();
    sim.fail_grow_after(4);
    let count = (0..).take_while(|&number| put(&store, number, ONE_SIZE)).count() as u32;
    // Values of the size class of nodes, as long as there is space.
    while put_filler(&store) {}
    drop(store);
    let sim = Sim::from_image(&sim.images(1, 0).remove(0), Model::Line).with_canary(canary);
    sim.fail_grow_after(0);
    let store = Pmekv::open(sim, HostDram, Options::default()).unwrap();
    // Values of that class for present keys, which need no node.
    let large_count = (0..count).take_while(|&number| store.put(&key(number), &[7; 4_000]).is_ok()).count() as u32;
    // Then the other keys' log entries, while there is space only for segments, as far as possible without a
    // checkpoint.
    (large_count..count).take_while(|&number| put(&store, number, ONE_SIZE)).for_each(drop);
    scattered(count).into_iter().all(|number| store.delete(&key(number)).is_ok())
}

fn put_filler(store: &OnSim) -> bool {
    let number = u32::try_from(store.len().unwrap()).unwrap();
    store.put(&number.to_le_bytes().repeat(3), &[7; 4_000]).is_ok()
}

#[test]
fn deletes_rest_on_the_reserve() {
    assert!(lets_deletes_through(Canary("none")));
    assert!(!lets_deletes_through(canary::NODES_NOT_RESERVED));
    assert!(!lets_deletes_through(canary::RESERVE_NOT_KEPT));
}

/// A store of a version without a reserve opens, reads and deletes as before, and behaves like any other once there is
/// space.
#[test]
fn full_store_regains_its_reserve() {
    let sim = Sim::new(0, Model::Line).with_canary(canary::NODES_NOT_RESERVED);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap();
    sim.fail_grow_after(4);
    let count = (0..).take_while(|&number| put(&store, number, ONE_SIZE)).count() as u32;
    let (sim, store) = opened_again(&sim, store);
    assert_eq!(store.len().unwrap(), u64::from(count));
    let mut numbers = scattered(count).into_iter();
    numbers.by_ref().take(500).for_each(|number| delete(&store, number));
    assert!(!put(&store, count, ONE_SIZE), "there is no node for the key");
    sim.fail_grow_after(1);
    assert!(put(&store, count, ONE_SIZE));
    while put(&store, u32::try_from(store.len().unwrap()).unwrap() + 1_000, ONE_SIZE) {}
    numbers.for_each(|number| delete(&store, number));
}

/// Returns true if a checkpoint in a full region finds slots while keys that it has met are deleted, and new keys that
/// it will meet are added.
fn finds_slots_while_keys_change(canary: Canary) -> bool {
    let sim = Sim::new(0, Model::Line).with_canary(canary);
    // So many lanes that none begins a segment during the checkpoint, which it would have to wait for.
    let parameters = Parameters { partition_count: 16, ..PARAMETERS };
    let store = Arc::new(Pmekv::format(sim.clone(), HostDram, &parameters, Options::default()).unwrap());
    sim.fail_grow_after(2);
    let count = (0..).take_while(|&number| put(&store, number, ONE_SIZE)).count() as u32;
    // Leaves space only for small records, whatever is freed during the test.
    (0..3_000).for_each(|number| delete(&store, number));
    for _ in 0..2 {
        store.checkpoint().unwrap();
        free_all(&store);
        while put_filler(&store) {}
    }
    assert!(put(&store, count - 1, ONE_SIZE));
    let mut low: Vec<_> = (3_000..count - 1).map(key).collect();
    low.sort_unstable();
    low.truncate(2_000);
    let (theirs, writer) = (Arc::clone(&store), Arc::new(Mutex::new(None)));
    let (noted, step_count) = (Arc::clone(&writer), AtomicU64::new(0));
    sim.observe(Box::new(move |_, kind| {
        // The checkpoint has met the lowest keys by then.
        if kind != StepKind::Stream || step_count.fetch_add(1, Ordering::Relaxed) != 10 {
            return;
        }
        let (theirs, low, changed) = (Arc::clone(&theirs), low.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&changed);
        let changing = thread::spawn(move || {
            let count = || _ = counted.fetch_add(1, Ordering::Relaxed);
            for key in &low {
                assert!(theirs.delete(key).unwrap());
                count();
            }
            for number in 0..low.len() as u32 {
                let key = [&[0xFF; 4][..], &number.to_be_bytes()].concat();
                while theirs.put(&key, &[7; 36]).is_err() {}
                count();
            }
        });
        // Polls until the thread waits for the checkpoint.
        let (mut before, mut poll_count) = (0, 0);
        while poll_count < LOOK_COUNT && !changing.is_finished() {
            thread::yield_now();
            let now = changed.load(Ordering::Relaxed);
            poll_count = if now == before { poll_count + 1 } else { 0 };
            before = now;
        }
        *noted.lock() = Some(changing);
    }));
    let made = store.checkpoint();
    sim.unobserve();
    writer.lock().take().expect("nodes were written").join().unwrap();
    made.is_ok()
}

#[test]
fn churning_keys_have_checkpoint_slots() {
    assert!(finds_slots_while_keys_change(Canary("none")));
    assert!(!finds_slots_while_keys_change(canary::GONE_WHILE_READ));
}
