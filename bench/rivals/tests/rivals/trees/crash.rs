//! The trees' guarantees at every step of a script, also when recovery is crashed repeatedly: an acknowledged
//! operation is present, and an operation in progress is present completely or not at all. Their broken variants must
//! be caught.

use pmem::Canary;
use pmem_sim::{Sim, SimDram};
use rivals::{FpTree, FpTreeCached, NvTree, Tree, canary};
use testkit::{Op, Operations, Script, Settings, Shape, Visitor, conformance, explore, hunt};

use super::subject::{SIZES, Tested, fresh};

fn key(i: u32) -> Vec<u8> {
    format!("key {i:02}").into_bytes()
}

fn put(i: u32, tag: u8) -> Op {
    Op::Put(key(i), vec![tag; 12])
}

fn delete(i: u32) -> Op {
    Op::Delete(key(i))
}

/// No visitors: the views of concurrent readers are not part of the claim.
fn settings() -> Settings {
    let visitors = vec![Visitor::Nobody];
    Settings { region_bytes: SIZES.region_bytes, visitors, nested_images_max: 2, ..Settings::default() }
}

fn shape(key_count: u32, op_count: usize) -> Shape {
    let keys = (0..key_count).map(key).collect();
    Shape { keys, value_lens_bytes: vec![0, 8, 15], scans: true, reopens: true, ..Shape::small(op_count) }
}

/// Operations before those that are explored, and these.
type Ops = (Vec<Op>, Vec<Op>);

/// A leaf is filled, and a put splits it.
fn splits() -> Ops {
    ([0, 2, 4, 6].map(|i| put(i, 1)).into(), vec![put(3, 2), put(5, 2), Op::Reopen, put(1, 3)])
}

/// A key in a full leaf is updated.
fn updates_in_full_leaf() -> Ops {
    ([0, 1, 2, 3].map(|i| put(i, 1)).into(), vec![put(2, 2), put(0, 3), Op::Reopen, put(3, 4)])
}

/// Three leaves exist; the middle one and the last one lose all keys, and keys return.
fn empties_leaves() -> Ops {
    let before = (0..9).map(|i| put(i, 1)).chain([5, 4].map(delete)).collect();
    let emptied = [3, 2, 6, 7, 8].map(delete).into_iter();
    (before, emptied.chain([put(8, 2), put(3, 2), Op::Reopen, put(4, 3)]).collect())
}

/// Full leaves with few keys left: one is written again, one takes over the next.
fn compacts_and_merges() -> Ops {
    let before = [0, 2, 4, 6, 1].map(|i| put(i, 1)).into_iter().chain([put(6, 2), delete(6), put(4, 2)]);
    let merged = [delete(0), delete(2), put(1, 3), put(1, 4), put(1, 5)];
    (before.collect(), merged.into_iter().chain([put(1, 6), Op::Reopen, put(1, 7), put(3, 8)]).collect())
}

fn scripts() -> Vec<Script> {
    let all = [splits(), updates_in_full_leaf(), empties_leaves(), compacts_and_merges()];
    let scripts = all.into_iter().enumerate().map(|(i, (before, ops))| Script::after(i as u64, before, ops));
    scripts.chain([Script::seeded(4, &shape(6, 16))]).collect()
}

/// Returns the leaves that are split and removed by the operations that a script explores.
fn reshaped<T: Tree<Sim, SimDram>>((before, ops): Ops) -> [u64; 2] {
    let tree = fresh::<T>();
    let apply = |ops: Vec<Op>| {
        for op in ops {
            match op {
                Op::Put(key, value) => tree.put(&key, &value).unwrap(),
                Op::Delete(key) => assert!(tree.delete(&key).unwrap()),
                _ => {}
            }
        }
        [tree.0.reshapes().split_count(), tree.0.reshapes().removed_leaf_count()]
    };
    let [splits, removed] = apply(before);
    let after = apply(ops);
    [after[0] - splits, after[1] - removed]
}

#[test]
fn scripts_reach_every_change() {
    assert_eq!(reshaped::<FpTree<Sim, SimDram>>(splits())[0], 1);
    assert_eq!(reshaped::<FpTree<Sim, SimDram>>(updates_in_full_leaf())[0], 1);
    assert_eq!(reshaped::<FpTree<Sim, SimDram>>(empties_leaves())[1], 2);
    assert_eq!(reshaped::<NvTree<Sim, SimDram>>(splits())[0], 1);
    assert_eq!(reshaped::<NvTree<Sim, SimDram>>(compacts_and_merges()), [0, 1]);
}

fn keeps_its_claims<T: Tree<Sim, SimDram> + Send + Sync + 'static>() {
    let open = || -> Box<dyn Operations> { Box::new(fresh::<T>()) };
    let compared = conformance(open, &Shape { reopens: false, ..shape(24, 500) }, 0..4);
    assert!(compared.unwrap_or_else(|mismatch| panic!("{}: {mismatch}", T::NAME)) >= 2000);
    let counts = explore::<Tested<T>>(&scripts(), &settings());
    let counts = counts.unwrap_or_else(|objection| panic!("{}: {objection}", T::NAME));
    assert!(counts.reach(200, 100, 0), "{}: {counts:?}", T::NAME);
}

fn are_caught<T: Tree<Sim, SimDram> + Send + Sync + 'static>(canaries: &[Canary]) {
    for &canary in canaries {
        let verdict = hunt::<Tested<T>>(canary, &scripts(), &settings());
        assert!(verdict.is_caught(), "{} {canary:?}: {verdict:?}", T::NAME);
    }
}

#[test]
fn fptree_keeps_what_it_claims() {
    keeps_its_claims::<FpTree<Sim, SimDram>>();
}

#[test]
fn broken_fptrees_are_caught() {
    are_caught::<FpTree<Sim, SimDram>>(&[
        canary::FPTREE_BITMAP_BEFORE_FINGERPRINT,
        canary::FPTREE_OLD_BIT_OFF_FIRST,
        canary::FPTREE_NEXT_BEFORE_LEAF,
        canary::FPTREE_LOG_NOT_ORDERED,
        canary::FPTREE_LOCK_BELIEVED,
    ]);
}

#[test]
fn cached_fptree_keeps_what_it_claims() {
    keeps_its_claims::<FpTreeCached<Sim, SimDram>>();
}

#[test]
fn nv_tree_keeps_what_it_claims() {
    keeps_its_claims::<NvTree<Sim, SimDram>>();
}

#[test]
fn broken_nv_trees_are_caught() {
    are_caught::<NvTree<Sim, SimDram>>(&[
        canary::NV_TREE_COUNT_BEFORE_ENTRY,
        canary::NV_TREE_NEXT_BEFORE_LEAF,
        canary::NV_TREE_LOCK_BELIEVED,
    ]);
}
