//! Merges: the resulting tree, the conditions under which merges do not run, and that nothing is freed that a crash
//! might restore.

use std::collections::BTreeMap;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use heap::{Place, Reservation};
use pbtree::layout::node_bytes;
use pbtree::{Change, Error, FreeImmediately, Merged, Options, Tree};
use pmem::Canary;
use pmem_sim::{Image, Model, Sim, SimDram};

use crate::subject::{merge_all, parameters, put};

type Store = Tree<Sim, SimDram, FreeImmediately>;

const KEY_COUNT: u32 = 600;

fn key(i: u32) -> Vec<u8> {
    format!("key {:04}", i.wrapping_mul(7919) % KEY_COUNT).into()
}

fn store_of(order: usize, canary: Option<Canary>) -> (Sim, Store) {
    let sim = canary.into_iter().fold(Sim::new(0, Model::Line), Sim::with_canary);
    let tree =
        Tree::format(sim.clone(), &parameters(), Options { order, in_place: false }, SimDram, FreeImmediately).unwrap();
    (0..KEY_COUNT).for_each(|i| _ = tree.write(0, &key(i), put(&i.to_le_bytes()), &mut |_| true).unwrap());
    (sim, tree)
}

fn delete(tree: &Store, i: u32) {
    assert!(tree.write(0, &key(i), Change::Delete, &mut |_| true).unwrap().was_there);
}

#[test]
fn tree_shrinks_with_its_keys() {
    for order in [7, 15, 63] {
        let (_, tree) = store_of(order, None);
        let mut map: BTreeMap<Vec<u8>, u32> = (0..KEY_COUNT).map(|i| (key(i), i)).collect();
        let full = tree.figures().unwrap();
        for (i, left) in (0..KEY_COUNT).zip((0..KEY_COUNT).rev()) {
            delete(&tree, i);
            map.remove(&key(i));
            if left % 150 > 0 && left != 1 {
                continue;
            }
            assert!(tree.take_vacated() > 0);
            merge_all(&tree).unwrap();
            let figures = tree.check(&mut |damage| panic!("order {order}: {damage:?}")).unwrap();
            assert_eq!(figures.key_count, u64::from(left));
            assert_eq!(figures.used_bytes, tree.heap().stats().live_bytes, "nothing leaks");
            // Leaves that no merge can help are more than three eighths full; each parent may have one exception.
            let leaves_max = 2 + left as usize * 8 / (order * 3) * 3 / 2;
            assert!(figures.node_count as usize <= leaves_max * 3 / 2, "order {order}, {left} left: {figures:?}");
            for i in 0..KEY_COUNT {
                let found = tree.get(&key(i), |value| value.bytes.to_vec()).unwrap();
                assert_eq!(found, map.get(&key(i)).map(|i| i.to_le_bytes().to_vec()));
            }
        }
        let empty = tree.figures().unwrap();
        assert_eq!((empty.level_count, empty.node_count), (1, 1), "order {order}, from {full:?}");
        (0..KEY_COUNT).for_each(|i| _ = tree.write(0, &key(i), put(b"again"), &mut |_| true).unwrap());
        assert_eq!(tree.check(&mut |damage| panic!("{damage:?}")).unwrap().key_count, u64::from(KEY_COUNT));
    }
}

#[test]
fn full_nodes_stay_as_they_are() {
    let (_, tree) = store_of(7, None);
    let before = tree.figures().unwrap();
    merge_all(&tree).unwrap();
    let merged = tree.figures().unwrap();
    merge_all(&tree).unwrap();
    assert_eq!(tree.figures().unwrap(), merged, "what is merged is not merged again");
    assert!(merged.node_count > before.node_count / 2);
}

/// Puts keys of `name` until one is refused, and returns their number.
fn fill(tree: &Store, name: &str) -> u32 {
    let put = |i: u32| tree.write(0, format!("{name} {i:06}").as_bytes(), put(&[7; 40]), &mut |_| true);
    (0..).find(|i| put(*i).is_err()).expect("a region is full at some time")
}

/// Returns a tree that fills its region, the number of keys that filled it, and reservations of all remaining nodes.
fn full() -> (Store, u32, Vec<Place>) {
    let (sim, tree) = store_of(7, None);
    sim.fail_grow_after(3);
    let count = fill(&tree, "old");
    assert!(count > KEY_COUNT, "{count} keys fill what is left");
    let node = || tree.heap().reserve(tree.medium(), node_bytes(7), 0).ok().map(Reservation::publish);
    let taken: Vec<Place> = iter::from_fn(node).collect();
    (tree, count, taken)
}

/// A clear makes its root before it releases the old tree.
#[test]
fn full_region_is_cleared() {
    let (tree, count, _) = full();
    tree.clear(0).unwrap();
    assert_eq!(tree.check(&mut |damage| panic!("{damage:?}")).unwrap().key_count, 0);
    assert!(fill(&tree, "new") > count / 2);
}

