//! NV-Tree (Yang, Wei, Chen, Wang, Yong, He: 'NV-Tree: Reducing Consistency Cost for NVM-based Single Level Systems',
//! 2015), as HiKV's paper compares with it under the name of NVStore: leaves in persistent memory that are appended to;
//! inner nodes in DRAM, contiguous, built again when one of the last level is full.
//!
//! # A put or a delete: two fences
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the record and an entry behind the others are written; ordered | the old value |
//! | 2 the leaf's number of entries includes it; waited for | the new value |
//!
//! A put does not look for the key. A delete looks, and appends a mark. The first operation that finds its leaf full
//! replaces it.
//!
//! # The replacement of a leaf: two fences more
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the newest entry of each key that exists is in one new leaf, or in two; ordered | the old leaf |
//! | 2 the next of the leaf before, or the head, is the first new leaf; ordered | the new leaves |
//! | 3 the last inner level changes | the same |
//! | 4 the old leaf, superseded records and deleted ones retire | the same |
//!
//! There are two new leaves if more than half of the entries are left. Otherwise there is one, which takes over the
//! entries of the next leaf also if these fit in the same half.
//!
//! An entry owns its record until its leaf is replaced, also after another entry of the key has superseded it. So
//! opening marks the records of all entries, and retires none.
//!
//! # Concurrency
//! Readers take no lock: they read a leaf's number of entries, and these never change. A reader may see an entry before
//! it is durable. A reader of a replaced leaf, or of inner nodes that were built again, sees a state that was current
//! since it began. A writer locks the leaf. Lock order: leaf, the lock of the structure (shared by replacements, taken
//! alone by a rebuild), nodes of the last level from left to right. The next leaf, for a merge, is only tried.
//!
//! A rebuild stops replacements; writers that append continue, because it reads no leaf.

mod leaf;
mod pln;
mod recover;
mod replace;
mod scan;
mod upper;

use std::sync::atomic::{AtomicPtr, Ordering};

use epoch::{Limbo, pin};
use heap::layout::ENGINE_AREA;
use heap::{Class, EngineNumber, Place, PlaceKind};
use index::Position;
use parking_lot::RwLock;
use pmem::{Dram, Level, Medium, Offset};

use crate::key::{Key, KeyBytes};
use crate::records::Records;
use crate::tree::{OnPair, Reshapes, Sizes, ComparisonCounter, Tree, TreeError, TreeResult};
use crate::version::Version;

use leaf::{AppendLeaf, ENTRY_COUNT_MAX, leaf_bytes};
use upper::Upper;

const NUMBER: EngineNumber = EngineNumber(102);
/// The offset of the first leaf.
const HEAD: Offset = ENGINE_AREA;
/// The number of entries of a leaf.
const ENTRY_COUNT: Offset = ENGINE_AREA.plus(8);

/// An NV-Tree.
pub struct NvTree<M: Medium, D: Dram> {
    records: Records<M, D>,
    /// A leaked box, never null.
    upper: AtomicPtr<Upper>,
    /// Inner nodes that readers may still use.
    old_uppers: Limbo<Box<Upper>>,
    structure: RwLock<()>,
    entry_count: u64,
    reshapes: Reshapes,
}

fn check_entry_count(entry_count: u64) -> TreeResult<()> {
    let is_possible = (2..=ENTRY_COUNT_MAX).contains(&entry_count);
    is_possible.then_some(()).ok_or(TreeError::LeafSize { entry_count, entry_count_max: ENTRY_COUNT_MAX })
}

impl<M: Medium, D: Dram> NvTree<M, D> {
    fn new(records: Records<M, D>, upper: Upper, entry_count: u64) -> NvTree<M, D> {
        NvTree {
            records,
            upper: AtomicPtr::new(Box::into_raw(Box::new(upper))),
            old_uppers: Limbo::default(),
            structure: RwLock::default(),
            entry_count,
            reshapes: Reshapes::default(),
        }
    }

