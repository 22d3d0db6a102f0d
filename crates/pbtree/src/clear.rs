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
use crate::locks::{Mode, WaitPolicy};
use crate::node::{Meta, Node};
use crate::nodes::Nodes;
use crate::retire::Retire;
use crate::space::Space;
use crate::unsettled::Unsettled;
use crate::word;

/// Takes steps 1 to 3 with the first of all lanes.
pub(crate) fn replace_root<M: Medium, D: Dram, R: Retire<M, D>>(
    nodes: &Nodes<M, D>,
    space: &Space<D, R>,
    unsettled: &Unsettled<D>,
    agent: usize,
    mut first: Lane<'_>,
) -> Result<Ticket, Error> {
    let medium = nodes.medium();
    let leaf = space.reserve_root(medium, agent)?;
    let node = nodes.node(leaf.place().offset);
    let new = nodes.lock_of(node.at)?.lock(Mode::Exclusive, WaitPolicy::Wait)?;
    node.set_meta(Meta { level: 0, count: 0 });
    if !medium.breaks(canary::ROOT_BEFORE_NODE) {
        medium.flush(node.at.span(NODE_HEADER_BYTES));
        medium.order();
    }
    let tree = nodes.lock_tree(Mode::Exclusive, WaitPolicy::Wait)?;
    let old = skip_damaged(nodes.root())?;
    first.intend(medium, ROOT);
    medium.store(ROOT, word::pointer(leaf.publish()), Ordering::Release);
    medium.flush(ROOT.span(8));
    let ticket = medium.commit(Level::default());
    new.committed(ticket);
    unsettled.note_all(ticket);
    drop((new, tree));
    if let Some(old) = old
        && let Some(meta) = skip_damaged(nodes.checked(old).and_then(Node::meta))?
    {
        let_go_below(nodes, space, old, meta.level)?;
    }
    Ok(ticket)
}

fn let_go_below<M: Medium, D: Dram, R: Retire<M, D>>(
    nodes: &Nodes<M, D>,
    space: &Space<D, R>,
    place: Place,
    level: u8,
) -> Result<(), Error> {
    let reached = nodes.reach(place, level, Mode::Exclusive, WaitPolicy::Wait);
    let Some(node) = skip_damaged(reached)? else { return Ok(()) };
    nodes.forget_heads(&node);
    if level > 0 {
        for child in (0..=node.meta.count).filter_map(|i| node.node.child(i).ok()) {
            let_go_below(nodes, space, child, level - 1)?;
        }
    }
    nodes.medium().yield_to_scheduler();
    nodes.medium().held(|| nodes.places(&node).flatten().for_each(|place| space.let_go(nodes.medium(), place)));
    Ok(())
}

/// Turns damage into `None`.
pub(crate) fn skip_damaged<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(Error::Damaged { .. }) => Ok(None),
        result => result.map(Some),
    }
}
