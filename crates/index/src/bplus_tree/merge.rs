//! Frees nodes: sparse nodes are merged with a neighbour, one pair at a time, from the root down.
//!
//! A merge may be skipped. If another thread's locks are in the way, a later removal merges the nodes.
//!
//! # Lock order
//! Parent, left node, right node. Each is locked only if unchanged since the search read that node; otherwise
//! nothing is done. The right node becomes obsolete.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use pmem::Dram;

use super::Keys;
use super::descent::{At, Path, Root, Step};
use super::inner::Seek;
use super::layout::{HEAD_BYTES, Inner, LEAF_COUNT_MAX, LEAF_COUNT_SPARSE, Leaf, SEPARATOR_COUNT_MAX};
use super::leaf::Entry;
use super::nodes::Nodes;
use super::split::lock_parent;
use super::target::{Stop, head_of};
use super::version::{Lock, Version};

/// A merged leaf has space for some inserts before it is split again.
const LEAF_COUNT_MERGED_MAX: usize = LEAF_COUNT_MAX * 3 / 4;
const SEPARATOR_COUNT_SPARSE: usize = SEPARATOR_COUNT_MAX / 4;
const SEPARATOR_COUNT_MERGED_MAX: usize = SEPARATOR_COUNT_MAX * 3 / 4;

/// Two neighbours under one parent.
pub(super) struct Pair<'t, N> {
    /// The parent, and the separator between the two.
    between: Step<'t>,
    left: &'t N,
    right: &'t N,
}

impl<D: Dram> Nodes<D> {
    /// Merges the sparse nodes on the way to the target with neighbours, as far as no other thread holds their
    /// locks.
    pub(super) fn merge_around<K: Keys>(&self, seek: &mut Seek<'_, K>) {
        loop {
            let mut merged = false;
            let descent = self.root_word().descend(seek, |inner, path, level| {
                merged = self.merge_inner(inner, path, level);
                if merged { Err(Stop::Again) } else { Ok(()) }
            });
            if let Ok((leaf, path)) = descent {
                merged = self.merge_leaf(leaf, &path);
            }
            if !merged {
                return;
            }
        }
    }

    fn merge_leaf(&self, at: At<'_, Leaf>, path: &Path<'_>) -> bool {
        if at.node.count() > LEAF_COUNT_SPARSE {
            return false;
        }
        let pair = pair(at.node, path, |node| self.root_word().leaf(node));
        let Some((pair, locks)) = pair.and_then(|pair| pair.lock(|leaf| &leaf.version, leaves_fit)) else {
            return false;
        };
        let (left, right) = (pair.left, pair.right);
        let separator = pair.between.inner.node.own_separator(pair.between.index);
        let prefix_bytes = left.prefix_bytes().min(right.prefix_bytes());
        let entries = separator.with(|separator| {
            let shorter = |leaf: &Leaf| shorter_prefix(leaf, separator, prefix_bytes);
            [shorter(left), shorter(right)].concat()
        });
        left.fill(prefix_bytes, &entries);
        left.next.store(right.next.load(Relaxed), Relaxed);
        self.unlink(&pair, locks, 0);
        self.memory().retire_separator(separator);
        true
    }

    fn merge_inner(&self, at: At<'_, Inner>, path: &Path<'_>, level: usize) -> bool {
        if at.node.count() > SEPARATOR_COUNT_SPARSE {
            return false;
        }
        let pair = pair(at.node, path, |node| self.root_word().inner(node));
        let Some((pair, locks)) = pair.and_then(|pair| pair.lock(|inner| &inner.version, inners_fit)) else {
            return false;
        };
        let (lower, upper) = (pair.left.contents(), pair.right.contents());
        let between = pair.between.inner.node.own_separator(pair.between.index);
        pair.left.fill(&[lower.0, vec![between], upper.0].concat(), &[lower.1, upper.1].concat());
        self.unlink(&pair, locks, level);
        true
    }