    fn leaf(&self, at: Offset) -> AppendLeaf<'_, M> {
        AppendLeaf::new(&self.records.medium, at)
    }

    fn leaf_place(&self, at: Offset) -> Place {
        let class = Class::for_bytes(leaf_bytes(self.entry_count)).expect("a leaf is shorter than the longest slot");
        Place { offset: at, kind: PlaceKind::Slot(class) }
    }

    /// Returns the inner nodes. The caller is pinned for as long as it uses them.
    #[inline(always)]
    fn upper(&self) -> &Upper {
        // SAFETY: never null; a rebuild retires the nodes that it replaces, and the caller is pinned.
        unsafe { &*self.upper.load(Ordering::Acquire) }
    }

    /// Finds the leaf for `key`. The caller is pinned.
    #[inline(always)]
    fn seek(&self, key: Key) -> AppendLeaf<'_, M> {
        let upper = self.upper();
        let leaf = self.leaf(upper.plns[upper.pln_of(key)].locate(key));
        leaf.prefetch();
        leaf
    }

    /// Locks the leaf for `key`. The caller is pinned.
    #[inline(always)]
    fn lock(&self, key: Key) -> Locked<'_, M> {
        loop {
            let leaf = self.seek(key);
            if leaf.lock() {
                return Locked(leaf);
            }
        }
    }

    /// Appends to the locked leaf for the entry's key, or to a new one if it is full; waits until that is durable.
    #[inline(always)]
    fn append(&self, locked: Locked<'_, M>, key: Key, position: impl FnOnce() -> Position) -> TreeResult<()> {
        let is_full = locked.0.count() == self.entry_count;
        let locked = if is_full { self.replace(locked, key)? } else { locked };
        locked.0.append((key, position()));
        let ticket = self.records.medium.commit(Level::Strongest);
        Ok(self.records.medium.wait(ticket)?)
    }
}

/// A locked leaf, which is unlocked when dropped.
struct Locked<'a, M: Medium>(AppendLeaf<'a, M>);

impl<M: Medium> Locked<'_, M> {
    /// Unlocks the leaf, which is not part of the tree any more.
    fn abandon(self) {
        self.0.unlock_obsolete();
        std::mem::forget(self);
    }
}

impl<M: Medium> Drop for Locked<'_, M> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl<M: Medium, D: Dram> Tree<M, D> for NvTree<M, D> {
    const NAME: &'static str = "nv-tree";
    const LEAF_ENTRY_COUNT: u64 = 168;

    fn format(medium: M, dram: D, sizes: &Sizes) -> TreeResult<NvTree<M, D>> {
        check_entry_count(sizes.leaf_entry_count)?;
        let records = Records::format(medium, dram, NUMBER, sizes.region_bytes)?;
        let first = records.reserve(leaf_bytes(sizes.leaf_entry_count))?.publish().offset;
        AppendLeaf::new(&records.medium, first).initialise(&[], Offset::NULL, Version::FIRST);
        let words = [(HEAD, first.0), (ENTRY_COUNT, sizes.leaf_entry_count)];
        let _ = records.medium.publish(&words, first.0);
        records.heap.region().finish_format(&records.medium)?;
        Ok(NvTree::new(records, Upper::build(&[(Key::LAST, first)]), sizes.leaf_entry_count))
    }

    fn open(medium: M, dram: D) -> TreeResult<NvTree<M, D>> {
        recover::open(Records::open(medium, dram, NUMBER)?)
    }

    fn records(&self) -> &Records<M, D> {
        &self.records
    }

    #[inline(always)]
    fn get_counted(&self, bytes: &KeyBytes, found: impl FnOnce(&[u8]), comparisons: &impl ComparisonCounter) -> TreeResult<bool> {
        let (pin, key) = (pin(), Key::of(bytes));
        let Some(position) = self.seek(key).find(key, comparisons) else { return Ok(false) };
        self.records.value(position, pin.pinned(), found)?;
        Ok(true)
    }

    fn put(&self, bytes: &KeyBytes, value: &[u8]) -> TreeResult<()> {
        let (_pin, key) = (pin(), Key::of(bytes));
        let record = self.records.write(bytes, value)?;
        self.append(self.lock(key), key, || Position::of(record.publish()))
    }

    fn delete(&self, bytes: &KeyBytes) -> TreeResult<bool> {
        let (_pin, key) = (pin(), Key::of(bytes));
        let locked = self.lock(key);
        if locked.0.find(key, &()).is_none() {
            return Ok(false);
        }
        self.append(locked, key, || Position::EMPTY.deleted())?;
        Ok(true)
    }

    fn scan(&self, from: &KeyBytes, each: &mut OnPair<'_>) -> TreeResult<()> {
        self.scan_from(Key::of(from), each)
    }

    fn dram_bytes(&self) -> u64 {
        let _pin = pin();
        self.upper().dram_bytes() + self.old_uppers.bytes()
    }

    fn reshapes(&self) -> &Reshapes {
        &self.reshapes
    }
}

impl<M: Medium, D: Dram> Drop for NvTree<M, D> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and the tree is not used any more.
        drop(unsafe { Box::from_raw(*self.upper.get_mut()) });
    }
}
