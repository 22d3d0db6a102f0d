//! A tree, the items to which it refers, and a map with the contents that the tree should have.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use pmem::Dram;

use super::super::{BPlusTree, Change, ChangeError, Direction, Edit, KeyStart, Keys, Loader, Page};
use crate::Position;

/// Allocates from the process' heap, up to a number of bytes.
#[derive(Debug)]
pub(super) struct Host {
    left_bytes: AtomicUsize,
}

impl Default for Host {
    fn default() -> Host {
        Host::with_bytes(usize::MAX)
    }
}

impl Host {
    pub(super) fn with_bytes(left_bytes: usize) -> Host {
        Host { left_bytes: AtomicUsize::new(left_bytes) }
    }
}

// SAFETY: the global allocator's promises.
unsafe impl Dram for Host {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let take = |left: usize| left.checked_sub(layout.size());
        self.left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        // SAFETY: no caller requests a layout of size 0.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { dealloc(memory.as_ptr(), layout) }
    }
}

/// Returns the position of item `number`.
pub(super) fn position(number: usize) -> Position {
    Position::from_48_bits(number as u64 + 1)
}

/// Returns the number of the item at a position.
pub(super) fn number(position: Position) -> usize {
    position.to_48_bits() as usize - 1
}

/// Items whose keys may be read: those of the tree, and that of the change.
#[derive(Debug, Default)]
pub(super) struct Items {
    keys: RefCell<HashMap<Position, &'static [u8]>>,
}

/// An item that must not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unreadable(pub(super) Position);

impl Keys for Items {
    type Error = Unreadable;

    fn key(&self, position: Position) -> Result<&[u8], Unreadable> {
        self.keys.borrow().get(&position).copied().ok_or(Unreadable(position))
    }

    /// For every other item only, so that both paths run.
    fn has_key(&self, position: Position, key: &[u8]) -> bool {
        number(position) % 2 == 1 && self.key(position) == Ok(key)
    }

    fn prefetch(&self, position: Position) {
        assert!(self.key(position).is_ok());
    }
}

/// A tree that must equal the map.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) tree: BPlusTree<Host>,
    pub(super) items: Items,
    pub(super) map: BTreeMap<&'static [u8], Position>,
    next_number: usize,
    /// The number of bytes of a key that changes carry.
    pub(super) inline_bytes: usize,
}

impl Rig {
    pub(super) fn new(inline_bytes: usize) -> Rig {
        let tree = BPlusTree::new(Host::default()).unwrap();
        Rig { tree, items: Items::default(), map: BTreeMap::new(), next_number: 0, inline_bytes }
    }

    /// Creates a new, readable item of this key.
    pub(super) fn item(&mut self, key: &'static [u8]) -> Position {
        self.next_number += 1;
        let item = position(self.next_number);
        self.items.keys.borrow_mut().insert(item, key);
        item
    }

    /// Makes the item unreadable.
    pub(super) fn mark_dead(&self, item: Position) {
        self.items.keys.borrow_mut().remove(&item);
    }

