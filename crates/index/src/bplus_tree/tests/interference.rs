//! Changes of the tree while a scan reads a key.

use std::cell::{Cell, RefCell};
use std::ops::Bound;

use super::super::inner::Seek;
use super::super::merge::pair;
use super::super::target::Target;
use super::super::{Direction, Edit, Keys};
use super::rig::{Items, Rig, Unreadable, scan};
use crate::Position;

/// Items. Before a given read returns, after a number of others, an action runs.
struct Interrupted<'a> {
    items: &'a Items,
    reads_before: Cell<usize>,
    happen: RefCell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl Keys for Interrupted<'_> {
    type Error = Unreadable;

    fn key(&self, position: Position) -> Result<&[u8], Unreadable> {
        let key = self.items.key(position);
        match self.reads_before.get() {
            0 => self.happen.take().into_iter().for_each(|happen| happen()),
            more => self.reads_before.set(more - 1),
        }
        key
    }

    fn prefetch(&self, _: Position) {}
}

/// Keys whose heads tie, so that a scan from one of them reads items.
fn tied() -> Vec<&'static [u8]> {
    (b'a'..=b'y').map(|last| &*[&b"12345678"[..], &[last]].concat().leak()).collect()
}

/// Scans from a key with a tie. While an item is read, after `reads_before` others, `others` are put. Returns false
/// if fewer items are read.
fn scan_while_putting(others: &[&'static [u8]], direction: Direction, reads_before: usize) -> bool {
    let (mut rig, tied) = (Rig::new(40), tied());
    rig.put(&tied);
    let new: Vec<_> = others.iter().map(|&key| (key, rig.item(key))).collect();
    rig.map.extend(new.iter().copied());
    let put = || new.iter().for_each(|&(key, new)| assert_eq!(rig.apply_one(key, Edit::Insert(new)), Ok(())));
    let happen = RefCell::new(Some(Box::new(put) as Box<dyn FnOnce()>));
    let keys = Interrupted { items: &rig.items, reads_before: Cell::new(reads_before), happen };
    let from = Bound::Included(tied[10]);
    let found = scan(&rig.tree, &keys, from, direction);
    let happened = keys.happen.take().is_none();
    assert!(!happened || found == rig.expected_scan(from, direction));
    happened
}

/// Scans in both directions, and interferes at each of the reads. Among 25 keys that tie, there are several reads.
fn scans_while_putting(others: &[&'static [u8]]) {
    for direction in [Direction::Forward, Direction::Backward] {
        let read_count = (0..).find(|&reads_before| !scan_while_putting(others, direction, reads_before));
        assert!(read_count > Some(3));
    }
}

#[test]
fn key_that_moves_others_in_its_leaf() {
    scans_while_putting(&[b"0"]);
}

#[test]
fn keys_that_split_the_leaf() {
    let tied = (0..40u8).map(|last| &*[&b"12345678a"[..], &[last]].concat().leak());
    scans_while_putting(&tied.chain([&b"9"[..]]).collect::<Vec<_>>());
}

/// A thread that reached a leaf by a parent that other threads change afterwards must not follow the parent's
/// pointers to neighbours.
#[test]
fn parent_that_has_changed_shows_no_neighbours() {
    let mut rig = Rig::new(40);
    let keys: Vec<&'static [u8]> = (0..2000u32).map(|number| &*number.to_be_bytes().to_vec().leak()).collect();
    let (first, later) = keys.split_at(1000);
    rig.put(first);
    let new: Vec<_> = later.iter().map(|&key| (key, rig.item(key))).collect();
    let (tree, _pin) = (&rig.tree, epoch::pin());
    let mut seek = Seek::At(Target::whole(&rig.items, first[999]));
    let Ok((leaf, path)) = tree.nodes.root_word().descend(&mut seek, |_, _, _| Ok(())) else {
        panic!("no thread changes it")
    };
    assert!(pair(leaf.node, &path, |node| tree.nodes.root_word().leaf(node)).is_some());
    new.iter().for_each(|&(key, new)| assert_eq!(rig.apply_one(key, Edit::Insert(new)), Ok(())));
    let looked = Cell::new(false);
    let look = |node| {
        looked.set(true);
        tree.nodes.root_word().leaf(node)
    };
    assert!(pair(leaf.node, &path, look).is_none() && !looked.get());
}