/// A merge needs a node before it releases two, and a full region has only the spare that splits leave.
#[test]
fn deletes_in_full_region_free_space() {
    let (tree, count, taken) = full();
    (0..count).filter(|i| i % 4 > 0).for_each(|i| {
        let deleted = tree.write(0, format!("old {i:06}").as_bytes(), Change::Delete, &mut |_| true);
        assert!(deleted.unwrap().was_there);
    });
    let before = tree.figures().unwrap();
    merge_all(&tree).unwrap();
    let after = tree.figures().unwrap();
    assert!(after.node_count < before.node_count * 3 / 4, "of {before:?} are left {after:?}");
    let more = fill(&tree, "new");
    assert!(more > count / 2, "of {count} three quarters went, and {more} have room");
    taken.into_iter().for_each(|place| tree.heap().free(tree.medium(), place));
    let figures = tree.check(&mut |damage| panic!("{damage:?}")).unwrap();
    assert_eq!(figures.used_bytes, tree.heap().stats().live_bytes, "nothing leaks");
}

/// Before the sweep separators may only move up, and during a walk they stay.
#[test]
fn merges_wait_for_sweeps_and_walks() {
    let (sim, tree) = store_of(7, None);
    (0..KEY_COUNT).for_each(|i| delete(&tree, i));
    let (mut looks, merge) = (0, |tree: &Store| tree.merge(0, 1, None, &mut |_| ()).unwrap());
    let mut meanwhile = || {
        looks += 1;
        assert_eq!(merge(&tree), Merged::NotNow);
        looks < 9
    };
    assert_eq!(tree.check_while(&mut |damage| panic!("{damage:?}"), &mut meanwhile), Err(Error::Stopped));
    assert_eq!((looks, merge(&tree)), (9, Merged::Fewer));
    drop(tree);
    let tree = Tree::open(sim, Options::default(), SimDram, FreeImmediately).unwrap();
    assert_eq!((merge(&tree), tree.vacated_count()), (Merged::NotNow, 0));
    tree.sweep().unwrap();
    assert!(tree.vacated_count() > 0, "the sweep has seen how few pairs there are");
    assert_eq!(merge(&tree), Merged::Fewer);
}

/// Writers, readers and walks run alongside a thread that merges without a pause. Each has its own keys and finds
/// them.
#[test]
fn reads_and_writes_continue_during_merges() {
    engine::relax_by_threads();
    let (_, tree) = store_of(7, None);
    let (tree, is_over, begin) = (&tree, &AtomicBool::new(false), &Barrier::new(4));
    thread::scope(|scope| {
        let merging = scope.spawn(move || {
            begin.wait();
            let mut merged = 0;
            while !is_over.load(Ordering::Relaxed) {
                merge_all(tree).unwrap();
                merged += 1;
            }
            merged
        });
        let walks = scope.spawn(move || {
            begin.wait();
            while !is_over.load(Ordering::Relaxed) {
                tree.check(&mut |damage| panic!("{damage:?}")).unwrap();
            }
        });
        let write = |own: u32| {
            begin.wait();
            for _ in 0..6 {
                for i in (0..KEY_COUNT).filter(|i| i % 2 == own) {
                    delete(tree, i);
                    assert_eq!(tree.get(&key(i), |_| ()).unwrap(), None);
                }
                for i in (0..KEY_COUNT).filter(|i| i % 2 == own) {
                    tree.write(own as usize, &key(i), put(&i.to_le_bytes()), &mut |_| true).unwrap();
                    assert_eq!(tree.get(&key(i), |value| value.bytes == i.to_le_bytes()).unwrap(), Some(true));
                }
            }
        };
        let other = scope.spawn(move || write(1));
        write(0);
        other.join().unwrap();
        is_over.store(true, Ordering::Relaxed);
        assert!(merging.join().unwrap() > 0);
        walks.join().unwrap();
    });
    merge_all(tree).unwrap();
    let figures = tree.check(&mut |damage| panic!("{damage:?}")).unwrap();
    assert_eq!((figures.key_count, figures.used_bytes), (u64::from(KEY_COUNT), tree.heap().stats().live_bytes));
}

/// Returns true if a crash at some step of merges leaves a tree with a reference to a place that was free when the
/// power failed.
fn something_named_is_free(canary: Option<Canary>) -> bool {
    let (sim, tree) = store_of(7, canary);
    (0..KEY_COUNT - 3).for_each(|i| delete(&tree, i));
    let tree = Arc::new(tree);
    let (found, looked_at) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (live, reported, count) = (Arc::clone(&tree), Arc::clone(&found), Arc::clone(&looked_at));
    let look = Mutex::new(move |image: &Image| {
        let left =
            Tree::open(Sim::from_image(image, Model::Line), Options::default(), SimDram, FreeImmediately).unwrap();
        let mut named_count = 0;
        left.each_named(&mut |place| {
            reported.fetch_or(live.heap().table().is_free(place), Ordering::Relaxed);
            named_count += 1;
        })
        .unwrap();
        assert!(named_count > 0);
        count.fetch_add(1, Ordering::Relaxed);
    });
    let steps = AtomicUsize::new(0);
    sim.observe(Box::new(move |sim, _| {
        // The first merges, of leaves, and the last ones, of inner nodes and the root.
        if steps.fetch_add(1, Ordering::Relaxed).is_multiple_of(7) {
            sim.images(4, 1).iter().for_each(|image| look.lock().unwrap()(image));
        }
    }));
    merge_all(&tree).unwrap();
    sim.unobserve();
    assert!(looked_at.load(Ordering::Relaxed) > 100);
    found.load(Ordering::Relaxed)
}

#[test]
fn crashed_merge_frees_nothing_needed() {
    assert!(!something_named_is_free(None));
    assert!(something_named_is_free(Some(pbtree::canary::MERGED_FREED_EARLY)));
}