    /// Puts the keys, all at once.
    pub(super) fn put(&mut self, keys: &[&'static [u8]]) {
        let edits = keys.iter().map(|&key| {
            let new = self.item(key);
            let old = self.map.insert(key, new);
            (key, old.map_or(Edit::Insert(new), |old| Edit::Replace { old, new }))
        });
        let edits = edits.collect::<Vec<_>>();
        self.apply(&edits);
    }

    /// Removes the keys that exist, all at once.
    pub(super) fn remove(&mut self, keys: &[&'static [u8]]) {
        let edits = keys.iter().filter_map(|&key| Some((key, Edit::Remove(self.map.remove(key)?))));
        let edits = edits.collect::<Vec<_>>();
        self.apply(&edits);
    }

    fn apply(&self, edits: &[(&'static [u8], Edit)]) {
        let changes: Vec<Change<'_>> = edits.iter().map(|&(key, edit)| self.change(key, edit)).collect();
        let mut expected = 0;
        self.tree.apply(&self.items, &changes, |number, result| {
            assert_eq!((number, result), (expected, Ok(())), "{:?}", changes[number]);
            expected += 1;
            // The item that a change removes is not read after that.
            if let Edit::Replace { old, .. } | Edit::Remove(old) = changes[number].edit {
                self.mark_dead(old);
            }
        });
        assert_eq!(expected, changes.len());
    }

    pub(super) fn apply_one(&self, key: &'static [u8], edit: Edit) -> Result<(), ChangeError<Unreadable>> {
        let mut answer = None;
        self.tree.apply(&self.items, &[self.change(key, edit)], |_, result| answer = Some(result));
        answer.expect("every change is answered")
    }

    fn change(&self, key: &'static [u8], edit: Edit) -> Change<'static> {
        let start = &key[..key.len().min(self.inline_bytes)];
        Change { key: KeyStart::new(start, key.len()), edit }
    }

    /// Returns another tree of the same items, loaded in parts that begin at `splitters`.
    pub(super) fn reload(&mut self, splitters: &[&[u8]]) {
        let loader = Loader::new(Host::default());
        let mut lows = splitters.to_vec();
        lows.retain(|low| !low.is_empty());
        lows.sort_unstable();
        lows.dedup();
        lows.insert(0, b"");
        let part = |number: usize| {
            let (low, high) = (lows[number], lows.get(number + 1).copied());
            let range = (Bound::Included(low), high.map_or(Bound::Unbounded, Bound::Excluded));
            let items = self.map.range::<[u8], _>(range).map(|(&key, &position)| Ok::<_, ()>((position, key)));
            loader.part(low, high, items).unwrap()
        };
        let parts = (0..lows.len()).map(part).collect();
        self.tree = loader.finish(parts).unwrap();
    }

    /// Returns all items from `from` on, page by page.
    pub(super) fn scan(&self, from: Bound<&[u8]>, direction: Direction) -> Vec<Position> {
        scan(&self.tree, &self.items, from, direction)
    }

    /// Returns all items, leaf by leaf.
    pub(super) fn leaves(&self) -> Vec<Position> {
        let (mut page, mut found, mut from) = (Page::default(), Vec::new(), Vec::new());
        loop {
            self.tree.read_leaf(&from, &mut page);
            found.extend_from_slice(page.positions());
            let Some(end) = page.end() else { return found };
            from = end.to_vec();
        }
    }

    /// Returns the items that a scan should return, according to the map.
    pub(super) fn expected_scan(&self, from: Bound<&[u8]>, direction: Direction) -> Vec<Position> {
        match direction {
            Direction::Forward => self.map.range::<[u8], _>((from, Bound::Unbounded)).map(|(_, &it)| it).collect(),
            Direction::Backward => {
                self.map.range::<[u8], _>((Bound::Unbounded, from)).rev().map(|(_, &it)| it).collect()
            }
        }
    }

    /// Checks that the tree is sound, and equals the map.
    pub(super) fn check(&self) {
        assert_eq!(damage(&self.tree, &self.items), Vec::<String>::new());
        assert_eq!(self.tree.len(), self.map.len() as u64);
        for direction in [Direction::Forward, Direction::Backward] {
            assert_eq!(self.scan(Bound::Unbounded, direction), self.expected_scan(Bound::Unbounded, direction));
        }
        assert_eq!(self.leaves(), self.expected_scan(Bound::Unbounded, Direction::Forward));
        self.check_finding();
        assert_eq!(self.tree.first(&self.items), Ok(self.map.values().next().copied()));
        assert_eq!(self.tree.last(&self.items), Ok(self.map.values().next_back().copied()));
    }
}

/// The maximum number of keys that a check finds, one by one and together.
const FOUND_COUNT_MAX: usize = 100;

impl Rig {
    /// Checks that existing keys, and some that do not exist, are found as in the map, one by one and together.
    fn check_finding(&self) {
        let every = self.map.len().div_ceil(FOUND_COUNT_MAX).max(1);
        let there = self.map.keys().step_by(every).map(|key| key.to_vec());
        let wanted: Vec<Vec<u8>> = there.flat_map(|key| [[&key[..], b"no"].concat(), key]).collect();
        let wanted: Vec<&[u8]> = wanted.iter().map(Vec::as_slice).collect();
        let (mut expected, mut shown) = (0, 0);
        let near = |_| ();
        self.tree.find_many(&self.items, &wanted, near, |number, found| {
            assert_eq!(number, expected);
            expected += 1;
            let held = self.map.get(wanted[number]).copied();
            shown += usize::from(held.is_some());
            assert_eq!(found, Ok(held), "together");
            assert_eq!(self.tree.find(&self.items, wanted[number]), Ok(held), "by itself");
        });
        assert_eq!((expected, shown >= wanted.len() / 2), (wanted.len(), true));
    }
}

pub(super) fn scan<K: Keys<Error: std::fmt::Debug>>(
    tree: &BPlusTree<Host>,
    keys: &K,
    from: Bound<&[u8]>,
    direction: Direction,
) -> Vec<Position> {
    let (mut page, mut found, mut from) = (Page::default(), Vec::new(), from.map(<[u8]>::to_vec));
    loop {
        tree.read_page(keys, from.as_ref().map(Vec::as_slice), direction, &mut page).unwrap();
        found.extend_from_slice(page.positions());
        let Some(next) = page.next() else { return found };
        from = next.map(<[u8]>::to_vec);
    }
}

/// Returns the damage that the tree's own check reports.
pub(super) fn damage<K: Keys>(tree: &BPlusTree<Host>, keys: &K) -> Vec<String> {
    let mut found = Vec::new();
    tree.check(keys, &mut |damage| found.push(format!("{damage:?}")));
    found
}