    /// Removes the right node, which is of `level`, from the tree; its contents are in the left one. If the root
    /// has one child left, that child becomes the root.
    fn unlink<N>(&self, pair: &Pair<'_, N>, locks: PairLocks<'_>, level: usize) {
        let parent = pair.between.inner.node;
        parent.remove(pair.between.index);
        let is_root = self.root_word().root() == Root::new(ptr::from_ref(parent).cast_mut().cast(), level + 1);
        let is_obsolete = is_root && parent.count() == 0;
        if is_obsolete {
            self.root_word().set_root(Root::new(ptr::from_ref(pair.left).cast_mut().cast(), level));
        }
        locks.release(is_obsolete);
        self.memory().retire(pair.right);
        if is_obsolete {
            self.memory().retire(parent);
        }
    }
}

/// Returns a node of a descent with its right neighbour, or with the left one if there is no right one. Returns
/// `None` if the parent has changed, because the child pointers may then be unsafe to follow.
pub(super) fn pair<'t, N>(node: &'t N, path: &Path<'t>, cast: impl Fn(*mut u8) -> &'t N) -> Option<Pair<'t, N>> {
    let step = path.parent?;
    let parent = step.inner.node;
    let index = if step.index < parent.count() { step.index } else { step.index.checked_sub(1)? };
    let other = parent.child(if index == step.index { index + 1 } else { index });
    if !parent.version.is(step.inner.seen) {
        return None;
    }
    let (left, right) = if index == step.index { (node, cast(other)) } else { (cast(other), node) };
    Some(Pair { between: Step { index, ..step }, left, right })
}

impl<'t, N> Pair<'t, N> {
    /// Locks the parent in the noted version, and the two neighbours in their present one, if they fit together.
    fn lock(
        self,
        version: impl Fn(&'t N) -> &'t Version,
        fit: impl Fn(&N, &N) -> bool,
    ) -> Option<(Pair<'t, N>, PairLocks<'t>)> {
        if !fit(self.left, self.right) {
            return None;
        }
        let parent = lock_parent::<()>(Some(self.between)).ok()??;
        // The parent's lock prevents that either is unlinked, and so that their ranges change.
        let lock = |node| {
            let version = version(node);
            version.try_lock(version.try_read()?)
        };
        let locks = PairLocks { parent, left: lock(self.left)?, right: lock(self.right)? };
        fit(self.left, self.right).then_some((self, locks))
    }
}

/// The right to change two neighbours and their parent.
struct PairLocks<'t> {
    parent: Lock<'t>,
    left: Lock<'t>,
    right: Lock<'t>,
}

impl PairLocks<'_> {
    fn release(self, parent_is_obsolete: bool) {
        drop(self.left);
        if parent_is_obsolete {
            self.parent.release_obsolete();
        } else {
            drop(self.parent);
        }
        self.right.release_obsolete();
    }
}

fn leaves_fit(left: &Leaf, right: &Leaf) -> bool {
    let (left, right) = (left.count(), right.count());
    left + right <= LEAF_COUNT_MERGED_MAX || left.min(right) == 0
}

fn inners_fit(left: &Inner, right: &Inner) -> bool {
    left.count() + 1 + right.count() <= SEPARATOR_COUNT_MERGED_MAX
}

/// Returns a locked leaf's entries for a shorter prefix. Its keys start like `separator`, which is one of its
/// fences.
fn shorter_prefix(leaf: &Leaf, separator: &[u8], prefix_bytes: usize) -> Vec<Entry> {
    let longer = leaf.prefix_bytes();
    let head = |head: u64| {
        let key_part = [&separator[prefix_bytes..longer], &head.to_be_bytes()].concat();
        head_of(&key_part[..HEAD_BYTES], 0)
    };
    leaf.entries().map(|entry| Entry { head: head(entry.head), ..entry }).collect()
}
