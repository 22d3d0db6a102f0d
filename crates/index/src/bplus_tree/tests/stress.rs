//! Writers of disjoint keys during scans.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::{BPlusTree, Change, Direction, Edit, KeyStart, Keys};
use super::keys::{FAMILY_KEY_COUNT, key};
use super::rig::{Host, damage, number, position, scan};
use crate::Position;

const WRITER_COUNT: usize = 3;

/// A set of keys, of which those with a number that ends in 9 stay throughout. Items have any number of
/// generations: item `n` has key `n % key_count`.
#[derive(Clone, Copy)]
struct Generations {
    key_count: usize,
}

impl Keys for Generations {
    type Error = Infallible;

    fn key(&self, position: Position) -> Result<&[u8], Infallible> {
        Ok(self.key_of(number(position)))
    }

    fn prefetch(&self, _: Position) {}
}

impl Generations {
    /// Four families, in which no key occurs twice.
    fn key_of(self, number: usize) -> &'static [u8] {
        let number = number % self.key_count;
        key([2, 3, 4, 6][number % 4], number / 4)
    }

    fn is_stable(self, number: usize) -> bool {
        number % self.key_count % 10 == 9
    }

    fn stable_count(self) -> usize {
        self.key_count / 10
    }

    fn apply(&self, tree: &BPlusTree<Host>, edits: &[(usize, Edit)]) {
        let change = |&(number, edit): &(usize, Edit)| {
            let key = self.key_of(number);
            Change { key: KeyStart::new(&key[..key.len().min(40)], key.len()), edit }
        };
        tree.apply(self, &edits.iter().map(change).collect::<Vec<_>>(), |_, result| assert_eq!(result, Ok(())));
    }

    /// Inserts, replaces and removes this writer's keys, in groups; in the end they are all removed.
    fn write(&self, tree: &BPlusTree<Host>, writer: usize, lap_count: usize) {
        let mut random = fastrand::Rng::with_seed(writer as u64);
        let is_mine = |&it: &usize| it % WRITER_COUNT == writer && !self.is_stable(it);
        let mut mine: Vec<usize> = (0..self.key_count).filter(is_mine).collect();
        let (first, second) = (position, |it: usize| position(it + self.key_count));
        let lap: [&dyn Fn(usize) -> Edit; 3] =
            [&|it| Edit::Insert(first(it)), &|it| Edit::Replace { old: first(it), new: second(it) }, &|it| {
                Edit::Remove(second(it))
            }];
        for _ in 0..lap_count {
            random.shuffle(&mut mine);
            let some = &mine[..random.usize(1..mine.len())];
            for edit in lap {
                for group in some.chunks(random.usize(1..40)) {
                    self.apply(tree, &group.iter().map(|&it| (it, edit(it))).collect::<Vec<_>>());
                }
            }
        }
    }

    /// Checks that keys are found together with their own items, including all keys that stay.
    fn find_and_check(&self, tree: &BPlusTree<Host>) {
        let wanted: Vec<&[u8]> = (0..self.key_count).map(|it| self.key_of(it)).collect();
        tree.find_many(
            self,
            &wanted,
            |_| (),
            |it, found| {
                let found =
                    found.unwrap_or_else(|never| match never {}).map(|position| number(position) % self.key_count);
                assert!(found.is_none_or(|found| found == it), "another key's item");
                assert!(found.is_some() || !self.is_stable(it), "a search missed a key that stays");
            },
        );
    }

    /// Checks that a scan returns keys in order, none twice, and all keys that stay.
    fn scan_and_check(&self, tree: &BPlusTree<Host>, direction: Direction) {
        let found = scan(tree, self, Bound::Unbounded, direction);
        let mut keys: Vec<&[u8]> = found.iter().map(|&position| self.key_of(number(position))).collect();
        if direction == Direction::Backward {
            keys.reverse();
        }
        assert!(keys.is_sorted_by(|one, next| one < next), "a scan is not in order");
        let stable = found.iter().filter(|&&position| self.is_stable(number(position))).count();
        assert_eq!(stable, self.stable_count(), "a scan missed keys that stay");
    }
}

fn scans_beside_writers(key_count: usize, lap_count: usize) {
    let (keys, tree) = (&Generations { key_count }, &BPlusTree::new(Host::default()).unwrap());
    let stable: Vec<usize> = (0..key_count).filter(|&it| keys.is_stable(it)).collect();
    keys.apply(tree, &stable.iter().map(|&it| (it, Edit::Insert(position(it)))).collect::<Vec<_>>());
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let scanner = |direction| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    keys.scan_and_check(tree, direction);
                }
            }
        };
        let scanners = [Direction::Forward, Direction::Backward].map(|direction| scope.spawn(scanner(direction)));
        let finder = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                keys.find_and_check(tree);
            }
        });
        let writers: Vec<_> =
            (0..WRITER_COUNT).map(|writer| scope.spawn(move || keys.write(tree, writer, lap_count))).collect();
        let ended: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        let readers = scanners.into_iter().chain([finder]).map(thread::ScopedJoinHandle::join);
        ended.into_iter().chain(readers).for_each(|ended| ended.unwrap());
    });
    assert_eq!(damage(tree, keys), Vec::<String>::new());
    assert_eq!(tree.len(), keys.stable_count() as u64);
    let found = scan(tree, keys, Bound::Unbounded, Direction::Forward);
    assert_eq!(found.into_iter().map(number).collect::<HashSet<_>>(), stable.into_iter().collect::<HashSet<_>>());
}

#[test]
fn scans_are_correct_while_leaves_change() {
    scans_beside_writers(4 * FAMILY_KEY_COUNT, 60);
}

/// Few leaves, so that scans often read one while it is changed.
#[test]
fn scans_keep_their_contract_in_a_crowd() {
    scans_beside_writers(120, 10_000);
}
