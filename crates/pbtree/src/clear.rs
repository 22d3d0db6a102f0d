//! Clearing: an empty root in place of the tree.
//!
//! # Steps
//! 1. All lanes are taken, in ascending order: no writer runs, and none begins. A new leaf without pairs is written; flush;
//!    order. *Crash: nothing names it.*
//! 2. The tree is locked exclusively. The root's word; flush; commit. *Crash before: all keys are there; after: none.*
//! 3. The old nodes are let go of. Each is locked exclusively first, the parent before its children: so the readers that
//!    were in the old tree have left it, and none comes.

use core::sync::atomic::Ordering;

use heap::Place;
use pmem::{Dram, Level, Medium};
use undo_log::Lane;

use crate::Error;
use crate::canary;
use crate::layout::{NODE_HEADER_BYTES, ROOT};
use crate::locks::{Mode, Patience};
use crate::node::Meta;
use crate::retire::Retire;
use crate::tree::Tree;
use crate::word;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Removes every key. Finishes the sweep first, which must not meet a tree that is being let go of.
    ///
    /// # Errors
    /// [`Error::Heap`] if there is no room for a node, or the medium fails; [`Error::Damaged`], when what was lost of the old tree
    /// may stay taken until the next opening.
    pub fn clear(&self, agent: usize) -> Result<(), Error> {
        self.sweep()?;
        let ticket = self.without_writers(|first| {
            let leaf = self.reserve_node(agent)?;
            let node = self.node(leaf.place().offset);
            let new = self.locks.of(node.at)?.lock(Mode::Exclusive, Patience::Wait)?;
            node.set_meta(Meta { level: 0, count: 0 });
            if !self.medium.breaks(canary::ROOT_BEFORE_NODE) {
                self.medium.flush(node.at.span(NODE_HEADER_BYTES));
                self.medium.order();
            }
            let tree = self.tree_lock.lock(Mode::Exclusive, Patience::Wait)?;
            let old = self.root()?;
            first.intend(&self.medium, ROOT);
            self.medium.store(ROOT, word::pointer(leaf.publish()), Ordering::Release);
            self.medium.flush(ROOT.span(8));
            let ticket = self.medium.commit(Level::default());
            new.committed(ticket);
            drop((new, tree));
            let level = self.node(old.offset).meta()?.level;
            self.let_go_below(old, level).map(|()| ticket)
        })?;
        self.medium.acknowledge(ticket).map(drop)?;
        Ok(())
    }

    /// Takes all lanes, and calls `work` with the first.
    pub(crate) fn without_writers<T>(&self, work: impl FnOnce(&mut Lane<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let mut lanes = [const { None }; undo_log::layout::LANE_COUNT_MAX];
        (0..self.lanes.count()).for_each(|lane| lanes[lane] = Some(self.lanes.take_exactly(lane)));
        work(lanes[0].as_mut().expect("a tree has a lane"))
    }

    fn let_go_below(&self, place: Place, level: u8) -> Result<(), Error> {
        let node = self.reach(place, level, Mode::Exclusive, Patience::Wait)?;
        self.forget_heads(&node);
        if level > 0 {
            for i in 0..=node.meta.count {
                self.let_go_below(node.node.child(i)?, level - 1)?;
            }
        }
        self.medium.breathe();
        self.each_place(&node, &mut |place| {
            self.let_go(place);
            Ok(())
        })
    }
}
