//! Exact counts: the fences of each operation, comparisons of keys, and the share of DRAM.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use pmem::{Counted, Medium};
use pmem_sim::{Model, Sim, SimDram};
use rivals::{FpTree, FpTreeCached, KeyBytes, NvTree, Sizes, Tree, TreeError};

type OnSim = Counted<Sim>;

const PAIR_COUNT: u32 = 6000;
const VALUE: [u8; 256] = [7; 256];

/// Returns the key of number `i`; keys in the order of numbers are in random order.
fn key(i: u32) -> KeyBytes {
    let mixed = Rng::with_seed(i.into()).u64(..);
    let mut key = *b"user0000________";
    key[8..].copy_from_slice(&mixed.to_be_bytes());
    key
}

fn tree<T: Tree<OnSim, SimDram>>(leaf_entry_count: u64) -> T {
    let sizes = Sizes { leaf_entry_count, region_bytes: 1 << 20 };
    T::format(Counted::new(Sim::new(sizes.region_bytes, Model::Line)), SimDram, &sizes).unwrap()
}

/// The fences of operations: how many operations took so many, apart from those that made a chunk of the heap.
#[derive(Default)]
struct Fences(BTreeMap<u64, u64>);

impl Fences {
    fn count<T: Tree<OnSim, SimDram>>(&mut self, tree: &T, work: impl FnOnce(&T)) {
        let now = || (tree.records().medium().counts().unwrap().fence_count, tree.records().chunk_count());
        let (fences, chunks) = now();
        work(tree);
        let (fences_after, chunks_after) = now();
        if chunks_after == chunks {
            *self.0.entry(fences_after - fences).or_default() += 1;
        }
    }

    fn all(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }
}

fn filled<T: Tree<OnSim, SimDram>>() -> (T, Fences) {
    let (tree, mut fences) = (tree::<T>(T::LEAF_ENTRY_COUNT), Fences::default());
    for i in 0..PAIR_COUNT {
        fences.count(&tree, |tree| tree.put(&key(i), &VALUE).unwrap());
    }
    (tree, fences)
}

/// Returns the comparisons of a get that finds its key, on average.
fn compares_per_get<T: Tree<OnSim, SimDram>>(tree: &T) -> f64 {
    let comparisons = AtomicU64::new(0);
    for i in 0..PAIR_COUNT {
        assert!(tree.get_counted(&key(i), |value| assert_eq!(value, VALUE), &comparisons).unwrap());
    }
    comparisons.load(Ordering::Relaxed) as f64 / f64::from(PAIR_COUNT)
}

fn dram_percent<T: Tree<OnSim, SimDram>>(tree: &T) -> f64 {
    100.0 * tree.dram_bytes() as f64 / tree.records().persistent_bytes() as f64
}

