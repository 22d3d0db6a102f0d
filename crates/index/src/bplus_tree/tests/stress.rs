//! Writers of disjoint keys beside scans.

use std::convert::Infallible;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::{BPlusTree, Change, Direction, Edit, KeyStart, Keys};
use super::keys::{FAMILY_KEY_COUNT, key};
use super::rig::{Host, damage, number, position, scan};
use crate::Position;

const WRITER_COUNT: usize = 3;
const KEY_COUNT: usize = 4 * FAMILY_KEY_COUNT;
const LAP_COUNT: usize = 60;

/// Items of any generation of a fixed set of keys: item `n` has key `n % KEY_COUNT`.
struct Generations;

impl Keys for Generations {
    type Error = Infallible;

    fn key(&self, position: Position) -> Result<&[u8], Infallible> {
        Ok(nth_key(number(position)))
    }

    fn prefetch(&self, _: Position) {}
}

/// Four families, none of which holds a key twice.
fn nth_key(number: usize) -> &'static [u8] {
    let number = number % KEY_COUNT;
    key([2, 3, 4, 6][number % 4], number / 4)
}

/// Keys of this number stay throughout.
fn is_stable(number: usize) -> bool {
    number % KEY_COUNT % 10 == 9
}

fn apply(tree: &BPlusTree<Host>, edits: &[(usize, Edit)]) {
    let change = |&(number, edit): &(usize, Edit)| {
        let key = nth_key(number);
        Change { key: KeyStart::new(&key[..key.len().min(40)], key.len()), edit }
    };
    tree.apply(&Generations, &edits.iter().map(change).collect::<Vec<_>>(), |_, result| assert_eq!(result, Ok(())));
}

/// Inserts, replaces and removes this writer's keys, so many at a time; they are gone in the end.
fn write(tree: &BPlusTree<Host>, writer: usize) {
    let mut random = fastrand::Rng::with_seed(writer as u64);
    let mut mine: Vec<usize> = (0..KEY_COUNT).filter(|&it| it % WRITER_COUNT == writer && !is_stable(it)).collect();
    for _ in 0..LAP_COUNT {
        random.shuffle(&mut mine);
        let some = &mine[..random.usize(1..mine.len())];
        let (first, second) = (|it: usize| position(it), |it: usize| position(it + KEY_COUNT));
        let lap: [&dyn Fn(usize) -> Edit; 3] =
            [&|it| Edit::Insert(first(it)), &|it| Edit::Replace { old: first(it), new: second(it) }, &|it| {
                Edit::Remove(second(it))
            }];
        for edit in lap {
            for group in some.chunks(random.usize(1..40)) {
                apply(tree, &group.iter().map(|&it| (it, edit(it))).collect::<Vec<_>>());
            }
        }
    }
}

/// A scan shows keys in order, none twice, and all of those that stay.
fn scan_and_check(tree: &BPlusTree<Host>, direction: Direction) {
    let found = scan(tree, &Generations, Bound::Unbounded, direction);
    let mut keys: Vec<&[u8]> = found.iter().map(|&position| nth_key(number(position))).collect();
    if direction == Direction::Backward {
        keys.reverse();
    }
    assert!(keys.is_sorted_by(|one, next| one < next), "a scan is not in order");
    let stable = found.iter().filter(|&&position| is_stable(number(position))).count();
    assert_eq!(stable, KEY_COUNT / 10, "a scan missed keys that stay");
}

#[test]
fn scans_keep_their_contract_beside_writers() {
    let tree = BPlusTree::new(Host::default()).unwrap();
    let stable: Vec<_> =
        (0..KEY_COUNT).filter(|&it| is_stable(it)).map(|it| (it, Edit::Insert(position(it)))).collect();
    apply(&tree, &stable);
    let (tree, stop) = (&tree, &AtomicBool::new(false));
    thread::scope(|scope| {
        for direction in [Direction::Forward, Direction::Backward] {
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    scan_and_check(tree, direction);
                }
            });
        }
        let writers: Vec<_> = (0..WRITER_COUNT).map(|writer| scope.spawn(move || write(tree, writer))).collect();
        let ended: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    assert_eq!(damage(tree, &Generations), Vec::<String>::new());
    assert_eq!(tree.len(), stable.len() as u64);
    assert_eq!(scan(tree, &Generations, Bound::Unbounded, Direction::Forward).len(), stable.len());
}
