//! Scans by pages with changes in between: a remembered position is used while it is valid, and not afterwards.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::Ordering;

use pbtree::layout::ROOT;
use pbtree::{Change, Direction, Ended, Error, FreeImmediately, Options, Scan, Tree};
use pmem::{Bytes, Canary};
use pmem_sim::{Model, Sim, SimDram};

use crate::subject::{Copied, merge_all, parameters, put};

type Store = Tree<Sim, SimDram, FreeImmediately>;

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

/// Every third key exists at first; the keys in between may be added.
const KEY_COUNT: u32 = 900;

fn key(i: u32) -> Vec<u8> {
    format!("key {i:04}").into()
}

fn stays(i: u32) -> bool {
    i.is_multiple_of(9)
}

fn store_with(canary: Option<Canary>) -> Store {
    let sim = canary.into_iter().fold(Sim::new(0, Model::Line), Sim::with_canary);
    let tree =
        Tree::format(sim, &parameters(), Options { order: 7, in_place: false }, SimDram, FreeImmediately).unwrap();
    (0..KEY_COUNT).filter(|i| i % 3 == 0).for_each(|i| write(&tree, i, put(b"value")));
    tree
}

fn write(tree: &Store, i: u32, change: Change<'_>) {
    tree.write(0, &key(i), change, &mut |_| true).unwrap();
}

/// Changes of a tree around the position of a scan.
type Between = fn(&Store, u32);

/// Fills the gaps around a key, which splits leaves and sometimes their parents.
fn split_around(tree: &Store, i: u32) {
    (i.saturating_sub(12)..KEY_COUNT.min(i + 12)).filter(|i| i % 3 != 0).for_each(|i| write(tree, i, put(b"new")));
}

/// Deletes most keys around one, and merges the remaining nodes.
fn merge_around(tree: &Store, i: u32) {
    let around = i.saturating_sub(30)..KEY_COUNT.min(i + 30);
    around.filter(|&i| !stays(i)).for_each(|i| write(tree, i, Change::Delete));
    merge_all(tree).unwrap();
}

/// Deletes one key and puts another one, usually in the same leaf.
fn replace_around(tree: &Store, i: u32) {
    for i in i.saturating_sub(4)..KEY_COUNT.min(i + 4) {
        match i % 3 {
            0 if !stays(i) => write(tree, i, Change::Delete),
            1 => write(tree, i, put(b"new")),
            _ => {}
        }
    }
}

/// Behind the last item of a page.
fn behind(page: &Copied, ended: Ended, direction: Direction) -> Bound<Vec<u8>> {
    match (ended, direction) {
        (Ended::AtFence, Direction::Forward) => Bound::Included(page.fence.clone()),
        (Ended::AtFence, Direction::Backward) => Bound::Excluded(page.fence.clone()),
        _ => Bound::Excluded(page.items.last().expect("a page within a leaf has items").0.clone()),
    }
}

/// Returns the keys that a scan shows, by pages of `items_max`. Calls `between` after each page with the last key.
fn scanned(tree: &Store, direction: Direction, items_max: usize, between: Between) -> Result<Vec<Vec<u8>>, Error> {
    let (mut scan, mut page) = (tree.scanning(direction), Copied::default());
    let (mut from, mut keys) = (Bound::Unbounded, Vec::new());
    loop {
        page.items.clear();
        let ended = scan.page(from.as_ref().map(Vec::as_slice), items_max, &mut page)?;
        keys.extend(page.items.iter().map(|item| item.0.clone()));
        if ended == Ended::AtEnd || keys.len() > KEY_COUNT as usize {
            return Ok(keys);
        }
        from = behind(&page, ended, direction);
        let last = keys.last().map_or(0, |key| String::from_utf8_lossy(&key[4..]).parse().unwrap());
        between(tree, last);
    }
}

