//! Histories of two and three threads on few keys, with changes of the structure in each, judged linearizable.

use pmem_sim::{Sim, SimDram};
use rivals::{FpTree, FpTreeCached, NvTree, Reshapes, Tree};
use testkit::{Contention, contend};

use super::subject::fresh;

fn is_linearizable<T: Tree<Sim, SimDram> + Send + Sync>(
    (call_count, key_count): (u64, u64),
    is_reshaped: impl Fn(&Reshapes) -> bool,
) {
    for thread_count in [2, 3] {
        for seed in 0..4 {
            let tree = fresh::<T>();
            let contention =
                Contention { thread_count, call_count, key_count, swaps: false, scans: true, clear_every: 0, seed };
            let judged = contend(&tree, &contention);
            let judged = judged.unwrap_or_else(|disorder| panic!("{}, {contention:?}: {disorder}", T::NAME));
            assert!(judged >= call_count * thread_count, "{judged} events");
            assert!(is_reshaped(tree.0.reshapes()), "{}, {contention:?}: {:?}", T::NAME, tree.0.reshapes());
        }
    }
}

#[test]
fn fptree_is_linearizable() {
    is_linearizable::<FpTree<Sim, SimDram>>((300, 12), |reshapes| {
        reshapes.split_count() > 2 && reshapes.removed_leaf_count() > 0
    });
}

#[test]
fn cached_fptree_is_linearizable() {
    is_linearizable::<FpTreeCached<Sim, SimDram>>((300, 12), |reshapes| reshapes.split_count() > 2);
}

#[test]
fn nv_tree_is_linearizable() {
    is_linearizable::<NvTree<Sim, SimDram>>((300, 12), |reshapes| {
        reshapes.split_count() > 2 && reshapes.removed_leaf_count() > 0
    });
}

/// So many keys that a node of the last inner level gets full.
#[test]
fn nv_tree_is_linearizable_during_rebuilds() {
    is_linearizable::<NvTree<Sim, SimDram>>((800, 400), |reshapes| reshapes.rebuild_count() > 0);
}
