//! Separators out of order, as when a word refers to another separator's chunk: every checksum fits, and every scan,
//! walk and write ends.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use pbtree::layout::{NODE_HEADER_BYTES, PAIR_BYTES, ROOT};
use pbtree::{BatchWrite, Direction, Ended, Error, FreeImmediately, Options, Tree};
use pmem::{Bytes, Offset};
use pmem_sim::{Image, Model, Sim, SimDram};

use crate::subject::{Copied, parameters, put};

type Store = Tree<Sim, SimDram, FreeImmediately>;

const OPTIONS: Options = Options { order: 7, in_place: false };
const KEY_COUNT: u32 = 150;
/// A bound many times above the nodes of a tree with this many keys, and above the pages of a scan.
const STEP_COUNT_MAX: usize = 10 * KEY_COUNT as usize;

/// Keys with two prefixes, so that some nodes have separators with a long common prefix and one node has not.
fn key(i: u32) -> Vec<u8> {
    format!("{} key {i:04}", if i < KEY_COUNT / 2 { "a" } else { "b" }).into()
}

fn image() -> Image {
    let sim = Sim::new(0, Model::Line);
    let tree = Tree::format(sim.clone(), &parameters(), OPTIONS, SimDram, FreeImmediately).unwrap();
    (0..KEY_COUNT).for_each(|i| _ = tree.write(0, &key(i), put(b"value"), &mut |_| true).unwrap());
    drop(tree);
    sim.images(1, 0).remove(0)
}

fn word(sim: &Sim, at: Offset) -> u64 {
    sim.load(at, Ordering::Relaxed)
}

fn pair(node: Offset, i: u64) -> Offset {
    node.plus(NODE_HEADER_BYTES + i * PAIR_BYTES)
}

/// Returns the inner nodes with their numbers of separators.
fn inner_nodes(sim: &Sim) -> Vec<(Offset, u64)> {
    let place = |at: Offset| Offset(word(sim, at) & ((1 << 48) - 1));
    let (mut nodes, mut found) = (vec![place(ROOT)], Vec::new());
    while let Some(node) = nodes.pop() {
        let (level, count) = (word(sim, node) as u8, word(sim, node) >> 8 & 0xFFFF);
        if level > 0 {
            found.push((node, count));
            nodes.push(place(node.plus(8)));
            nodes.extend((0..count).map(|i| place(pair(node, i).plus(8))));
        }
    }
    found
}

fn scan_ends(tree: &Store, direction: Direction) -> bool {
    let (mut scan, mut page, mut from) = (tree.scanning(direction), Copied::default(), Bound::Unbounded);
    (0..STEP_COUNT_MAX).any(|_| {
        page.items.clear();
        match scan.page(from.as_ref().map(Vec::as_slice), 5, &mut page) {
            Err(_) | Ok(Ended::AtEnd) => return true,
            Ok(Ended::AtFence) if direction == Direction::Forward => from = Bound::Included(page.fence.clone()),
            Ok(Ended::AtFence) => from = Bound::Excluded(page.fence.clone()),
            Ok(Ended::Within) => from = Bound::Excluded(page.items.last().unwrap().0.clone()),
        }
        false
    })
}

/// Returns true if the check ends and reports damage.
fn check_ends(tree: &Store) -> bool {
    let (mut met, mut reported) = (0, 0);
    let checked = tree.check_while(&mut |_| reported += 1, &mut || {
        met += 1;
        met < STEP_COUNT_MAX
    });
    !matches!(checked, Err(Error::Stopped)) && reported > 0
}

/// Puts keys between all existing ones, so that leaves and inner nodes split.
fn new_keys() -> Vec<Vec<u8>> {
    (0..KEY_COUNT).map(|i| [key(i), vec![b'x']].concat()).collect()
}

fn puts_end(tree: &Store) -> bool {
    new_keys().iter().all(|key| {
        let mut asked = 0;
        let _ = tree.write(0, key, put(b"value"), &mut |_| {
            asked += 1;
            asked < STEP_COUNT_MAX
        });
        asked < STEP_COUNT_MAX
    })
}

fn batch_ends(tree: &Store) -> bool {
    let keys = new_keys();
    let mut writes: Vec<_> = keys.iter().map(|key| BatchWrite::new(key, put(b"value"))).collect();
    catch_unwind(AssertUnwindSafe(|| _ = tree.batch(0, &[], &mut |_, _| true, &mut writes))).is_ok()
}

#[test]
fn unordered_separators_end_every_operation() {
    let whole = image();
    let mut faults = Vec::new();
    for (node, count) in inner_nodes(&Sim::from_image(&whole, Model::Line)) {
        for (i, j) in (0..count).flat_map(|i| [(i, 0), (i, count - 1)]).filter(|(i, j)| i != j) {
            let mut see = |what: &str, ends: &dyn Fn(&Store) -> bool| {
                let sim = Sim::from_image(&whole, Model::Line);
                sim.store(pair(node, i), word(&sim, pair(node, j)), Ordering::Relaxed);
                let tree = Store::open(sim, OPTIONS, SimDram, FreeImmediately).unwrap();
                if !ends(&tree) {
                    faults.push(format!("{what}: separator {i} of the node at {:#x} is its {j}", node.0));
                }
            };
            see("forwards", &|tree| scan_ends(tree, Direction::Forward));
            see("backwards", &|tree| scan_ends(tree, Direction::Backward));
            see("check", &check_ends);
            see("puts", &puts_end);
            see("batch", &batch_ends);
        }
    }
    assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
}
