//! FPTree (Oukid, Lasperas, Nica, Willhalm, Lehner: 'FPTree: A Hybrid SCM-DRAM Persistent and Concurrent B-Tree for
//! Storage Class Memory', 2016), as HiKV's paper compares with it: leaves in persistent memory, unsorted, searched by
//! fingerprint; inner nodes in DRAM.
//!
//! Two parts differ from the paper's description. Optimistic lock coupling replaces hardware transactions, as in
//! HiKV's own tree. A micro-log and a new leaf become durable with one fence, because a log matters only once the old
//! leaf changes.
//!
//! # A put: three fences
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the record and a free entry are written; ordered | the old value |
//! | 2 the entry's fingerprint is written; ordered | the old value |
//! | 3 the bitmap: the entry's bit on, the old entry's off, by one word; waited for | the new value |
//!
//! A delete is step 3: one fence. A put into a full leaf splits it first.
//!
//! # A split: three fences more
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the log names both leaves; the new leaf has the upper half's bits; ordered | the old leaf, full: the log is dropped |
//! | 2 the old leaf's bitmap: the lower half; ordered | the upper half in the new leaf: opening does step 3 |
//! | 3 the old leaf's next is the new leaf; ordered | both halves |
//! | 4 the log is empty; ordered by the put's step 1, before another change of either leaf | both halves |
//! | 5 the inner nodes change | the same |
//!
//! # The last key of a leaf is deleted: three fences
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the log names the leaf and the one before; ordered | no key, after opening has done step 2 |
//! | 2 the leaf before has the next leaf as its next; ordered | no key |
//! | 3 the log is empty; waited for | no key |
//! | 4 the inner nodes change; leaf and record retire | the same |
//!
//! A leaf that has no left sibling under the same parent, or whose sibling is locked, stays in the list, empty.
//!
//! # Concurrency
//! A reader notes the leaf's version, checks that the parent still refers to the leaf, reads, and checks the version.
//! It waits while the leaf is locked, so it never sees a change that is not durable. A writer locks the leaf from the
//! version that it noted. Lock order: leaf, then inner nodes, for which a writer waits; an unlink holds leaf and
//! parent, and only tries the leaf before. A split holds both leaves until the inner nodes have changed.

mod inner;
mod leaf;
mod log;
mod recover;
mod scan;
mod unlink;
mod write;

use epoch::pin;
use heap::layout::ENGINE_AREA;
use heap::{Class, EngineNumber, Place, PlaceKind};
use index::Position;
use pmem::{Dram, Medium, Offset};

use crate::key::{Key, KeyBytes};
use crate::records::Records;
use crate::tree::{OnPair, Reshapes, Sizes, ComparisonCounter, Tree, TreeError, TreeResult};
use crate::version::Version;

use inner::Inner;
use leaf::{ENTRY_COUNT_MAX, Leaf, leaf_bytes};
use log::Logs;

const NUMBER: EngineNumber = EngineNumber(101);
/// The offset of the first leaf.
const HEAD: Offset = ENGINE_AREA;
/// The number of entries of a leaf.
const ENTRY_COUNT: Offset = ENGINE_AREA.plus(8);

/// An FPTree.
pub struct FpTree<M: Medium, D: Dram> {
    records: Records<M, D>,
    inner: Inner,
    logs: Logs,
    entry_count: u64,
    reshapes: Reshapes,
}

fn check_entry_count(entry_count: u64) -> TreeResult<()> {
    let is_possible = (2..=ENTRY_COUNT_MAX).contains(&entry_count);
    is_possible.then_some(()).ok_or(TreeError::LeafSize { entry_count, entry_count_max: ENTRY_COUNT_MAX })
}

impl<M: Medium, D: Dram> FpTree<M, D> {
    fn new(records: Records<M, D>, inner: Inner, entry_count: u64) -> FpTree<M, D> {
        FpTree { records, inner, logs: Logs::default(), entry_count, reshapes: Reshapes::default() }
    }

