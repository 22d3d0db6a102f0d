//! Ordered stores in persistent memory and DRAM, for keys of 16 bytes: the rivals of HiKV's paper.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use heap::HeapError;
use items::ItemError;
use pmem::{Dram, Medium, MediumError};

use crate::key::KeyBytes;
use crate::records::Records;

/// The reason why a tree refused an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TreeError {
    /// The heap refused: the region is full, holds no tree of this kind, or is damaged.
    Heap(HeapError),
    /// A record could not be read.
    Item(ItemError),
    /// The medium failed.
    Medium(MediumError),
    /// The tree's own words contradict themselves.
    Damaged {
        /// The offset of the damage in the region.
        offset: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// A leaf cannot have this number of entries.
    LeafSize {
        /// The number.
        entry_count: u64,
        /// The largest possible number; the smallest is 2.
        entry_count_max: u64,
    },
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeError::Heap(error) => error.fmt(f),
            TreeError::Item(error) => error.fmt(f),
            TreeError::Medium(error) => error.fmt(f),
            TreeError::Damaged { offset, what } => write!(f, "the tree is damaged at offset {offset:#x}: {what}"),
            TreeError::LeafSize { entry_count, entry_count_max } => {
                write!(f, "a leaf cannot have {entry_count} entries: 2 to {entry_count_max} are possible")
            }
        }
    }
}

impl std::error::Error for TreeError {}

impl From<HeapError> for TreeError {
    fn from(error: HeapError) -> TreeError {
        TreeError::Heap(error)
    }
}

impl From<ItemError> for TreeError {
    fn from(error: ItemError) -> TreeError {
        TreeError::Item(error)
    }
}

impl From<MediumError> for TreeError {
    fn from(error: MediumError) -> TreeError {
        TreeError::Medium(error)
    }
}

/// The result of an operation on a tree.
pub type TreeResult<T> = Result<T, TreeError>;

/// The sizes of a new tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Entries of a leaf.
    pub leaf_entry_count: u64,
    /// The region's initial length; it grows as needed.
    pub region_bytes: u64,
}

/// The changes of a tree's structure since it was opened.
#[derive(Debug, Default)]
pub struct Reshapes {
    split_count: AtomicU64,
    removed_leaf_count: AtomicU64,
    rebuild_count: AtomicU64,
}

impl Reshapes {
    /// Returns the number of leaves that were split in two.
    pub fn split_count(&self) -> u64 {
        self.split_count.load(Ordering::Relaxed)
    }

    /// Returns the number of leaves that were taken off the list.
    pub fn removed_leaf_count(&self) -> u64 {
        self.removed_leaf_count.load(Ordering::Relaxed)
    }

    /// Returns the number of times that all inner nodes were built again.
    pub fn rebuild_count(&self) -> u64 {
        self.rebuild_count.load(Ordering::Relaxed)
    }

    pub(crate) fn count_split(&self) {
        self.split_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_removed_leaf(&self) {
        self.removed_leaf_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_rebuild(&self) {
        self.rebuild_count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Receives a key and its value, and returns whether to continue.
pub type OnPair<'a> = dyn FnMut(&KeyBytes, &[u8]) -> ControlFlow<()> + 'a;

/// Counts comparisons of keys. `()` counts nothing and costs nothing.
pub trait ComparisonCounter {
    /// Counts one comparison.
    fn compared(&self);
}

impl ComparisonCounter for () {
    #[inline(always)]
    fn compared(&self) {}
}

impl ComparisonCounter for AtomicU64 {
    fn compared(&self) {
        self.fetch_add(1, Ordering::Relaxed);
    }
}

/// An ordered store. Threads read and write concurrently.
pub trait Tree<M: Medium, D: Dram>: Sized {
    /// The name in figures.
    const NAME: &'static str;
    /// The tuned number of entries of a leaf.
    const LEAF_ENTRY_COUNT: u64;

    /// Creates an empty tree on a fresh medium.
    ///
    /// # Errors
    /// [`TreeError::LeafSize`]; an error of the heap.
    fn format(medium: M, dram: D, sizes: &Sizes) -> TreeResult<Self>;

    /// Opens a tree: completes interrupted changes, and rebuilds the part in DRAM.
    ///
    /// # Errors
    /// An error of the heap; [`TreeError::Damaged`].
    fn open(medium: M, dram: D) -> TreeResult<Self>;

    /// Returns the records.
    fn records(&self) -> &Records<M, D>;

    /// Calls `found` with the value of a key; returns false if the key does not exist.
    ///
    /// # Errors
    /// [`TreeError::Item`] if the record is damaged.
    fn get(&self, key: &KeyBytes, found: impl FnOnce(&[u8])) -> TreeResult<bool> {
        self.get_counted(key, found, &())
    }

    /// Like [`Tree::get`], and counts the comparisons with keys of the leaf.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    fn get_counted(&self, key: &KeyBytes, found: impl FnOnce(&[u8]), comparisons: &impl ComparisonCounter) -> TreeResult<bool>;

    /// Sets the value of a key, which may exist.
    ///
    /// # Errors
    /// An error of the heap if the region is full; nothing has changed then.
    fn put(&self, key: &KeyBytes, value: &[u8]) -> TreeResult<()>;

    /// Removes a key; returns false if the key does not exist.
    ///
    /// # Errors
    /// As for [`Tree::put`].
    fn delete(&self, key: &KeyBytes) -> TreeResult<bool>;

    /// Calls `each` with the keys from `from` on, in ascending order, and their values.
    ///
    /// # Errors
    /// [`TreeError::Item`] if a record is damaged.
    fn scan(&self, from: &KeyBytes, each: &mut OnPair<'_>) -> TreeResult<()>;

    /// Returns the bytes of DRAM that hold the tree's upper levels, and copies if there are any.
    fn dram_bytes(&self) -> u64;

    /// Returns the counts of changes of the tree's structure.
    fn reshapes(&self) -> &Reshapes;

    /// Counts the keys, by a scan.
    ///
    /// # Errors
    /// As for [`Tree::scan`].
    fn len(&self) -> TreeResult<u64> {
        let mut count = 0;
        self.scan(&[0; 16], &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// Returns true if there is no key.
    ///
    /// # Errors
    /// As for [`Tree::scan`].
    fn is_empty(&self) -> TreeResult<bool> {
        Ok(self.len()? == 0)
    }
}
