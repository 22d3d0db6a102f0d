//! Merges: two neighbours with few pairs under one parent become one node. A background caller goes through the tree,
//! one parent after the other, level by level from the leaves up (`Tree::merge`).
//!
//! # Steps of a merge, the parent and both children locked exclusively
//! 1. The pairs of both children, without the deleted keys of leaves, are written to a new node; flush. The run: the
//!    parent's meta word, the word of the left child, the parent's pairs from the separator on. Order. *Crash:
//!    nothing refers to the new node.*
//! 2. The parent's word of the left child becomes the new node's, and the separator and the right child are removed;
//!    flush. Order.
//! 3. Number; commit. *Before: undone; after: done.*
//! 4. Both children are released; with leaves also the separator's chunk, and those of the deleted keys.
//!
//! In a full region the new node is the spare one (`space.rs`).
//!
//! The separator of two inner nodes moves down with its chunk, between the pairs of both.
//!
//! A root without a separator is removed: its child becomes the root with a change of the root's word under the tree
//! lock and the child's own lock.
//!
//! # Alongside walks
//! A walk over a level resumes behind a separator, and a sweep relies on separators moving only up. So merges begin
//! only once the free space is known, and run only while no walk does (`Walks`); a merge never waits for a
//! walk.

use core::sync::atomic::Ordering;

use heap::Place;
use pmem::{Dram, Level, Medium};
use undo_log::{Lane, Lanes};

use crate::Error;
use crate::canary;
use crate::layout::ROOT;
use crate::locks::{Mode, WaitPolicy};
use crate::node::{Meta, Node};
use crate::nodes::{Nodes, Reached, Target};
use crate::retire::Retire;
use crate::space::Space;
use crate::word;

/// The result of one attempt to merge neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merged {
    /// The tree has fewer nodes now; the same part may have more to merge.
    Fewer,
    /// There is nothing to merge in this part.
    Nothing {
        /// The number of pairs of the part's children, without those of deleted keys.
        pair_count: usize,
        /// True if the level has another part: from the key that was passed last.
        has_more: bool,
    },
    /// The tree has no such level.
    Beyond,
    /// The free space is not known yet, or a walk is running.
    NotNow,
}

/// Neighbours are merged if their pairs together fill at most this many quarters of a node. So a merged node has free
/// space, and the halves of a split are not merged again.
const MERGED_QUARTERS: usize = 3;

/// A thread that merges nodes, while no walk runs.
pub(crate) struct Merger<'t, M: Medium, D: Dram, R> {
    nodes: &'t Nodes<M, D>,
    space: &'t Space<D, R>,
    lanes: &'t Lanes,
    agent: usize,
}

