//! Loads a tree from sorted items: leaves from left to right, then the levels above them.
//!
//! No other thread sees the tree before it is complete, so nothing is locked.

use std::sync::atomic::Ordering::Relaxed;

use pmem::Dram;

use super::descent::Root;
use super::layout::{LEAF_COUNT_MAX, Leaf, SEPARATOR_COUNT_MAX};
use super::leaf::Entry;
use super::memory::Memory;
use super::nodes::Nodes;
use super::separator::Separator;
use super::target::{common_bytes, head_of, shortest_between};
use super::{BPlusTree, LoadError, NoDram};
use crate::Position;

/// Loaded nodes keep some free space, because otherwise the first inserts would split all of them.
const FILL_PERCENT: usize = 94;
const LEAF_COUNT_LOADED: usize = (LEAF_COUNT_MAX * FILL_PERCENT).div_ceil(100);
const CHILD_COUNT_LOADED: usize = ((SEPARATOR_COUNT_MAX + 1) * FILL_PERCENT).div_ceil(100);

/// Loads a tree from sorted items, in parts that several threads may build at the same time.
#[derive(Debug)]
pub struct Loader<D: Dram> {
    memory: Memory<D>,
}

/// The loaded items of one range of keys.
#[derive(Debug)]
pub struct Part {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    /// Leaves and their lower fences.
    leaves: Vec<Child>,
    item_count: u64,
}

/// A node, and the separator to its left.
#[derive(Clone, Copy, Debug)]
struct Child {
    separator: Separator,
    node: *mut u8,
}

// SAFETY: no other thread can see the node.
unsafe impl Send for Child {}

impl<D: Dram> Loader<D> {
    /// Creates an empty loader.
    pub fn new(dram: D) -> Loader<D> {
        Loader { memory: Memory::new(dram) }
    }

    /// Loads the items of `low..high` (to the end for `None`), in ascending order of their keys. Parts may be
    /// loaded at the same time.
    ///
    /// # Errors
    /// See [`LoadError`]; an error of the iterator is returned as [`LoadError::Keys`].
    pub fn part<'k, E>(
        &self,
        low: &[u8],
        high: Option<&[u8]>,
        sorted: impl Iterator<Item = Result<(Position, &'k [u8]), E>>,
    ) -> Result<Part, LoadError<E>> {
        let part = Part { low: low.to_vec(), high: high.map(<[u8]>::to_vec), leaves: Vec::new(), item_count: 0 };
        let mut writer = LeafWriter { memory: &self.memory, part, low: low.to_vec(), items: Vec::new() };
        for item in sorted {
            let (position, key) = item.map_err(LoadError::Keys)?;
            let is_after = writer.items.last().map_or_else(|| low <= key, |&(_, last)| is_below(last, key));
            if !is_after || high.is_some_and(|high| !is_below(key, high)) {
                return Err(LoadError::Unsorted(position));
            }
            writer.push(position, key)?;
        }
        writer.finish_leaf(high)?;
        Ok(writer.part)
    }

    /// Joins parts, in the order of their ranges and without gaps. The first one starts at the empty key, and the
    /// last one has no end.
    ///
    /// # Errors
    /// Returns an error if the host has no memory.
    ///
    /// # Panics
    /// Panics if the ranges leave gaps.
    pub fn finish(self, parts: Vec<Part>) -> Result<BPlusTree<D>, NoDram> {
        let (mut end, mut children, mut item_count) = (Some(Vec::new()), Vec::<Child>::new(), 0);
        for part in parts {
            assert_eq!(end, Some(part.low), "parts leave a gap");
            end = part.high;
            children.last().zip(part.leaves.first()).into_iter().for_each(|(left, right)| link_leaves(left, right));
            children.extend(part.leaves);
            item_count += part.item_count;
        }
        assert_eq!(end, None, "parts leave a gap");
        let mut height = 0;
        while children.len() > 1 {
            children = self.level_above(&children)?;
            height += 1;
        }
        let nodes = Nodes::new(Root::new(children[0].node, height), self.memory);
        Ok(BPlusTree { nodes, item_count: item_count.into() })
    }

    /// Creates the level above, whose nodes get shares as equal as possible.
    fn level_above(&self, children: &[Child]) -> Result<Vec<Child>, NoDram> {
        let node_count = children.len().div_ceil(CHILD_COUNT_LOADED);
        let start = |number: usize| children.len() * number / node_count;
        (0..node_count).map(|number| self.inner_above(&children[start(number)..start(number + 1)])).collect()
    }

    fn inner_above(&self, children: &[Child]) -> Result<Child, NoDram> {
        let separators: Vec<Separator> = children[1..].iter().map(|child| child.separator).collect();
        let nodes: Vec<*mut u8> = children.iter().map(|child| child.node).collect();
        let inner = self.memory.new_inner()?;
        inner.node().fill(&separators, &nodes);
        Ok(Child { separator: children[0].separator, node: inner.link().cast() })
    }
}

/// Returns true if one key is below another. Usually the first bytes decide.
#[inline(always)]
fn is_below(one: &[u8], other: &[u8]) -> bool {
    let (head, other_head) = (head_of(one, 0), head_of(other, 0));
    if head == other_head { one < other } else { head < other_head }
}

fn link_leaves(left: &Child, right: &Child) {
    // SAFETY: a leaf of the loader's memory, which no other thread can see.
    let left = unsafe { &*left.node.cast::<Leaf>() };
    left.next.store(right.node.cast(), Relaxed);
}

/// Collects items until they fill a leaf and the next key determines the upper fence.
struct LeafWriter<'a, 'k, D: Dram> {
    memory: &'a Memory<D>,
    part: Part,
    /// The lower fence of the leaf to write.
    low: Vec<u8>,
    items: Vec<(Position, &'k [u8])>,
}

impl<'k, D: Dram> LeafWriter<'_, 'k, D> {
    fn push(&mut self, position: Position, key: &'k [u8]) -> Result<(), NoDram> {
        if let (LEAF_COUNT_LOADED, Some(&(_, last))) = (self.items.len(), self.items.last()) {
            let high = shortest_between(last, key);
            self.finish_leaf(Some(high))?;
            self.low.clear();
            self.low.extend_from_slice(high);
        }
        self.items.push((position, key));
        Ok(())
    }

    fn finish_leaf(&mut self, high: Option<&[u8]>) -> Result<(), NoDram> {
        let prefix_bytes = high.map_or(0, |high| common_bytes(&self.low, high));
        let entry = |&(position, key): &(Position, &[u8])| Entry { head: head_of(key, prefix_bytes), position };
        let entries: Vec<Entry> = self.items.iter().map(entry).collect();
        let leaf = self.memory.new_leaf()?;
        leaf.node().fill(prefix_bytes, &entries);
        let separator = Separator::new(&self.memory.arena, &self.low)?;
        let child = Child { separator, node: leaf.link().cast() };
        self.part.leaves.last().into_iter().for_each(|left| link_leaves(left, &child));
        self.part.leaves.push(child);
        self.part.item_count += entries.len() as u64;
        self.items.clear();
        Ok(())
    }
}

impl<E> From<NoDram> for LoadError<E> {
    fn from(error: NoDram) -> LoadError<E> {
        LoadError::NoDram { wanted_bytes: error.wanted_bytes }
    }
}
