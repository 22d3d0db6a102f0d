//! Without crashes: the tree behaves like a map at every order, and is consistent.

use std::collections::BTreeMap;

use pbtree::layout::node_bytes;
use pbtree::{Change, Direction, FreeImmediately, Options, Tree};
use pmem_sim::{Model, Sim, SimDram};
use std::ops::Bound;
use testkit::{Operations, Shape, Subject, conformance};

use crate::subject::{Copied, Crashed, ORDER, parameters, put};

#[test]
fn it_answers_like_a_map() {
    let shape = Shape { swaps: true, scans: true, clears: true, ..Shape::small(1000) };
    let shape = Shape { keys: (0..40u8).map(|i| vec![b'k', i]).chain(shape.keys.clone()).collect(), ..shape };
    fn new<const IN_PLACE: bool>() -> Box<dyn Operations> {
        Box::new(Crashed::<IN_PLACE>::format(Sim::new(0, Model::Line)).unwrap())
    }
    for make in [new::<false>, new::<true>] {
        let compared = conformance(make, &shape, 0..4);
        assert!(compared.unwrap_or_else(|mismatch| panic!("{mismatch}")) >= 4000);
    }
}

/// Keys in random order: some repeat, some are deleted, and some share long prefixes.
fn key(i: u32) -> Vec<u8> {
    let mixed = i.wrapping_mul(0x9E37_79B1);
    format!("{}{:04}", if mixed.is_multiple_of(3) { "a common start of some length/" } else { "" }, mixed % 1500).into()
}

#[test]
fn trees_of_every_order_stay_sound() {
    for order in [7, 15, 63, 255] {
        let sim = Sim::new(0, Model::Span);
        let tree =
            Tree::format(sim, &parameters(), Options { order, in_place: false }, SimDram, FreeImmediately).unwrap();
        let mut map = BTreeMap::new();
        for i in 0..4000 {
            let (key, value) = (key(i), i.to_le_bytes());
            let written = if i % 7 == 3 {
                (tree.write(1, &key, Change::Delete, &mut |_| true).unwrap(), map.remove(&key))
            } else {
                (tree.write(0, &key, put(&value), &mut |_| true).unwrap(), map.insert(key, value))
            };
            assert_eq!(written.0.was_there, written.1.is_some());
        }
        for i in 0..4000 {
            let found = tree.get(&key(i), |value| value.bytes.to_vec()).unwrap();
            assert_eq!(found.as_deref(), map.get(&key(i)).map(|value| &value[..]));
        }
        let mut page = Copied::default();
        assert_eq!(tree.scan(Bound::Unbounded, Direction::Forward, &mut page), Ok(true));
        assert!(page.items.iter().map(|(key, _)| key).eq(map.keys().take(page.items.len())));
        let figures = tree.check(&mut |damage| panic!("order {order}: {damage:?}")).unwrap();
        assert_eq!((figures.key_count, figures.used_bytes), (map.len() as u64, tree.heap().stats().live_bytes));
        assert!(figures.dead_count > 0 && figures.level_count > 1, "{figures:?}");
    }
}

#[test]
fn reopened_tree_sweeps_to_same_space() {
    let sim = Sim::new(0, Model::Line);
    let store = Crashed::<false>::format(sim.clone()).unwrap();
    (0..300).for_each(|i| store.put(&key(i), &[i as u8; 40]).unwrap());
    // Except the spare node that the splits have kept for merges.
    let used_bytes = store.0.check(&mut |_| {}).unwrap().used_bytes - node_bytes(ORDER);
    drop(store);
    let store = Crashed::<false>::open(sim).unwrap();
    (0..300).for_each(|i| assert_eq!(store.get(&key(i)).unwrap(), Some(vec![i as u8; 40])));
    store.settle().unwrap();
    assert_eq!((store.0.heap().stats().live_bytes, store.check()), (used_bytes, Ok(vec![])));
}
