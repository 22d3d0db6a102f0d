//! Splits: a writer that found the leaf full descends from the root once more with exclusive locks, and splits every
//! full node on its way. So a parent always has space for its child's separator.
//!
//! # Steps of a split, the parent and the child locked exclusively
//! 1. The right half is written to a new node, and a leaf's separator to a chunk; flush. The run: the parent's meta
//!    word and its pairs behind the child, the child's meta word. Order. *Crash: nothing refers to the new node.*
//! 2. The parent gets the separator and the new child; the child's count decreases; flush. Order.
//! 3. Number; commit. *Before: undone; after: done.*
//!
//! An inner node's middle separator moves up with its chunk. A full root gets a new root above it, with both halves
//! as children; the root's word is in the run, and the tree lock is held exclusively until the commit.

use core::sync::atomic::Ordering;

use heap::Reservation;
use pmem::{Dram, Medium, Ticket};
use undo_log::Lane;

use crate::Error;
use crate::canary;
use crate::key;
use crate::layout::ROOT;
use crate::locks::{Held, Mode, NodeLock, WaitPolicy};
use crate::node::{Meta, Node};
use crate::nodes::{Nodes, Reached};
use crate::space::Space;
use crate::word;

/// A right half to which nothing refers yet.
struct Half<'t, D: Dram> {
    node: Reservation<'t, D>,
    /// The lock of the new node, which no other thread can reach.
    lock: &'t NodeLock,
    /// The key word of the separator between both halves, and its chunk if it is new.
    separator: (u64, Option<Reservation<'t, D>>),
    /// The meta word of the left half.
    meta: Meta,
}

/// A descent that splits the full nodes on its way.
struct Splitter<'s, 't, M: Medium, D: Dram, R> {
    nodes: &'t Nodes<M, D>,
    space: &'t Space<D, R>,
    lane: &'s mut Lane<'t>,
    agent: usize,
}

/// Ensures that the leaf of `key` has space, unless other threads fill it again immediately.
pub(crate) fn make_space<'t, M: Medium, D: Dram, R>(
    nodes: &'t Nodes<M, D>,
    space: &'t Space<D, R>,
    lane: &mut Lane<'t>,
    agent: usize,
    key: &[u8],
) -> Result<(), Error> {
    Splitter { nodes, space, lane, agent }.descend(key)
}

