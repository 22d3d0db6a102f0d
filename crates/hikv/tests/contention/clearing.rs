//! `clear` is atomic over all keys, which histories of single keys cannot show.

use std::sync::Barrier;
use std::thread;

use hikv::{Options, Store};

use crate::place::Placed;

const KEY_COUNT: u32 = 64;

fn put_all(store: &Store) {
    (0..KEY_COUNT).for_each(|key| store.put(key.to_le_bytes(), b"here").unwrap());
}

/// Reads all keys repeatedly until one is missing; after that, no key may exist. Returns true if some key existed
/// before.
fn sees_the_clear_halfway(store: &Store, order: impl Fn(u32) -> u32) -> bool {
    loop {
        let is_there = |key| store.contains(order(key).to_le_bytes()).unwrap();
        let there: Vec<bool> = (0..KEY_COUNT).map(is_there).collect();
        let count = there.iter().take_while(|&&there| there).count();
        assert!(!there[count..].contains(&true), "a key was cleared before another: {there:?}");
        if count < there.len() {
            return count > 0;
        }
    }
}

fn rounds(count: u32) {
    let placed = Placed::open(&Options::new().tuning(|tuning| tuning.partition_count(8)));
    let (store, start) = (&placed.store, Barrier::new(3));
    let mut halfway_count = 0;
    for _ in 0..count {
        put_all(store);
        thread::scope(|scope| {
            let reader = |is_backwards: bool| {
                start.wait();
                sees_the_clear_halfway(store, |key| if is_backwards { KEY_COUNT - 1 - key } else { key })
            };
            let readers = [false, true].map(|is_backwards| scope.spawn(move || reader(is_backwards)));
            start.wait();
            store.clear().unwrap();
            halfway_count += readers.map(|reader| u32::from(reader.join().unwrap())).iter().sum::<u32>();
        });
    }
    assert!(halfway_count > 0, "no reader was halfway when the store was cleared");
    placed.assert_sound();
}

#[test]
fn store_is_cleared_as_one_step() {
    rounds(1000);
}

#[test]
#[ignore = "minutes"]
fn store_is_cleared_atomically_for_long() {
    rounds(50_000);
}
