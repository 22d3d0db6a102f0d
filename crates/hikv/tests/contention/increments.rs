//! Concurrent increments of one key add up.

use std::thread;

use hikv::{Decision, Options};

use crate::place::Placed;

const THREAD_COUNT: u64 = 4;
const CALL_COUNT: u64 = 5_000;

#[test]
fn increments_sum_up() {
    let placed = Placed::open(&Options::new());
    let store = &placed.store;
    thread::scope(|scope| {
        for _ in 0..THREAD_COUNT {
            scope.spawn(|| (0..CALL_COUNT).for_each(|_| _ = store.increment("sum", 1).unwrap()));
        }
    });
    assert_eq!(store.get("sum").unwrap().unwrap(), (THREAD_COUNT * CALL_COUNT).to_string().as_bytes());
    placed.assert_sound();
}

#[test]
fn ordered_increments_sum_up_with_deletes() {
    let placed = Placed::open(&Options::new());
    let store = &placed.store;
    store.ordered().unwrap().wait_until_ready(|_| {}).unwrap();
    let taken: u64 = thread::scope(|scope| {
        let adders = [0; THREAD_COUNT as usize]
            .map(|_| scope.spawn(|| (0..CALL_COUNT).for_each(|_| _ = store.increment("sum", 1).unwrap())));
        let taker = scope.spawn(|| (0..CALL_COUNT).map(|_| take(store)).sum::<u64>());
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        taker.join().unwrap()
    });
    assert_eq!(taken + take(store), THREAD_COUNT * CALL_COUNT);
    placed.assert_sound();
}

/// Deletes the key and returns its value.
fn take(store: &hikv::Store) -> u64 {
    let mut taken = 0;
    let decide = |value: Option<&[u8]>| {
        taken = value.map_or(0, |value| str::from_utf8(value).unwrap().parse().unwrap());
        Decision::Delete
    };
    store.update("sum", decide).unwrap();
    taken
}
