//! Splits full nodes to make space, one node at a time, from the root down.
//!
//! # Lock order
//! The parent, then the node. Each is locked only if it has not changed since the descent; otherwise everything
//! starts again. No other thread can see the new node before it is linked.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use pmem::Dram;

use super::descent::{At, Path, Root, Step};
use super::inner::Seek;
use super::layout::{HEAD_BYTES, Inner, LEAF_COUNT_MAX, Leaf, SEPARATOR_COUNT_MAX};
use super::leaf::Entry;
use super::memory::Unlinked;
use super::nodes::Nodes;
use super::separator::Separator;
use super::target::{Stop, Target, common_bytes, head_of, key_of, shortest_between};
use super::version::Lock;
use super::{Keys, NoDram};

/// A leaf's prefix grows if this number of further bytes is shared, or if heads tie. Growing it reads the key of
/// every item.
const PREFIX_GROWTH_BYTES: usize = 4;
/// The distance from the middle at which a leaf may be split, for a shorter separator.
const OFF_MIDDLE_COUNT_MAX: usize = 3;

impl<D: Dram> Nodes<D> {
    /// Splits the first full node on the way to the target; its parent is not full.
    pub(super) fn make_space<K: Keys>(&self, seek: &mut Seek<'_, K>) -> Result<(), Stop<K::Error>> {
        let (leaf, path) = self.root_word().descend(seek, |inner, path, level| {
            if inner.node.count() < SEPARATOR_COUNT_MAX {
                return Ok(());
            }
            self.split_inner(inner, path, level)?;
            Err(Stop::Again)
        })?;
        match seek {
            Seek::At(target) if leaf.node.count() == LEAF_COUNT_MAX => self.split_leaf(leaf, &path, target),
            _ => Ok(()),
        }
    }

    fn split_leaf<K: Keys>(
        &self,
        at: At<'_, Leaf>,
        path: &Path<'_>,
        target: &mut Target<'_, K>,
    ) -> Result<(), Stop<K::Error>> {
        let low = path.low.map(|step| step.separator_bytes()).transpose()?;
        let high = path.high.map(|step| step.separator_bytes()).transpose()?;
        let (new, link) = (self.memory().new_leaf()?, self.new_link(path.parent)?);
        let _locks = (lock_parent(path.parent)?, at.node.version.try_lock(at.seen).ok_or(Stop::Again)?);
        let halves = Halves::of(at.node, low.as_deref(), high.as_deref(), target)?;
        let separator = Separator::new(&self.memory().arena, &halves.separator)?;
        new.node().fill(halves.right.prefix_bytes, &halves.right.entries);
        new.node().next.store(at.node.next.load(Relaxed), Relaxed);
        let right = new.link();
        at.node.next.store(right, Relaxed);
        at.node.fill(halves.left.prefix_bytes, &halves.left.entries);
        self.link(link, at.node, 0, separator, right.cast());
        Ok(())
    }

    fn split_inner<E>(&self, at: At<'_, Inner>, path: &Path<'_>, level: usize) -> Result<(), Stop<E>> {
        let (new, link) = (self.memory().new_inner()?, self.new_link(path.parent)?);
        let _locks = (lock_parent(path.parent)?, at.node.version.try_lock(at.seen).ok_or(Stop::Again)?);
        let (separators, children) = at.node.contents();
        let middle = separators.len() / 2;
        new.node().fill(&separators[middle + 1..], &children[middle + 1..]);
        at.node.fill(&separators[..middle], &children[..=middle]);
        self.link(link, at.node, level, separators[middle], new.link().cast());
        Ok(())
    }

    fn new_link<'t>(&'t self, parent: Option<Step<'t>>) -> Result<Link<'t, D>, NoDram> {
        Ok(match parent {
            Some(step) => Link::Parent(step),
            None => Link::Root(self.memory().new_inner()?),
        })
    }

    /// Links `right`, the upper part of `left`, which is a node of `level`. The parent and the left node are
    /// locked.
    fn link<N>(&self, link: Link<'_, D>, left: &N, level: usize, separator: Separator, right: *mut u8) {
        match link {
            Link::Parent(step) => step.inner.node.insert(step.index, separator, right),
            Link::Root(root) => {
                root.node().fill(&[separator], &[ptr::from_ref(left).cast_mut().cast(), right]);
                self.root_word().set_root(Root::new(root.link().cast(), level + 1));
            }
        }
    }
}

