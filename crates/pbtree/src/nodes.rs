//! The nodes of a region, reached under their locks, and the descent from the root to a leaf.

use core::iter;
use core::sync::atomic::Ordering;

use heap::{Class, HeapError, Place, PlaceKind};
use pmem::{Dram, LINE_BYTES, Medium, Offset};

use crate::Error;
use crate::canary;
use crate::layout::{ROOT, node_bytes};
use crate::locks::{Held, HeldTree, LockTable, Mode, NodeLock, TreeLock, WaitPolicy};
use crate::node::{Meta, Node};
use crate::word;

/// The target of a descent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// The position of the least key.
    First,
    /// The position of the greatest key.
    Last,
    /// The position of this key.
    At(&'a [u8]),
    /// The position of the greatest key below this one.
    Before(&'a [u8]),
}

/// A node that a descent reached, locked.
pub(crate) struct Reached<'a, M: Medium> {
    pub(crate) held: Held<'a>,
    pub(crate) node: Node<'a, M>,
    pub(crate) meta: Meta,
}

impl<'a, M: Medium> Reached<'a, M> {
    /// Iterates over the pairs of a node, without those of keys deleted from a leaf.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (u64, u64)> + use<'a, M> {
        let (words, is_leaf) = (self.node, self.meta.level == 0);
        (0..self.meta.count).map(move |i| words.pair(i)).filter(move |pair| !is_leaf || pair.1 != 0)
    }

    /// Returns the number of these pairs.
    pub(crate) fn kept_count(&self) -> usize {
        let Meta { level, count } = self.meta;
        if level == 0 { count - self.node.dead_count(count) } else { count }
    }
}

/// The region's nodes with their locks.
pub(crate) struct Nodes<M: Medium, D: Dram> {
    medium: M,
    order: usize,
    class: Class,
    locks: LockTable<D>,
    /// The root's parent: see `locks`.
    tree_lock: TreeLock<D>,
}

impl<M: Medium, D: Dram + Clone> Nodes<M, D> {
    /// Creates the locks for nodes of this order and class.
    pub(crate) fn new(medium: M, order: usize, class: Class, dram: D) -> Result<Nodes<M, D>, HeapError> {
        let locks = LockTable::new(dram.clone(), node_bytes(order))?;
        Ok(Nodes { medium, order, class, locks, tree_lock: TreeLock::new(dram)? })
    }
}

impl<M: Medium, D: Dram> Nodes<M, D> {
    #[inline(always)]
    pub(crate) fn medium(&self) -> &M {
        &self.medium
    }

    /// Returns the number of pairs that a node can have.
    #[inline(always)]
    pub(crate) fn order(&self) -> usize {
        self.order
    }

    /// Returns the bytes of DRAM that the locks have allocated.
    pub(crate) fn dram_bytes(&self) -> u64 {
        self.locks.allocated_bytes()
    }

