//! Results of lookups compared with gets: of items in slots and outside the table, of copies, and of many keys
//! together.

use engine::prelude::*;
use engine::{Expiry, Lookup, Verify, empty_buffer};
use engine_rewo_hash::RewoHash;
use pmem::Counted;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::subject::PARAMETERS;

type Store = RewoHash<Counted<Sim>, HostDram>;

const KEY_COUNT: u32 = 600;

fn store() -> Store {
    RewoHash::format(Counted::new(Sim::new(0, Model::Line)), HostDram, &PARAMETERS).unwrap()
}

/// Returns keys with lengths on both sides of those that have a fast path for lookups.
fn key(i: u32) -> Vec<u8> {
    let len_bytes = [4, 8, 9, 13, 16, 16, 16, 17, 40][i as usize % 9];
    (0..len_bytes).map(|at| if at < 4 { i.to_be_bytes()[at] } else { at as u8 }).collect()
}

fn value(i: u32) -> Vec<u8> {
    let len_bytes = [0, 1, 8, 11, 15, 16, 31, 256, 1023, 1024, 1025, 4000, 5000][i as usize % 13];
    (0..len_bytes).map(|at| (i as usize * 7 + at) as u8).collect()
}

/// One of four keys expires at some time.
fn fill(store: &Store, keys: impl Iterator<Item = u32>) {
    for i in keys {
        let expiry = if i % 4 == 3 { Expiry::at_ms(u64::MAX - 1) } else { Expiry::NEVER };
        store.put_until(&key(i), &value(i), expiry).unwrap();
    }
}

/// Returns the result of a lookup, unless it is unsure.
fn lookup(store: &Store, key: &[u8]) -> Option<Option<Vec<u8>>> {
    let (pin, mut buffer) = (epoch::pin(), empty_buffer());
    match store.lookup(pin.pinned(), key, &mut buffer).unpack() {
        Lookup::Value(value) => Some(Some(value.to_vec())),
        Lookup::Absent => Some(None),
        Lookup::Unsure => None,
    }
}

/// Asserts that lookups return the correct results.
fn assert_lookups_match(store: &Store, held: impl Fn(u32) -> Option<Vec<u8>>) {
    for i in 0..2 * KEY_COUNT {
        let reported = lookup(store, &key(i));
        assert!(reported.as_ref().is_none_or(|reported| *reported == held(i)), "{i}: {reported:?}");
    }
}

/// Asserts that a get of all keys returns them in the requested order.
fn is_shown_in_order(store: &Store, held: impl Fn(u32) -> Option<Vec<u8>>) {
    let keys: Vec<_> = (0..2 * KEY_COUNT).rev().map(key).collect();
    let slices: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut next = 0;
    let mut shown = |at: usize, value: Option<&[u8]>| {
        assert_eq!((at, value), (next, held(2 * KEY_COUNT - 1 - next as u32).as_deref()));
        next += 1;
    };
    store.multi_get(&slices, &mut shown).unwrap();
    assert_eq!(next, slices.len());
}

#[test]
fn lookups_and_groups_match_gets() {
    let stores = [
        store(),
        store().verifying(Verify::Values),
        store().verifying(Verify::Absence),
        store().caching(1 << 20, HostDram).unwrap(),
        store().caching(1, HostDram).unwrap(),
    ];
    for store in stores {
        fill(&store, 0..KEY_COUNT);
        let held = |i: u32| (i < KEY_COUNT && !i.is_multiple_of(5)).then(|| value(i));
        (0..KEY_COUNT).step_by(5).for_each(|i| assert!(store.delete(&key(i)).unwrap()));
        // Twice: the second round reads the copies that the first one has cached.
        for _ in 0..2 {
            assert_lookups_match(&store, held);
            is_shown_in_order(&store, held);
        }
    }
}

/// If all items are of one kind, lookups are never unsure.
#[test]
fn look_suffices_for_items_that_are_alike() {
    for len_bytes in [7, 200] {
        for store in [store(), store().caching(1 << 20, HostDram).unwrap()] {
            // A lookup compares four bytes of the first eight: no two keys are equal in them.
            let start = |i: u32| u64::from(i).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
            let (key, value) = (|i: u32| [start(i), u64::from(i).to_le_bytes()].concat(), vec![3; len_bytes]);
            (0..KEY_COUNT).for_each(|i| store.put(&key(i), &value).unwrap());
            for i in 0..2 * KEY_COUNT {
                assert_eq!(lookup(&store, &key(i)), Some((i < KEY_COUNT).then(|| value.clone())), "{i} {len_bytes}");
            }
        }
    }
}

/// A get of sixteen keys persists nothing.
#[test]
fn groups_persist_nothing() {
    let store = store();
    fill(&store, 0..KEY_COUNT);
    let before = pmem::Medium::counts(store.medium());
    is_shown_in_order(&store, |i| (i < KEY_COUNT).then(|| value(i)));
    assert_eq!(pmem::Medium::counts(store.medium()), before);
}