impl<'t, M: Medium, D: Dram, R> Splitter<'_, 't, M, D, R> {
    fn descend(&mut self, key: &[u8]) -> Result<(), Error> {
        let (nodes, order) = (self.nodes, self.nodes.order());
        let tree = nodes.lock_tree(Mode::Exclusive, WaitPolicy::Wait)?;
        let mut parent = nodes.reach_root(Mode::Exclusive)?;
        if parent.meta.count == order {
            parent = self.split_root(parent)?;
        }
        parent.held = parent.held.with_tree(tree);
        while parent.meta.level > 0 {
            let i = parent.node.partition(0..parent.meta.count, |separator| separator <= key)?;
            let below = parent.meta.level - 1;
            let child = nodes.reach(parent.node.child(i)?, below, Mode::Exclusive, WaitPolicy::Wait)?;
            if child.meta.count < order {
                parent = child;
            } else {
                self.split_child(&mut parent, i, child)?;
            }
        }
        Ok(())
    }

    fn medium(&self) -> &'t M {
        self.nodes.medium()
    }

    /// Writes the right half of a full node to a new one.
    fn right_half(&self, full: &Reached<'_, M>) -> Result<Half<'t, D>, Error> {
        let Meta { level, count } = full.meta;
        let (old, keep) = (full.node, count / 2);
        let node = self.space.reserve_half(self.medium(), self.agent)?;
        let new = self.nodes.node(node.place().offset);
        let lock = self.nodes.lock_of(new.at)?;
        let (separator, first, from) = if level == 0 {
            (self.separate(old, keep)?, 0, keep)
        } else {
            ((old.key_word(keep), None), old.value_word(keep), keep + 1)
        };
        self.medium().store(new.child_at(0), first, Ordering::Relaxed);
        (from..count).for_each(|i| new.set_pair(i - from, old.pair(i)));
        new.set_meta(Meta { level, count: count - from });
        new.flush_new(count - from);
        Ok(Half { node, lock, separator, meta: Meta { level, count: keep } })
    }

    /// Writes the separator between a leaf's pair `keep` and the pairs before it.
    fn separate(&self, leaf: Node<'_, M>, keep: usize) -> Result<(u64, Option<Reservation<'t, D>>), Error> {
        if self.medium().breaks(canary::KEY_UNDER_SEPARATOR) {
            return Ok((leaf.key_word(keep), None));
        }
        let bytes = key::separator(leaf.key(keep - 1)?, leaf.key(keep)?);
        let chunk = key::write(self.medium(), self.space.heap(), self.agent, bytes)?;
        Ok((word::key_word(chunk.place(), key::checksum(bytes)), Some(chunk)))
    }

    fn split_child(&mut self, parent: &mut Reached<'_, M>, i: usize, child: Reached<'_, M>) -> Result<(), Error> {
        if parent.meta.count == self.nodes.order() {
            // The parent was already split, and the search led to another full child.
            return Err(Error::out_of_order(parent.node.at));
        }
        let (half, medium) = (self.right_half(&child)?, self.medium());
        self.nodes.forget_heads(parent);
        self.nodes.forget_heads(&child);
        let Meta { level, count } = parent.meta;
        let node = parent.node;
        let ranges = [child.node.meta_span(), node.meta_span(), node.pairs(i, count)];
        let logged = if medium.breaks(canary::PARENT_OUTSIDE_RUN) { 1 } else { ranges.len() };
        // SAFETY: both are locked exclusively.
        unsafe { self.lane.log(medium, &ranges[..logged]) };
        parent.meta = Meta { level, count: count + 1 };
        node.insert_pair(i, count, (half.separator.0, word::pointer(half.node.place())));
        node.set_meta(parent.meta);
        child.node.set_meta(half.meta);
        medium.flush(node.pairs(i, count + 1));
        medium.flush(node.meta_span());
        medium.flush(child.node.meta_span());
        let ticket = self.lane.finish(medium);
        half.stands(&child.held, ticket)
    }

    /// Splits the root under the tree lock, and returns the new root, locked.
    fn split_root(&mut self, old: Reached<'_, M>) -> Result<Reached<'t, M>, Error> {
        let medium = self.medium();
        let half = self.right_half(&old)?;
        let reserved = self.space.reserve_node(medium, self.agent)?;
        self.nodes.forget_heads(&old);
        let level = old.meta.level + 1;
        let node = self.nodes.node(reserved.place().offset);
        self.nodes.lock_of(node.at)?;
        medium.store(node.child_at(0), medium.load(ROOT, Ordering::Relaxed), Ordering::Relaxed);
        node.set_pair(0, (half.separator.0, word::pointer(half.node.place())));
        node.set_meta(Meta { level, count: 1 });
        if !medium.breaks(canary::ROOT_BEFORE_NODE) {
            node.flush_new(1);
        }
        // SAFETY: the old root and the tree are locked exclusively.
        unsafe { self.lane.log(medium, &[ROOT.span(8), old.node.meta_span()]) };
        let root = reserved.publish();
        medium.store(ROOT, word::pointer(root), Ordering::Release);
        old.node.set_meta(half.meta);
        medium.flush(ROOT.span(8));
        medium.flush(old.node.meta_span());
        let ticket = self.lane.finish(medium);
        half.stands(&old.held, ticket)?;
        self.nodes.reach(root, level, Mode::Exclusive, WaitPolicy::Wait)
    }
}

impl<D: Dram> Half<'_, D> {
    /// Keeps the reserved places, because the split is committed. Readers of either half wait for this commit, and so
    /// for all changes of the leaf before the split.
    fn stands(self, left: &Held<'_>, ticket: Ticket) -> Result<(), Error> {
        left.committed(ticket);
        self.node.publish();
        self.lock.lock(Mode::Exclusive, WaitPolicy::Wait)?.committed(ticket);
        if let Some(chunk) = self.separator.1 {
            chunk.publish();
        }
        Ok(())
    }
}
