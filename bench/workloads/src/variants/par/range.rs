//! A range: a queue of changes, and a tree behind one lock.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use index::Position;
use index::bplus_tree::{self, BPlusTree, Direction, Edit, KeyStart, Keys, Page};
use parking_lot::Mutex;
use pmem_os::HostDram;

/// Changes that are applied together, as in HiKV.
const GROUP_COUNT: usize = 16;

/// The state of a key after a write.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) key: Box<[u8]>,
    pub(super) is_there: bool,
}

/// A leaf's keys, and the start of the next leaf if there is one.
pub(super) type Leaf = (Vec<Box<[u8]>>, Option<Bound<Box<[u8]>>>);

/// A range.
#[derive(Default)]
pub(super) struct Range {
    queue: Mutex<VecDeque<Change>>,
    tree: Mutex<Tree>,
    /// Changes queued so far.
    tail: AtomicU64,
    /// Changes applied so far.
    head: AtomicU64,
    key_count: AtomicU64,
}

impl Range {
    pub(super) fn tail(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }

    pub(super) fn applied_count(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    pub(super) fn queued_count(&self) -> u64 {
        let applied_count = self.applied_count();
        self.tail() - applied_count
    }

    pub(super) fn key_count(&self) -> u64 {
        self.key_count.load(Ordering::Relaxed)
    }

    /// Queues a change and returns its number; returns the change itself if the queue is full.
    pub(super) fn push(&self, change: Change, bound: usize) -> Result<u64, Change> {
        let mut queue = self.queue.lock();
        if queue.len() >= bound {
            return Err(change);
        }
        queue.push_back(change);
        Ok(self.tail.fetch_add(1, Ordering::AcqRel))
    }

    /// Fills an empty tree with ascending keys.
    pub(super) fn load(&self, keys: impl Iterator<Item = Box<[u8]>>) {
        let mut tree = self.tree.lock();
        tree.add(keys.collect());
        self.count(&tree);
    }

    /// Applies the next group; returns the number of changes, which is 0 if another thread is applying.
    pub(super) fn drain(&self) -> u64 {
        let Some(mut tree) = self.tree.try_lock() else { return 0 };
        self.drain_into(&mut tree)
    }

    fn drain_into(&self, tree: &mut Tree) -> u64 {
        let mut queue = self.queue.lock();
        let count = queue.len().min(GROUP_COUNT);
        let group: Vec<Change> = queue.drain(..count).collect();
        drop(queue);
        tree.apply(group);
        self.count(tree);
        self.head.fetch_add(count as u64, Ordering::AcqRel);
        count as u64
    }

    fn count(&self, tree: &Tree) {
        self.key_count.store(tree.tree.len(), Ordering::Relaxed);
    }

    /// Returns the keys of a leaf, and the start of the next leaf if there is one.
    pub(super) fn page(&self, from: &Bound<Box<[u8]>>) -> Leaf {
        self.tree.lock().page(from)
    }

    /// Moves `count` keys from the end next to `other`; returns the new border between the two. No thread queues
    /// changes during this.
    pub(super) fn give(&self, other: &Range, count: u64, to_the_next: bool) -> Box<[u8]> {
        // Trees are locked in ascending order.
        let (mut mine, mut theirs) = if to_the_next {
            let mine = self.tree.lock();
            (mine, other.tree.lock())
        } else {
            let theirs = other.tree.lock();
            (self.tree.lock(), theirs)
        };
        while self.drain_into(&mut mine) + other.drain_into(&mut theirs) > 0 {}
        let mut keys = mine.all_keys();
        let border = if to_the_next {
            let moved = keys.split_off(keys.len() - count.min(keys.len() as u64 - 1) as usize);
            let border = moved.first().or(keys.last()).expect("a large range has keys").clone();
            mine.remove(&moved);
            theirs.add(moved);
            border
        } else {
            let kept = keys.split_off(count.min(keys.len() as u64 - 1) as usize);
            mine.remove(&keys);
            theirs.add(keys);
            kept.first().expect("a large range has keys").clone()
        };
        self.count(&mine);
        other.count(&theirs);
        border
    }
}

/// A tree of keys, which are stored outside of it.
struct Tree {
    tree: BPlusTree<HostDram>,
    keys: Slab,
}

impl Default for Tree {
    fn default() -> Tree {
        let tree = BPlusTree::new(HostDram).expect("there is DRAM for a leaf");
        Tree { tree, keys: Slab::default() }
    }
}

impl Tree {
    fn apply(&mut self, group: Vec<Change>) {
        let mut added = Vec::with_capacity(group.len());
        for Change { key, is_there } in group {
            if is_there {
                added.push(key);
            } else {
                self.add(std::mem::take(&mut added));
                self.remove(&[key]);
            }
        }
        self.add(added);
    }

