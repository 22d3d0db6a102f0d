//! The descent from the root to a leaf.

use heap::{Place, PlaceKind};
use pmem::{Dram, LINE_BYTES, Medium};

use crate::Error;
use crate::canary;
use crate::layout::node_bytes;
use crate::locks::{Held, Mode, Patience};
use crate::node::{Meta, Node, Target};
use crate::retire::Retire;
use crate::tree::Tree;

/// A node that a descent reached, locked.
pub(crate) struct Reached<'a, M: Medium> {
    pub(crate) held: Held<'a>,
    pub(crate) node: Node<'a, M>,
    pub(crate) meta: Meta,
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Descends to `level` with lock coupling. The last node is locked in this mode, the nodes above it shared.
    /// `passed` is called with each inner node while it is locked, and with the number of the child that the descent
    /// continues to.
    #[inline]
    pub(crate) fn descend<'t>(
        &'t self,
        target: Target<'_>,
        (level, mode): (u8, Mode),
        patience: Patience,
        mut passed: impl FnMut(&Reached<'t, M>, usize) -> Result<(), Error>,
    ) -> Result<Reached<'t, M>, Error> {
        let mode_at = |at: u8| if at <= level { mode } else { Mode::Shared };
        let tree = self.tree_lock.lock(Mode::Shared, patience)?;
        let root = self.root()?;
        let root_level = self.checked(root)?.meta()?.level;
        let mut parent = self.reach(root, root_level, mode_at(root_level), patience)?;
        drop(tree);
        while parent.meta.level > level {
            let child = self.child_for(&parent, target)?;
            passed(&parent, child)?;
            let below = parent.meta.level - 1;
            parent = self.reach(parent.node.child(child)?, below, mode_at(below), patience)?;
        }
        Ok(parent)
    }

    /// Returns the number of the child of an inner node that the descent continues to.
    #[inline]
    fn child_for(&self, inner: &Reached<'_, M>, target: Target<'_>) -> Result<usize, Error> {
        let (node, count) = (inner.node, inner.meta.count);
        let unclear = match target {
            Target::At(key) | Target::Before(key) => {
                let heads = self.locks.heads(inner.held.lock(), count, |i| node.key(i));
                heads.map_or(0..count, |heads| heads.unclear(key))
            }
            Target::First | Target::Last => 0..count,
        };
        node.child_for(unclear, target)
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
        patience: Patience,
    ) -> Result<Reached<'_, M>, Error> {
        let node = self.checked(place)?;
        if level == 0 {
            node.prefetch();
        }
        let held = self.locks.of(node.at)?.lock(mode, patience)?;
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
            && place.offset.span(node_bytes(self.order())).lies_within(self.medium.len_bytes());
        if lies_there {
            Ok(self.node(place.offset))
        } else {
            Err(Error::damaged(place.offset, "a node is outside the region or not aligned"))
        }
    }
}