/// Every key is shown once, in order, from any key on.
fn scans_are_complete<T: Tree<OnSim, SimDram>>(tree: &T) {
    let mut sorted: Vec<KeyBytes> = (0..PAIR_COUNT).map(key).collect();
    sorted.sort_unstable();
    for first in [0, 1, 2999, 5999] {
        let mut shown = Vec::new();
        tree.scan(&sorted[first], &mut |key, _| {
            shown.push(*key);
            if shown.len() < 3000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
        assert!(shown == sorted[first..(first + 3000).min(sorted.len())], "from {first}");
    }
}

#[test]
fn fptree_meets_the_published_facts() {
    let (tree, puts) = filled::<FpTree<OnSim, SimDram>>();
    assert_eq!(puts.all(), [3, 6], "a put, and a put with a split");
    let splits = tree.reshapes().split_count();
    assert!(puts.0[&6] <= splits && puts.0[&6] * 2 > splits, "the others made a chunk");
    let compares = compares_per_get(&tree);
    assert!((1.0..1.2).contains(&compares), "{compares} comparisons");
    let percent = dram_percent(&tree);
    assert!((0.2..0.6).contains(&percent), "{percent} % DRAM");
    println!("fptree: {compares:.3} comparisons, {percent:.2} % DRAM, {splits} splits");
    scans_are_complete(&tree);

    let (mut updates, mut deletes) = (Fences::default(), Fences::default());
    (0..PAIR_COUNT).for_each(|i| updates.count(&tree, |tree| tree.put(&key(i), &VALUE).unwrap()));
    assert!(updates.0[&3] > 5000 && updates.all().iter().all(|count| [3, 6].contains(count)), "{:?}", updates.0);
    (0..PAIR_COUNT).for_each(|i| deletes.count(&tree, |tree| assert!(tree.delete(&key(i)).unwrap())));
    assert_eq!(deletes.all(), [1, 3], "a delete, and one that empties a leaf");
    assert!(deletes.0[&3] <= tree.reshapes().removed_leaf_count() && tree.is_empty().unwrap());
    let mut absent = Fences::default();
    absent.count(&tree, |tree| assert!(!tree.delete(&key(0)).unwrap()));
    assert_eq!(absent.all(), [0]);
}

#[test]
fn fptree_update_splits_full_leaf() {
    let tree = tree::<FpTree<OnSim, SimDram>>(4);
    let mut fences = Fences::default();
    tree.put(&key(0), &VALUE).unwrap();
    (1..4).for_each(|i| fences.count(&tree, |tree| tree.put(&key(i), &VALUE).unwrap()));
    assert_eq!(fences.all(), [3]);
    fences.count(&tree, |tree| tree.put(&key(2), &VALUE).unwrap());
    assert!(fences.0[&6] == 1 && tree.reshapes().split_count() == 1);
    fences.count(&tree, |tree| tree.put(&key(2), &VALUE).unwrap());
    assert_eq!(fences.0[&3], 4);
}

#[test]
fn leaf_size_out_of_range_is_refused() {
    let sim = || Sim::new(1 << 20, Model::Line);
    for leaf_entry_count in [0, 1, 65] {
        let refused = FpTree::format(sim(), SimDram, &Sizes { leaf_entry_count, region_bytes: 1 << 20 });
        let expected = TreeError::LeafSize { entry_count: leaf_entry_count, entry_count_max: 64 };
        assert_eq!(refused.err(), Some(expected));
    }
    assert!(matches!(FpTree::open(sim(), SimDram).err(), Some(TreeError::Heap(heap::HeapError::Unformatted))));
}

#[test]
fn nv_tree_meets_the_published_facts() {
    let (tree, puts) = filled::<NvTree<OnSim, SimDram>>();
    assert_eq!(puts.all(), [2, 4], "a put, and a put that replaces its leaf");
    let splits = tree.reshapes().split_count();
    assert!(puts.0[&4] <= splits && puts.0[&4] * 2 > splits, "the others made a chunk");
    assert!(tree.reshapes().rebuild_count() > 0);
    let compares = compares_per_get(&tree);
    let per_leaf = f64::from(PAIR_COUNT) / (splits + 1) as f64;
    assert!((0.35..0.65).contains(&(compares / per_leaf)), "{compares} of {per_leaf} entries");
    let percent = dram_percent(&tree);
    println!("nv-tree: {compares:.1} of {per_leaf:.1} entries compared, {percent:.2} % DRAM, {splits} splits");
    scans_are_complete(&tree);

    let (mut updates, mut deletes) = (Fences::default(), Fences::default());
    (0..PAIR_COUNT).for_each(|i| updates.count(&tree, |tree| tree.put(&key(i), &VALUE).unwrap()));
    assert_eq!(updates.all(), [2, 4]);
    (0..PAIR_COUNT).for_each(|i| deletes.count(&tree, |tree| assert!(tree.delete(&key(i)).unwrap())));
    assert_eq!(deletes.all(), [2, 4]);
    let mut absent = Fences::default();
    absent.count(&tree, |tree| assert!(!tree.delete(&key(0)).unwrap()));
    assert!(absent.all() == [0] && tree.is_empty().unwrap());
}

/// A second get is served by the copy: it compares no key of a leaf, and the bytes of copies stay within the limit.
#[test]
fn cache_serves_what_was_read_last() {
    let cache_bytes = 64 << 10;
    let tree = filled::<FpTreeCached<OnSim, SimDram>>().0.caching(cache_bytes);
    let compares = |i: u32| {
        let comparisons = AtomicU64::new(0);
        assert!(tree.get_counted(&key(i), |value| assert_eq!(value, VALUE), &comparisons).unwrap());
        comparisons.load(Ordering::Relaxed)
    };
    assert!((0..10).all(|i| compares(i) > 0) && (0..10).all(|i| compares(i) == 0));
    assert!((10..PAIR_COUNT).all(|i| compares(i) > 0) && compares(0) > 0, "the oldest copies left");
    assert!((cache_bytes / 2..=cache_bytes).contains(&tree.cached_bytes()), "{} bytes", tree.cached_bytes());
    let last = PAIR_COUNT - 1;
    tree.put(&key(last), &[9; 256]).unwrap();
    assert!(tree.get(&key(last), |value| assert_eq!(value, [9; 256])).unwrap());
    assert!(tree.delete(&key(last)).unwrap() && !tree.get(&key(last), |_| {}).unwrap());
}
