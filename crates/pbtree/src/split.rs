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
use crate::descent::Reached;
use crate::key;
use crate::layout::{PAIR_BYTES, ROOT};
use crate::locks::{Held, Mode, NodeLock, Patience};
use crate::node::{Meta, Node, Target};
use crate::retire::Retire;
use crate::tree::Tree;
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

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Ensures that the leaf of `key` has space, unless other threads fill it again immediately.
    pub(crate) fn make_space(&self, lane: &mut Lane<'_>, agent: usize, key: &[u8]) -> Result<(), Error> {
        let tree = self.tree_lock.lock(Mode::Exclusive, Patience::Wait)?;
        let root = self.root()?;
        let level = self.checked(root)?.meta()?.level;
        let mut parent = self.reach(root, level, Mode::Exclusive, Patience::Wait)?;
        if parent.meta.count == self.order() {
            parent = self.split_root(lane, agent, parent)?;
        }
        drop(tree);
        while parent.meta.level > 0 {
            let i = parent.node.child_for(0..parent.meta.count, Target::At(key))?;
            let below = parent.meta.level - 1;
            let child = self.reach(parent.node.child(i)?, below, Mode::Exclusive, Patience::Wait)?;
            if child.meta.count < self.order() {
                parent = child;
            } else {
                self.split_child(lane, agent, &mut parent, i, child)?;
            }
        }
        Ok(())
    }

    /// Writes the right half of a full node to a new one.
    fn right_half(&self, agent: usize, full: &Reached<'_, M>) -> Result<Half<'_, D>, Error> {
        let Meta { level, count } = full.meta;
        let (old, keep) = (full.node, count / 2);
        let node = self.reserve_half(agent)?;
        let new = self.node(node.place().offset);
        let lock = self.locks.of(new.at)?;
        let (separator, first, from) = if level == 0 {
            (self.separate(agent, old, keep)?, 0, keep)
        } else {
            ((old.key_word(keep), None), old.value_word(keep), keep + 1)
        };
        self.medium.store(new.child_at(0), first, Ordering::Relaxed);
        (from..count).for_each(|i| new.set_pair(i - from, old.pair(i)));
        new.set_meta(Meta { level, count: count - from });
        self.flush_new(new, count - from);
        Ok(Half { node, lock, separator, meta: Meta { level, count: keep } })
    }

    pub(crate) fn flush_new(&self, node: Node<'_, M>, count: usize) {
        if !self.medium.breaks(canary::NODE_NOT_FLUSHED) {
            self.medium.flush(node.at.span(PAIR_BYTES * (1 + count as u64)));
        }
    }

    /// Writes the separator between a leaf's pair `keep` and the pairs before it.
    fn separate(
        &self,
        agent: usize,
        leaf: Node<'_, M>,
        keep: usize,
    ) -> Result<(u64, Option<Reservation<'_, D>>), Error> {
        if self.medium.breaks(canary::KEY_UNDER_SEPARATOR) {
            return Ok((leaf.key_word(keep), None));
        }
        let bytes = key::separator(leaf.key(keep - 1)?, leaf.key(keep)?);
        let chunk = key::write(&self.medium, &self.heap, agent, bytes)?;
        Ok((word::key_word(chunk.place(), key::checksum(bytes)), Some(chunk)))
    }

    fn split_child(
        &self,
        lane: &mut Lane<'_>,
        agent: usize,
        parent: &mut Reached<'_, M>,
        i: usize,
        child: Reached<'_, M>,
    ) -> Result<(), Error> {
        if parent.meta.count == self.order() {
            // The parent was already split, and the search led to another full child.
            return Err(Error::out_of_order(parent.node.at));
        }
        let half = self.right_half(agent, &child)?;
        self.forget_heads(parent);
        self.forget_heads(&child);
        let Meta { level, count } = parent.meta;
        let node = parent.node;
        let ranges = [child.node.meta_span(), node.meta_span(), node.pairs(i, count)];
        let logged = if self.medium.breaks(canary::PARENT_OUTSIDE_RUN) { 1 } else { ranges.len() };
        // SAFETY: both are locked exclusively.
        unsafe { lane.log(&self.medium, &ranges[..logged]) };
        parent.meta = Meta { level, count: count + 1 };
        node.insert_pair(i, count, (half.separator.0, word::pointer(half.node.place())));
        node.set_meta(parent.meta);
        child.node.set_meta(half.meta);
        self.medium.flush(node.pairs(i, count + 1));
        self.medium.flush(node.meta_span());
        self.medium.flush(child.node.meta_span());
        let ticket = lane.finish(&self.medium);
        half.stands(&child.held, ticket)
    }

    /// Splits the root under the tree lock, and returns the new root, locked.
    fn split_root<'t>(
        &'t self,
        lane: &mut Lane<'_>,
        agent: usize,
        old: Reached<'_, M>,
    ) -> Result<Reached<'t, M>, Error> {
        let half = self.right_half(agent, &old)?;
        let reserved = self.reserve_node(agent)?;
        self.forget_heads(&old);
        let level = old.meta.level + 1;
        let node = self.node(reserved.place().offset);
        self.locks.of(node.at)?;
        self.medium.store(node.child_at(0), self.medium.load(ROOT, Ordering::Relaxed), Ordering::Relaxed);
        node.set_pair(0, (half.separator.0, word::pointer(half.node.place())));
        node.set_meta(Meta { level, count: 1 });
        if !self.medium.breaks(canary::ROOT_BEFORE_NODE) {
            self.flush_new(node, 1);
        }
        // SAFETY: the old root and the tree are locked exclusively.
        unsafe { lane.log(&self.medium, &[ROOT.span(8), old.node.meta_span()]) };
        let root = reserved.publish();
        self.medium.store(ROOT, word::pointer(root), Ordering::Release);
        old.node.set_meta(half.meta);
        self.medium.flush(ROOT.span(8));
        self.medium.flush(old.node.meta_span());
        let ticket = lane.finish(&self.medium);
        half.stands(&old.held, ticket)?;
        self.reach(root, level, Mode::Exclusive, Patience::Wait)
    }
}

impl<D: Dram> Half<'_, D> {
    /// Keeps the reserved places, because the split is committed. Readers of either half wait for this commit, and so
    /// for all changes of the leaf before the split.
    fn stands(self, left: &Held<'_>, ticket: Ticket) -> Result<(), Error> {
        left.committed(ticket);
        self.node.publish();
        self.lock.lock(Mode::Exclusive, Patience::Wait)?.committed(ticket);
        if let Some(chunk) = self.separator.1 {
            chunk.publish();
        }
        Ok(())
    }
}
