//! Clearing: replaces the tree by an empty root.
//!
//! # Steps
//! 1. All lanes are taken, in ascending order: no writer runs, and none begins. A new leaf without pairs is written;
//!    flush; order. *Crash: nothing refers to it.*
//! 2. The tree is locked exclusively. The root's word; flush; commit. *Crash before: all keys exist; after: none.*
//! 3. The old nodes are released. Each is locked exclusively first, the parent before its children: so the readers
//!    that were in the old tree have left it, and none comes.
//!
//! # Damage
//! Parts of the old tree that damage hides are also hidden from readers, and are not released. If the free space was
//! known before, their space stays occupied until the next opening. If damage keeps the sweep from finishing, the new
//! tree is swept instead of the old one, which frees everything that the new tree does not refer to. No walk runs
//! until the old tree is gone; otherwise a sweep would free nodes that are still being released.

use core::sync::atomic::Ordering;

use heap::Place;
use pmem::{Dram, Level, Medium, Ticket};
use undo_log::Lane;

use crate::Error;
use crate::canary;
use crate::layout::{NODE_HEADER_BYTES, ROOT};
use crate::locks::{Mode, Patience};
use crate::node::{Meta, Node};
use crate::retire::Retire;
use crate::tree::Tree;
use crate::word;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Removes every key, whatever is damaged. Finishes the sweep first, which must not run over a tree that is being
    /// released.
    ///
    /// # Errors
    /// [`Error::Heap`] if there is no space for a node, or the medium fails.
    pub fn clear(&self, agent: usize) -> Result<(), Error> {
        let swept = skip_damaged(self.sweep())?;
        // Before any lane is taken, as for merges.
        let alone = swept.is_none().then(|| self.walks.lock(Mode::Exclusive, Patience::Wait)).transpose()?;
        let ticket = self.replace_root(agent)?;
        drop(alone);
        self.acknowledge(ticket)?;
        self.sweep()
    }

    /// Takes steps 1 to 3.
    fn replace_root(&self, agent: usize) -> Result<Ticket, Error> {
        self.without_writers(|first| {
            let leaf = self.reserve_root(agent)?;
            let node = self.node(leaf.place().offset);
            let new = self.locks.of(node.at)?.lock(Mode::Exclusive, Patience::Wait)?;
            node.set_meta(Meta { level: 0, count: 0 });
            if !self.medium.breaks(canary::ROOT_BEFORE_NODE) {
                self.medium.flush(node.at.span(NODE_HEADER_BYTES));
                self.medium.order();
            }
            let tree = self.tree_lock.lock(Mode::Exclusive, Patience::Wait)?;
            let old = skip_damaged(self.root())?;
            first.intend(&self.medium, ROOT);
            self.medium.store(ROOT, word::pointer(leaf.publish()), Ordering::Release);
            self.medium.flush(ROOT.span(8));
            let ticket = self.medium.commit(Level::default());
            new.committed(ticket);
            self.unsettled.note_all(ticket);
            drop((new, tree));
            if let Some(old) = old
                && let Some(meta) = skip_damaged(self.checked(old).and_then(Node::meta))?
            {
                self.let_go_below(old, meta.level)?;
            }
            Ok(ticket)
        })
    }

    /// Takes all lanes, and calls `work` with the first.
    pub(crate) fn without_writers<T>(&self, work: impl FnOnce(&mut Lane<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let mut lanes = [const { None }; undo_log::layout::LANE_COUNT_MAX];
        (0..self.lanes.count()).for_each(|lane| lanes[lane] = Some(self.lanes.take_exactly(lane)));
        work(lanes[0].as_mut().expect("a tree has a lane"))
    }

    fn let_go_below(&self, place: Place, level: u8) -> Result<(), Error> {
        let reached = self.reach(place, level, Mode::Exclusive, Patience::Wait);
        let Some(node) = skip_damaged(reached)? else { return Ok(()) };
        self.forget_heads(&node);
        if level > 0 {
            for child in (0..=node.meta.count).filter_map(|i| node.node.child(i).ok()) {
                self.let_go_below(child, level - 1)?;
            }
        }
        self.medium.breathe();
        self.places(&node).flatten().for_each(|place| self.let_go(place));
        Ok(())
    }
}

/// Turns damage into `None`.
fn skip_damaged<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(Error::Damaged { .. }) => Ok(None),
        result => result.map(Some),
    }
}