    fn leaf(&self, at: Offset) -> Leaf<'_, M> {
        Leaf::new(&self.records.medium, at)
    }

    fn leaf_place(&self, at: Offset) -> Place {
        let class = Class::for_bytes(leaf_bytes(self.entry_count)).expect("a leaf is shorter than the longest slot");
        Place { offset: at, kind: PlaceKind::Slot(class) }
    }

    /// Returns the bitmap of a full leaf.
    fn full(&self) -> u64 {
        u64::MAX >> (ENTRY_COUNT_MAX - self.entry_count)
    }

    #[inline(always)]
    fn fingerprint(&self, key: &KeyBytes) -> u8 {
        self.records.hasher.signature(key) as u8
    }

    /// Finds the record of `key`, and returns the leaf also. The caller is pinned.
    #[inline(always)]
    pub(crate) fn find(&self, key: Key, fingerprint: u8, comparisons: &impl ComparisonCounter) -> (Option<Position>, Read<'_, M>) {
        loop {
            let (leaf, version) = self.seek(key);
            let position = leaf.find(key, fingerprint, comparisons).map(|entry| leaf.position(entry));
            let read = Read { leaf, version };
            if read.is_current() {
                return (position, read);
            }
        }
    }

    /// Finds the leaf for `key` and notes its version; waits while it is locked.
    #[inline(always)]
    fn seek(&self, key: Key) -> (Leaf<'_, M>, Version) {
        loop {
            let spot = self.inner.locate(key);
            let leaf = self.leaf(spot.leaf);
            leaf.prefetch();
            let version = leaf.settled_version();
            if version.is_stable() && spot.is_current() {
                return (leaf, version);
            }
        }
    }
}

/// A leaf that was read, as of one version.
pub(crate) struct Read<'a, M> {
    leaf: Leaf<'a, M>,
    version: Version,
}

impl<M: Medium> Read<'_, M> {
    /// Returns true if nothing has changed since.
    pub(crate) fn is_current(&self) -> bool {
        self.leaf.is_at(self.version)
    }
}

impl<M: Medium, D: Dram> Tree<M, D> for FpTree<M, D> {
    const NAME: &'static str = "fptree";
    const LEAF_ENTRY_COUNT: u64 = 64;

    fn format(medium: M, dram: D, sizes: &Sizes) -> TreeResult<FpTree<M, D>> {
        check_entry_count(sizes.leaf_entry_count)?;
        let records = Records::format(medium, dram, NUMBER, sizes.region_bytes)?;
        let first = records.reserve(leaf_bytes(sizes.leaf_entry_count))?.publish().offset;
        Leaf::new(&records.medium, first).initialise(Version::FIRST);
        let words = [(HEAD, first.0), (ENTRY_COUNT, sizes.leaf_entry_count)];
        let _ = records.medium.publish(&words, first.0);
        records.heap.region().finish_format(&records.medium)?;
        let inner = Inner::build(&[(Key::LAST, first)]);
        Ok(FpTree::new(records, inner, sizes.leaf_entry_count))
    }

    fn open(medium: M, dram: D) -> TreeResult<FpTree<M, D>> {
        recover::open(Records::open(medium, dram, NUMBER)?)
    }

    fn records(&self) -> &Records<M, D> {
        &self.records
    }

    #[inline(always)]
    fn get_counted(&self, bytes: &KeyBytes, found: impl FnOnce(&[u8]), comparisons: &impl ComparisonCounter) -> TreeResult<bool> {
        let pin = pin();
        let (key, fingerprint) = (Key::of(bytes), self.fingerprint(bytes));
        let (position, _) = self.find(key, fingerprint, comparisons);
        let Some(position) = position else { return Ok(false) };
        self.records.value(position, pin.pinned(), found)?;
        Ok(true)
    }

    fn put(&self, key: &KeyBytes, value: &[u8]) -> TreeResult<()> {
        self.put_record(key, value, || {})
    }

    fn delete(&self, key: &KeyBytes) -> TreeResult<bool> {
        self.delete_entry(key, || {})
    }

    fn scan(&self, from: &KeyBytes, each: &mut OnPair<'_>) -> TreeResult<()> {
        self.scan_from(Key::of(from), each)
    }

    fn dram_bytes(&self) -> u64 {
        self.inner.dram_bytes()
    }

    fn reshapes(&self) -> &Reshapes {
        &self.reshapes
    }
}
