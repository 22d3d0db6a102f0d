//! The cost of writes: fences and lines, at order 63.

use pbtree::{Change, FreeImmediately, NewValue, Options, Tree};
use pmem::{Counted, Medium};
use pmem_sim::{Model, Sim, SimDram};

use crate::subject::parameters;

type Store = Tree<Counted<Sim>, SimDram, FreeImmediately>;

const KEY_COUNT: u32 = 1000;

fn store(in_place: bool) -> Store {
    let medium = Counted::new(Sim::new(0, Model::Line));
    let store = Tree::format(medium, &parameters(), Options { order: 63, in_place }, SimDram, FreeImmediately).unwrap();
    // Every other key, in an order that leaves nodes about as full as usual.
    for i in 0..KEY_COUNT {
        write(&store, i * 7919 % KEY_COUNT * 2, Some(256));
    }
    store
}

fn key(i: u32) -> [u8; 16] {
    let mut key = *b"key of 16: 12345";
    key[11..].copy_from_slice(format!("{i:05}").as_bytes());
    key
}

fn write(store: &Store, i: u32, value_bytes: Option<usize>) -> (u64, u64) {
    let bytes = vec![i as u8; value_bytes.unwrap_or(0)];
    let change = value_bytes.map_or(Change::Delete, |_| Change::Put(NewValue { bytes: &bytes, expiry: None }));
    let before = store.medium().counts().unwrap();
    store.write(0, &key(i), change, &mut |_| true).unwrap();
    let after = store.medium().counts().unwrap();
    (after.fence_count - before.fence_count, after.flushed_line_count - before.flushed_line_count)
}

/// Returns the mean number of lines and the median number of fences of some writes.
fn costs(store: &Store, keys: impl Iterator<Item = u32>, value_bytes: Option<usize>) -> (u64, u64) {
    let mut all: Vec<(u64, u64)> = keys.map(|i| write(store, i, value_bytes)).collect();
    all.sort_unstable();
    (all[all.len() / 2].0, all.iter().map(|(_, lines)| lines).sum::<u64>() / all.len() as u64)
}

#[test]
fn writes_persist_as_often_as_documented() {
    let swaps = store(false);
    let updated = costs(&swaps, (100..200).map(|i| i * 2), Some(256));
    let inserted = costs(&swaps, (0..KEY_COUNT).step_by(7).map(|i| i * 2 + 1), Some(256));
    let deleted = costs(&swaps, (100..200).map(|i| i * 2), None);
    let appended = costs(&swaps, (2 * KEY_COUNT..2 * KEY_COUNT + 20).filter(|i| i % 2 == 0), Some(256));
    let in_place = costs(&store(true), (100..200).map(|i| i * 2), Some(256));
    assert_eq!([updated, deleted, appended, in_place].map(|(fences, _)| fences), [2, 1, 2, 3]);
    assert_eq!(inserted.0, 3);
    assert_eq!([updated.1, deleted.1, in_place.1], [6, 1, 11]);
    assert!((20..=24).contains(&inserted.1), "{} lines", inserted.1);
}
