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
//! In a full region the new node is the spare one (`spare.rs`).
//!
//! The separator of two inner nodes moves down with its chunk, between the pairs of both.
//!
//! A root without a separator is removed: its child becomes the root with a change of the root's word under the tree
//! lock.
//!
//! # Alongside walks
//! A walk over a level resumes behind a separator, and a sweep relies on separators moving only up. So merges begin
//! only once the free space is known, and run only while no walk does (`Tree::walks`); a merge never waits for a
//! walk.

use core::sync::atomic::Ordering;

use heap::{Place, PlaceKind};
use pmem::{Dram, Level, Medium};
use undo_log::Lane;

use crate::Error;
use crate::canary;
use crate::descent::Reached;
use crate::layout::ROOT;
use crate::locks::{Mode, Patience};
use crate::node::{Meta, Node, Target};
use crate::retire::Retire;
use crate::tree::Tree;
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

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Merges two children of one node of `level` (1 and above): of the node that covers the key `from`, or of the
    /// first one. `ends_at` is called with the start of the next part; its last call counts.
    ///
    /// # Errors
    /// [`Error::Heap`] if there is no space for a node, or the medium fails; [`Error::Damaged`].
    pub fn merge(
        &self,
        agent: usize,
        level: u8,
        from: Option<&[u8]>,
        ends_at: &mut dyn FnMut(&[u8]),
    ) -> Result<Merged, Error> {
        let alone = self.heap.is_swept().then(|| self.walks.lock(Mode::Exclusive, Patience::Try));
        let Some(Ok(_alone)) = alone else { return Ok(Merged::NotNow) };
        let target = from.map_or(Target::First, Target::At);
        let mut has_more = false;
        let parent = self.descend(target, (level, Mode::Shared), Patience::Wait, |inner, child| {
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
            _ if is_bare && self.drop_root(agent)? => Ok(Merged::Fewer),
            Ok(i) => {
                self.merge_child(agent, target, level, i)?;
                Ok(Merged::Fewer)
            }
            Err(pair_count) => Ok(Merged::Nothing { pair_count, has_more }),
        }
    }

    /// Returns the approximate number of keys deleted since the last call, plus the pairs that a sweep found missing
    /// in sparse nodes, and resets it.
    pub fn take_vacated(&self) -> u64 {
        self.vacated.swap(0, Ordering::Relaxed)
    }

    /// Returns the same number without resetting it.
    #[inline]
    pub fn vacated_count(&self) -> u64 {
        self.vacated.load(Ordering::Relaxed)
    }

    pub(crate) fn count_vacated(&self, count: u64) {
        self.vacated.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns how many pairs a leaf lacks to be three eighths full; a split never leaves a leaf with fewer.
    pub(crate) fn lack_of(&self, leaf: &Reached<'_, M>) -> u64 {
        (self.order() * 3 / 8).saturating_sub(kept_count(leaf)) as u64
    }

    /// Returns the first child to be merged with the next one, or the number of pairs if there is none.
    fn find_pair(&self, parent: &Reached<'_, M>) -> Result<Result<usize, usize>, Error> {
        let (mut left, mut pair_count) = (None, 0);
        for i in 0..=parent.meta.count {
            let child = self.child(parent, i, Mode::Shared)?;
            let count = kept_count(&child);
            if left.is_some_and(|left| self.fit_together(child.meta.level, left, count)) {
                return Ok(Ok(i - 1));
            }
            (left, pair_count) = (Some(count), pair_count + count);
        }
        self.medium.breathe();
        Ok(Err(pair_count))
    }

    fn child(&self, parent: &Reached<'_, M>, i: usize, mode: Mode) -> Result<Reached<'_, M>, Error> {
        self.reach(parent.node.child(i)?, parent.meta.level - 1, mode, Patience::Wait)
    }

    fn fit_together(&self, level: u8, left: usize, right: usize) -> bool {
        let separator = usize::from(level > 0);
        left + separator + right <= self.order() * MERGED_QUARTERS / 4
    }

    /// Merges child `i` with the next one, if both still exist and still fit.
    fn merge_child(&self, agent: usize, target: Target<'_>, level: u8, i: usize) -> Result<(), Error> {
        let mut lane = self.lanes.take(agent);
        let parent = self.descend(target, (level, Mode::Exclusive), Patience::Wait, |_, _| Ok(()))?;
        if parent.meta.level < level || i >= parent.meta.count {
            return Ok(());
        }
        let left = self.child(&parent, i, Mode::Exclusive)?;
        let right = self.child(&parent, i + 1, Mode::Exclusive)?;
        if self.fit_together(left.meta.level, kept_count(&left), kept_count(&right)) {
            self.merge_two(&mut lane, agent, parent, i, [left, right])?;
        }
        Ok(())
    }

    fn merge_two(
        &self,
        lane: &mut Lane<'_>,
        agent: usize,
        parent: Reached<'_, M>,
        i: usize,
        children: [Reached<'_, M>; 2],
    ) -> Result<(), Error> {
        let place = self.take_node(agent)?;
        let new = self.node(place.offset);
        let new_lock = self.locks.of(new.at).inspect_err(|_| self.heap.cancel(place))?;
        let separator = parent.node.key_word(i);
        self.gather(new, separator, &children);
        self.forget_heads(&parent);
        children.iter().for_each(|child| self.forget_heads(child));
        if self.medium.breaks(canary::MERGED_FREED_EARLY) {
            self.let_go_merged(&parent, separator, &children)?;
        }
        let (node, Meta { level, count }) = (parent.node, parent.meta);
        let ranges = [node.meta_span(), node.child_at(i).span(8), node.pairs(i, count)];
        let logged = if self.medium.breaks(canary::MERGE_HALF_LOGGED) { 2 } else { ranges.len() };
        // SAFETY: the parent is locked exclusively.
        unsafe { lane.log(&self.medium, &ranges[..logged]) };
        node.remove_pair(i, count);
        self.medium.store(node.child_at(i), word::pointer(place), Ordering::Release);
        node.set_meta(Meta { level, count: count - 1 });
        ranges.into_iter().for_each(|range| self.medium.flush(range));
        let ticket = lane.finish(&self.medium);
        // Readers of the new node wait for this commit, and so for the changes of both children.
        new_lock.lock(Mode::Exclusive, Patience::Wait)?.committed(ticket);
        if !self.medium.breaks(canary::MERGED_FREED_EARLY) {
            self.let_go_merged(&parent, separator, &children)?;
        }
        drop(children);
        if self.spare_bytes() == 0 {
            // If other threads have taken both nodes by now, the next split keeps a spare or is refused.
            let _ = self.keep_spare(agent);
        }
        Ok(())
    }

    /// Writes the kept pairs of both children to a node that has no reference yet.
    fn gather(&self, new: Node<'_, M>, separator: u64, [left, right]: &[Reached<'_, M>; 2]) {
        let first = |child: &Reached<'_, M>| self.medium.load(child.node.child_at(0), Ordering::Relaxed);
        let level = left.meta.level;
        let between = (level > 0).then(|| (separator, first(right)));
        let mut count = 0;
        for pair in kept(left).chain(between).chain(kept(right)) {
            new.set_pair(count, pair);
            count += 1;
        }
        self.medium.store(new.child_at(0), first(left), Ordering::Relaxed);
        new.set_meta(Meta { level, count });
        self.flush_new(new, count);
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
            self.let_go(Place { offset: child.node.at, kind: PlaceKind::Slot(self.class) });
        }
        Ok(())
    }

    /// Makes the only child of a root without separators the root. Returns false if the root has separators.
    fn drop_root(&self, agent: usize) -> Result<bool, Error> {
        let mut lane = self.lanes.take(agent);
        let tree = self.tree_lock.lock(Mode::Exclusive, Patience::Wait)?;
        let place = self.root()?;
        let level = self.checked(place)?.meta()?.level;
        let root = self.reach(place, level, Mode::Exclusive, Patience::Wait)?;
        if level == 0 || root.meta.count > 0 {
            return Ok(false);
        }
        let child = root.node.child(0)?;
        let is_early = self.medium.breaks(canary::MERGED_FREED_EARLY);
        if is_early {
            self.let_go(place);
        }
        lane.intend(&self.medium, ROOT);
        self.medium.store(ROOT, word::pointer(child), Ordering::Release);
        self.medium.flush(ROOT.span(8));
        self.medium.commit(Level::default());
        drop(tree);
        if !is_early {
            self.let_go(place);
        }
        Ok(true)
    }
}

/// Iterates over the pairs of a node, without those of keys deleted from a leaf.
fn kept<'a, M: Medium>(node: &Reached<'a, M>) -> impl Iterator<Item = (u64, u64)> + use<'a, M> {
    let (words, is_leaf) = (node.node, node.meta.level == 0);
    (0..node.meta.count).map(move |i| words.pair(i)).filter(move |pair| !is_leaf || pair.1 != 0)
}

fn kept_count<M: Medium>(node: &Reached<'_, M>) -> usize {
    let Meta { level, count } = node.meta;
    if level == 0 { count - node.node.dead_count(count) } else { count }
}