impl<'t, M: Medium, D: Dram, R: Retire<M, D>> Merger<'t, M, D, R> {
    pub(crate) fn new(
        nodes: &'t Nodes<M, D>,
        space: &'t Space<D, R>,
        lanes: &'t Lanes,
        agent: usize,
    ) -> Merger<'t, M, D, R> {
        Merger { nodes, space, lanes, agent }
    }

    /// Merges two children of one node, as [`Tree::merge`](crate::Tree::merge) describes.
    pub(crate) fn merge(
        &self,
        level: u8,
        from: Option<&[u8]>,
        ends_at: &mut dyn FnMut(&[u8]),
    ) -> Result<Merged, Error> {
        let target = from.map_or(Target::First, Target::At);
        let mut has_more = false;
        let parent = self.nodes.descend(target, (level, Mode::Shared), WaitPolicy::Wait, |inner, child| {
            if child < inner.meta.count {
                ends_at(inner.node.key(child)?);
                has_more = true;
            }
            Ok(())
        })?;
        if parent.meta.level < level {
            return Ok(Merged::Beyond);
        }
        let is_bare = parent.meta.count == 0 && !has_more && from.is_none();
        let checked = self.find_pair(&parent)?;
        drop(parent);
        match checked {
            _ if is_bare && self.drop_root()? => Ok(Merged::Fewer),
            Ok(i) => {
                self.merge_child(target, level, i)?;
                Ok(Merged::Fewer)
            }
            Err(pair_count) => Ok(Merged::Nothing { pair_count, has_more }),
        }
    }

    /// Returns the first child to be merged with the next one, or the number of pairs if there is none.
    fn find_pair(&self, parent: &Reached<'_, M>) -> Result<Result<usize, usize>, Error> {
        let (mut left, mut pair_count) = (None, 0);
        for i in 0..=parent.meta.count {
            let child = self.child(parent, i, Mode::Shared)?;
            let count = child.kept_count();
            if left.is_some_and(|left| fit_together(self.nodes.order(), child.meta.level, left, count)) {
                return Ok(Ok(i - 1));
            }
            (left, pair_count) = (Some(count), pair_count + count);
        }
        self.nodes.medium().yield_to_scheduler();
        Ok(Err(pair_count))
    }

    fn child(&self, parent: &Reached<'_, M>, i: usize, mode: Mode) -> Result<Reached<'t, M>, Error> {
        self.nodes.reach(parent.node.child(i)?, parent.meta.level - 1, mode, WaitPolicy::Wait)
    }

    /// Merges child `i` with the next one, if both still exist and still fit.
    fn merge_child(&self, target: Target<'_>, level: u8, i: usize) -> Result<(), Error> {
        let mut lane = self.lanes.take(self.agent);
        let parent = self.nodes.descend(target, (level, Mode::Exclusive), WaitPolicy::Wait, |_, _| Ok(()))?;
        if parent.meta.level < level || i >= parent.meta.count {
            return Ok(());
        }
        let left = self.child(&parent, i, Mode::Exclusive)?;
        let right = self.child(&parent, i + 1, Mode::Exclusive)?;
        if fit_together(self.nodes.order(), left.meta.level, left.kept_count(), right.kept_count()) {
            self.merge_two(&mut lane, parent, i, [left, right])?;
        }
        Ok(())
    }

    fn merge_two(
        &self,
        lane: &mut Lane<'_>,
        parent: Reached<'_, M>,
        i: usize,
        children: [Reached<'_, M>; 2],
    ) -> Result<(), Error> {
        let medium = self.nodes.medium();
        let place = self.space.take_node(medium, self.agent)?;
        let new = self.nodes.node(place.offset);
        let new_lock = self.nodes.lock_of(new.at).inspect_err(|_| self.space.heap().cancel(place))?;
        let separator = parent.node.key_word(i);
        gather(new, separator, &children);
        self.nodes.forget_heads(&parent);
        children.iter().for_each(|child| self.nodes.forget_heads(child));
        if medium.breaks(canary::MERGED_FREED_EARLY) {
            self.let_go_merged(&parent, separator, &children)?;
        }
        let (node, Meta { level, count }) = (parent.node, parent.meta);
        let ranges = [node.meta_span(), node.child_at(i).span(8), node.pairs(i, count)];
        let logged = if medium.breaks(canary::MERGE_HALF_LOGGED) { 2 } else { ranges.len() };
        // SAFETY: the parent is locked exclusively.
        unsafe { lane.log(medium, &ranges[..logged]) };
        node.remove_pair(i, count);
        medium.store(node.child_at(i), word::pointer(place), Ordering::Release);
        node.set_meta(Meta { level, count: count - 1 });
        ranges.into_iter().for_each(|range| medium.flush(range));
        let ticket = lane.finish(medium);
        // Readers of the new node wait for this commit, and so for the changes of both children.
        new_lock.lock(Mode::Exclusive, WaitPolicy::Wait)?.committed(ticket);
        if !medium.breaks(canary::MERGED_FREED_EARLY) {
            self.let_go_merged(&parent, separator, &children)?;
        }
        drop(children);
        // If other threads have taken both nodes by now, the next split keeps a spare or is refused.
        let _ = self.space.keep_spare(medium, self.agent);
        Ok(())
    }

    fn let_go(&self, place: Place) {
        self.space.let_go(self.nodes.medium(), place);
    }

    /// Takes step 4. `separator` is the key word that `parent` had.
    fn let_go_merged(
        &self,
        parent: &Reached<'_, M>,
        separator: u64,
        children: &[Reached<'_, M>; 2],
    ) -> Result<(), Error> {
        let is_of_leaves = children[0].meta.level == 0;
        if is_of_leaves {
            self.let_go(word::key_place(parent.node.at, separator)?);
        }
        for child in children {
            let pairs = (0..child.meta.count).map(|i| child.node.pair(i));
            for (key, _) in pairs.filter(|&(_, value)| is_of_leaves && value == 0) {
                self.let_go(word::key_place(child.node.at, key)?);
            }
            self.let_go(self.nodes.place(child.node.at));
        }
        Ok(())
    }

    /// Makes the only child of a root without separators the root. Returns false if the root has separators.
    fn drop_root(&self) -> Result<bool, Error> {
        let (medium, mut lane) = (self.nodes.medium(), self.lanes.take(self.agent));
        let tree = self.nodes.lock_tree(Mode::Exclusive, WaitPolicy::Wait)?;
        let root = self.nodes.reach_root(Mode::Exclusive)?;
        if root.meta.level == 0 || root.meta.count > 0 {
            return Ok(false);
        }
        let (place, child) = (self.nodes.place(root.node.at), root.node.child(0)?);
        // Threads that hold the child's own lock are done before it becomes the root.
        let _heir = self.child(&root, 0, Mode::Exclusive)?;
        let is_early = medium.breaks(canary::MERGED_FREED_EARLY);
        if is_early {
            self.let_go(place);
        }
        lane.intend(medium, ROOT);
        medium.store(ROOT, word::pointer(child), Ordering::Release);
        medium.flush(ROOT.span(8));
        medium.commit(Level::default());
        drop(tree);
        if !is_early {
            self.let_go(place);
        }
        Ok(true)
    }
}

/// Returns true if neighbours of a level with this many pairs are merged.
fn fit_together(order: usize, level: u8, left: usize, right: usize) -> bool {
    let separator = usize::from(level > 0);
    left + separator + right <= order * MERGED_QUARTERS / 4
}

/// Writes the kept pairs of both children to a node that has no reference yet.
fn gather<M: Medium>(new: Node<'_, M>, separator: u64, [left, right]: &[Reached<'_, M>; 2]) {
    let first = |child: &Reached<'_, M>| new.medium.load(child.node.child_at(0), Ordering::Relaxed);
    let level = left.meta.level;
    let between = (level > 0).then(|| (separator, first(right)));
    let mut count = 0;
    for pair in left.kept().chain(between).chain(right.kept()) {
        new.set_pair(count, pair);
        count += 1;
    }
    new.medium.store(new.child_at(0), first(left), Ordering::Relaxed);
    new.set_meta(Meta { level, count });
    new.flush_new(count);
}