/// The place for linking a new node: the parent from which the descent came, or a new root.
enum Link<'t, D: Dram> {
    Parent(Step<'t>),
    Root(Unlinked<'t, Inner, D>),
}

/// The two halves of a split leaf, and the separator between them.
struct Halves {
    left: Half,
    right: Half,
    separator: Vec<u8>,
}

struct Half {
    prefix_bytes: usize,
    entries: Vec<Entry>,
}

impl Halves {
    /// Splits a locked leaf between the fences `low` and `high`, to make space for the target.
    fn of<K: Keys>(
        leaf: &Leaf,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        target: &mut Target<'_, K>,
    ) -> Result<Halves, Stop<K::Error>> {
        let entries: Vec<Entry> = leaf.entries().collect();
        let prefix_bytes = leaf.prefix_bytes();
        let middle = match high {
            None if is_append(leaf, target)? => entries.len() - 1,
            _ => cheapest_middle(&entries),
        };
        let separator = separator_before(&entries, middle, prefix_bytes, target)?;
        let half = |entries: &[Entry]| Half { prefix_bytes, entries: entries.to_vec() };
        let (left, right) = (half(&entries[..middle]), half(&entries[middle..]));
        let left = left.with_longer_prefix(target.keys, low, Some(&separator));
        let right = right.with_longer_prefix(target.keys, Some(&separator), high);
        Ok(Halves { left, right, separator })
    }
}

impl Half {
    /// Returns the half with the longest prefix that its fences allow, if that is worthwhile and the keys can be
    /// read.
    fn with_longer_prefix<K: Keys>(self, keys: &K, low: Option<&[u8]>, high: Option<&[u8]>) -> Half {
        let allowed = low.zip(high).map_or(0, |(low, high)| common_bytes(low, high));
        let has_ties = || !self.entries.is_sorted_by(|one, next| one.head < next.head);
        if allowed <= self.prefix_bytes || allowed < self.prefix_bytes + PREFIX_GROWTH_BYTES && !has_ties() {
            return self;
        }
        let longer = |entry: &Entry| Ok(Entry { head: head_of(keys.key(entry.position)?, allowed), ..*entry });
        match self.entries.iter().map(longer).collect::<Result<_, K::Error>>() {
            Ok(entries) => Half { prefix_bytes: allowed, entries },
            Err(_) => self,
        }
    }
}

/// Locks the parent in the version that the descent noted.
pub(super) fn lock_parent<'t, E>(parent: Option<Step<'t>>) -> Result<Option<Lock<'t>>, Stop<E>> {
    let lock = |step: Step<'t>| step.inner.node.version.try_lock(step.inner.seen).ok_or(Stop::Again);
    parent.map(lock).transpose()
}

/// Returns true if the target follows all keys of the locked leaf. The split then leaves a full leaf behind, for
/// ascending inserts.
fn is_append<K: Keys>(leaf: &Leaf, target: &mut Target<'_, K>) -> Result<bool, Stop<K::Error>> {
    Ok(leaf.find(target, || Ok(()))?.index == leaf.count())
}

/// Returns the index for the split that gives a short separator: near the middle, where heads differ soonest.
fn cheapest_middle(entries: &[Entry]) -> usize {
    let middle = entries.len() / 2;
    let shared_bits = |index: usize| (entries[index - 1].head ^ entries[index].head).leading_zeros();
    (middle - OFF_MIDDLE_COUNT_MAX..=middle + OFF_MIDDLE_COUNT_MAX)
        .min_by_key(|&index| (shared_bits(index) / 8, index.abs_diff(middle)))
        .unwrap_or(middle)
}

/// Returns the shortest separator between the entries before `index` and the others. Keys are read only if heads
/// tie.
fn separator_before<K: Keys>(
    entries: &[Entry],
    index: usize,
    prefix_bytes: usize,
    target: &mut Target<'_, K>,
) -> Result<Vec<u8>, Stop<K::Error>> {
    let (below, above) = (entries[index - 1], entries[index]);
    if below.head == above.head {
        let (below, above) = (key_of(target.keys, below.position)?, key_of(target.keys, above.position)?);
        return Ok(shortest_between(below, above).to_vec());
    }
    let (below, above) = (below.head.to_be_bytes(), above.head.to_be_bytes());
    // The target belongs to the leaf, and so starts with its prefix.
    Ok([target.start(prefix_bytes)?, shortest_between(&below, &above)].concat())
}

const _: () = assert!(LEAF_COUNT_MAX / 2 > OFF_MIDDLE_COUNT_MAX && HEAD_BYTES > PREFIX_GROWTH_BYTES);