    pub(crate) fn node(&self, at: Offset) -> Node<'_, M> {
        Node::new(&self.medium, at, self.order)
    }

    /// Returns the place of the node at this offset.
    pub(crate) fn place(&self, at: Offset) -> Place {
        Place { offset: at, kind: PlaceKind::Slot(self.class) }
    }

    /// Returns the lock of the node at this offset.
    pub(crate) fn lock_of(&self, at: Offset) -> Result<&NodeLock, Error> {
        self.locks.of(at)
    }

    /// Locks the root's word.
    #[inline]
    pub(crate) fn lock_tree(&self, mode: Mode, wait_policy: WaitPolicy) -> Result<HeldTree<'_>, Error> {
        self.tree_lock.lock(mode, wait_policy)
    }

    /// Returns the root's place. The caller holds the tree lock.
    pub(crate) fn root(&self) -> Result<Place, Error> {
        word::place(ROOT, self.medium.load(ROOT, Ordering::Acquire))
    }

    /// Locks the root by its own lock. The caller holds the tree lock exclusively, or no thread writes.
    pub(crate) fn reach_root(&self, mode: Mode) -> Result<Reached<'_, M>, Error> {
        let root = self.root()?;
        let level = self.checked(root)?.meta()?.level;
        self.reach(root, level, mode, WaitPolicy::Wait)
    }

    /// Locks the root for a descent, in the mode that `mode_at` returns for its level. An inner root is held with the
    /// tree lock: see `locks`.
    #[inline]
    fn enter(&self, mode_at: impl Fn(u8) -> Mode, wait_policy: WaitPolicy) -> Result<Reached<'_, M>, Error> {
        let mut tree = self.lock_tree(Mode::Shared, wait_policy)?;
        loop {
            let root = self.root()?;
            let node = self.checked(root)?;
            let meta = node.meta()?;
            match (meta.level, mode_at(meta.level)) {
                (0, mode) => return self.reach(root, 0, mode, wait_policy),
                (_, Mode::Shared) => {
                    return Ok(Reached { held: self.locks.of(node.at)?.of_root(tree), node, meta });
                }
                (level, mode) if tree.is_exclusive() => {
                    let Reached { held, node, meta } = self.reach(root, level, mode, wait_policy)?;
                    return Ok(Reached { held: held.with_tree(tree), node, meta });
                }
                _ => {
                    drop(tree);
                    tree = self.lock_tree(Mode::Exclusive, wait_policy)?;
                }
            }
        }
    }

    /// Descends to `level` with lock coupling. The last node is locked in this mode, the nodes above it shared.
    /// `passed` is called with each inner node while it is locked, and with the number of the child that the descent
    /// continues to.
    #[inline]
    pub(crate) fn descend<'t>(
        &'t self,
        target: Target<'_>,
        (level, mode): (u8, Mode),
        wait_policy: WaitPolicy,
        mut passed: impl FnMut(&Reached<'t, M>, usize) -> Result<(), Error>,
    ) -> Result<Reached<'t, M>, Error> {
        let mode_at = |at: u8| if at <= level { mode } else { Mode::Shared };
        let mut parent = self.enter(mode_at, wait_policy)?;
        while parent.meta.level > level {
            let child = self.child_for(&parent, target)?;
            passed(&parent, child)?;
            let below = parent.meta.level - 1;
            parent = self.reach(parent.node.child(child)?, below, mode_at(below), wait_policy)?;
        }
        Ok(parent)
    }

    /// Descends to the leaf of a key, and waits for locks.
    #[inline]
    pub(crate) fn leaf_of(&self, key: &[u8], mode: Mode) -> Result<Reached<'_, M>, Error> {
        self.descend(Target::At(key), (0, mode), WaitPolicy::Wait, |_, _| Ok(()))
    }

    /// Returns the number of the child of an inner node that the descent continues to. Separators that the heads
    /// distinguish from the key are not compared.
    #[inline]
    fn child_for(&self, inner: &Reached<'_, M>, target: Target<'_>) -> Result<usize, Error> {
        let (node, count) = (inner.node, inner.meta.count);
        let unclear = |key: &[u8]| {
            let heads = self.locks.heads(inner.held.lock(), count, |i| node.key(i));
            heads.map_or(0..count, |heads| heads.unclear(key))
        };
        match target {
            Target::First => Ok(0),
            Target::Last => Ok(count),
            Target::At(key) => node.partition(unclear(key), |separator| separator <= key),
            Target::Before(key) => node.partition(unclear(key), |separator| separator < key),
        }
    }

    /// Removes the heads of an inner node's separators before the node changes or is freed. The caller has locked it
    /// exclusively.
    pub(crate) fn forget_heads(&self, node: &Reached<'_, M>) {
        if !self.medium.breaks(canary::HEADS_KEPT) {
            self.locks.forget_heads(node.held.lock());
        }
    }

    /// Locks a node of a known level, which never changes while the node's parent is locked.
    #[inline]
    pub(crate) fn reach(
        &self,
        place: Place,
        level: u8,
        mode: Mode,
        wait_policy: WaitPolicy,
    ) -> Result<Reached<'_, M>, Error> {
        let node = self.checked(place)?;
        if level == 0 {
            node.prefetch();
        }
        let held = self.locks.of(node.at)?.lock(mode, wait_policy)?;
        let meta = node.meta()?;
        if meta.level != level {
            return Err(Error::damaged(node.at, "a node is at the wrong level"));
        }
        Ok(Reached { held, node, meta })
    }

    /// Returns the node at a place in a word. One in 256 damaged words has a check that fits, so the place is
    /// checked.
    pub(crate) fn checked(&self, place: Place) -> Result<Node<'_, M>, Error> {
        match place.kind {
            PlaceKind::Slot(class) if class == self.class => {}
            _ => return Err(Error::damaged(place.offset, "a node has the wrong size")),
        }
        let lies_there = place.offset.0.is_multiple_of(LINE_BYTES)
            && place.offset.span(node_bytes(self.order)).lies_within(self.medium.len_bytes());
        if lies_there {
            Ok(self.node(place.offset))
        } else {
            Err(Error::damaged(place.offset, "a node is outside the region or not aligned"))
        }
    }

    /// Iterates over every place that a node occupies or refers to, except its children, with an error for each place
    /// that damage hides.
    pub(crate) fn places(
        &self,
        &Reached { node, meta, .. }: &Reached<'_, M>,
    ) -> impl Iterator<Item = Result<Place, Error>> {
        let of_pair = move |i| {
            let (key, value) = node.pair(i);
            let has_value = meta.level == 0 && value != 0;
            [Some(word::key_place(node.at, key)), has_value.then(|| word::place(node.value_at(i), value))]
        };
        iter::once(Ok(self.place(node.at))).chain((0..meta.count).flat_map(of_pair).flatten())
    }
}
