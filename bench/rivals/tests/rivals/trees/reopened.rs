//! Trees of many leaves, opened again: the contents are the same, and so is the space in use, so nothing leaks.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::thread;

use fastrand::Rng;
use pmem_sim::{Model, Sim, SimDram};
use rivals::{FpTree, FpTreeCached, KeyBytes, NvTree, Sizes, Tree};

const OPERATION_COUNT: usize = 12_000;
const KEY_COUNT: u64 = 3000;

type Contents = BTreeMap<KeyBytes, Vec<u8>>;

fn contents<T: Tree<Sim, SimDram>>(tree: &T) -> Contents {
    let mut contents = Contents::new();
    tree.scan(&[0; 16], &mut |key, value| {
        assert!(contents.insert(*key, value.to_vec()).is_none());
        ControlFlow::Continue(())
    })
    .unwrap();
    contents
}

/// Puts and deletes at random; returns the contents as a map.
fn fill<T: Tree<Sim, SimDram>>(tree: &T) -> Contents {
    let (mut map, mut rng) = (Contents::new(), Rng::with_seed(1));
    for number in 0..OPERATION_COUNT {
        let mut key = [0; 16];
        key[8..].copy_from_slice(&Rng::with_seed(rng.u64(..KEY_COUNT)).u64(..).to_be_bytes());
        if rng.u8(..4) == 0 {
            assert_eq!(tree.delete(&key).unwrap(), map.remove(&key).is_some());
        } else {
            let value = vec![number as u8; 10 + number % 3 * 100];
            tree.put(&key, &value).unwrap();
            map.insert(key, value);
        }
    }
    map
}

fn stays<T: Tree<Sim, SimDram>>() {
    let (sim, sizes) = (Sim::new(1 << 20, Model::Line), Sizes { leaf_entry_count: 24, region_bytes: 1 << 20 });
    let tree = T::format(sim.clone(), SimDram, &sizes).unwrap();
    let map = fill(&tree);
    assert!(contents(&tree) == map);
    while tree.records().collect() > 0 {
        thread::yield_now();
    }
    let bytes = tree.records().persistent_bytes();
    drop(tree);
    let tree = T::open(sim, SimDram).unwrap();
    assert!(contents(&tree) == map);
    assert_eq!(tree.records().persistent_bytes(), bytes);
    map.keys().for_each(|key| assert!(tree.get(key, |value| assert_eq!(value, map[key])).unwrap()));
    let mut key = *map.keys().next().unwrap();
    key[15] ^= 1;
    assert!(!tree.get(&key, |_| {}).unwrap());
}

#[test]
fn fptree_is_the_same_when_opened_again() {
    stays::<FpTree<Sim, SimDram>>();
}

#[test]
fn reopened_nv_tree_is_unchanged() {
    stays::<NvTree<Sim, SimDram>>();
}

#[test]
fn reopened_cached_fptree_is_unchanged() {
    stays::<FpTreeCached<Sim, SimDram>>();
}