/// Returns true if all keys that existed during the entire scan are shown, in order, each once.
fn is_right(keys: &[Vec<u8>], direction: Direction) -> bool {
    let is_next =
        |pair: &[Vec<u8>]| if direction == Direction::Forward { pair[0] < pair[1] } else { pair[0] > pair[1] };
    let shown: BTreeSet<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    keys.windows(2).all(is_next) && (0..KEY_COUNT).filter(|&i| stays(i)).all(|i| shown.contains(&key(i)[..]))
}

/// Checks scans in both directions, by pages of all lengths, whatever happens between pages.
fn all_are_right(canary: Option<Canary>, between: Between) -> bool {
    DIRECTIONS.into_iter().all(|direction| {
        [1, 2, 3, 5, usize::MAX].into_iter().all(|items_max| {
            let tree = store_with(canary);
            scanned(&tree, direction, items_max, between).is_ok_and(|keys| is_right(&keys, direction))
        })
    })
}

#[test]
fn changes_between_pages_hide_no_key() {
    for between in [split_around, merge_around, replace_around, |_: &Store, _: u32| ()] {
        assert!(all_are_right(None, between));
    }
    for between in [split_around, merge_around, replace_around] {
        assert!(!all_are_right(Some(pbtree::canary::CHANGES_UNSEEN), between));
    }
}

/// Reads pages until the first error or the last page, and returns their number. `page` is the page before.
fn pages(
    scan: &mut Scan<'_, Sim, SimDram>,
    page: &mut Copied,
    mut from: Bound<Vec<u8>>,
    direction: Direction,
) -> (usize, bool) {
    for count in 0.. {
        page.items.clear();
        match scan.page(from.as_ref().map(Vec::as_slice), 2, page) {
            Err(_) => return (count, false),
            Ok(Ended::AtEnd) => return (count + 1, true),
            Ok(ended) => from = behind(page, ended, direction),
        }
    }
    unreachable!("a scan ends")
}

/// With an unreadable root, a scan continues through its leaf and the other children of the leaf's parent.
#[test]
fn scan_goes_on_without_root() {
    for direction in DIRECTIONS {
        let tree = store_with(None);
        let (mut scan, mut page) = (tree.scanning(direction), Copied::default());
        assert_eq!(scan.page(Bound::Unbounded, 2, &mut page), Ok(Ended::Within));
        let from = behind(&page, Ended::Within, direction);
        let root = tree.medium().load(ROOT, Ordering::Relaxed);
        tree.medium().store(ROOT, root ^ 1 << 60, Ordering::Relaxed);
        let (count, is_at_end) = pages(&mut scan, &mut page, from.clone(), direction);
        assert!(!is_at_end && count >= 4, "{count} pages, {direction:?}");
        assert_eq!(
            pages(&mut tree.scanning(direction), &mut Copied::default(), from.clone(), direction),
            (0, false),
            "a new scan needs the root"
        );
        tree.medium().store(ROOT, root, Ordering::Relaxed);
        assert!(pages(&mut tree.scanning(direction), &mut Copied::default(), from, direction).1);
    }
}

/// A page that a damaged key ends is not skipped, however often it is requested.
#[test]
fn scan_stops_at_unreadable_item() {
    let tree = store_with(None);
    let mut place = None;
    tree.get(&key(6), |value| place = Some(value.place)).unwrap();
    let at = place.expect("the key is there").offset;
    let length = tree.medium().load(at, Ordering::Relaxed);
    tree.medium().store(at, length | 1 << 20, Ordering::Relaxed);
    let (mut scan, mut page) = (tree.scanning(Direction::Forward), Copied::default());
    for _ in 0..3 {
        assert!(scan.page(Bound::Unbounded, 9, &mut page).is_err());
    }
    tree.medium().store(at, length, Ordering::Relaxed);
    page.items.clear();
    scan.page(Bound::Unbounded, 9, &mut page).unwrap();
    assert_eq!(page.items[2].0, key(6));
}