    /// Adds the keys that the tree does not contain.
    fn add(&mut self, keys: Vec<Box<[u8]>>) {
        for group in keys.chunks(GROUP_COUNT) {
            let positions: Vec<_> = group.iter().map(|key| self.keys.put(key.clone())).collect();
            let changes: Vec<_> =
                positions.iter().map(|&position| self.change(position, Edit::Insert(position))).collect();
            let mut was_there = Vec::new();
            self.tree.apply(&self.keys, &changes, |number, result| {
                if result.is_err() {
                    was_there.push(positions[number]);
                }
            });
            drop(changes);
            was_there.into_iter().for_each(|position| self.keys.free(position));
        }
    }

    fn remove(&mut self, keys: &[Box<[u8]>]) {
        for key in keys {
            let Ok(Some(position)) = self.tree.find(&self.keys, key) else { continue };
            self.tree.apply(&self.keys, &[self.change(position, Edit::Remove(position))], |_, _| {});
            self.keys.free(position);
        }
    }

    fn change(&self, position: Position, edit: Edit) -> bplus_tree::Change<'_> {
        bplus_tree::Change { key: KeyStart::whole(self.keys.get(position)), edit }
    }

    fn page(&self, from: &Bound<Box<[u8]>>) -> Leaf {
        let mut page = Page::default();
        let Ok(()) = self.tree.read_page(&self.keys, from.as_ref().map(|key| &**key), Direction::Forward, &mut page);
        let keys = page.positions().iter().map(|&position| self.keys.get(position).into()).collect();
        (keys, page.next().map(|bound| bound.map(Box::from)))
    }

    fn all_keys(&self) -> Vec<Box<[u8]>> {
        let (mut all, mut next) = (Vec::new(), Some(Bound::Included(Box::default())));
        while let Some(from) = next {
            let (keys, after) = self.page(&from);
            all.extend(keys);
            next = after;
        }
        all
    }
}

/// Keys by number. A position is a number in the form of an item's place, which is all that the tree needs.
#[derive(Default)]
struct Slab {
    keys: Vec<Box<[u8]>>,
    free: Vec<Position>,
}

/// Places of items are multiples of this.
const GRAIN_BYTES: u64 = 16;

impl Slab {
    fn put(&mut self, key: Box<[u8]>) -> Position {
        if let Some(position) = self.free.pop() {
            self.keys[number(position)] = key;
            return position;
        }
        self.keys.push(key);
        Position::from_word(self.keys.len() as u64 * GRAIN_BYTES)
    }

    fn free(&mut self, position: Position) {
        self.free.push(position);
    }

    fn get(&self, position: Position) -> &[u8] {
        &self.keys[number(position)]
    }
}

fn number(position: Position) -> usize {
    (position.offset().0 / GRAIN_BYTES) as usize - 1
}

impl Keys for Slab {
    type Error = Infallible;

    fn key(&self, position: Position) -> Result<&[u8], Infallible> {
        Ok(self.get(position))
    }

    fn prefetch(&self, position: Position) {
        pmem::arch::prefetch(self.keys[number(position)].as_ptr());
    }
}
