//! Packing: removes the pairs of deleted keys from a full leaf.
//!
//! # Steps
//! 1 the run of all pairs and of meta. Order. 2 the live pairs moved together, meta; flush. Order. 3 number; commit.
//! *Before: undone; after: done.* 4 the deleted keys' chunks are released.

use heap::Place;
use pmem::Medium;
use undo_log::Lane;

use crate::Error;
use crate::layout::{ORDER_MAX, PAIR_BYTES};
use crate::node::Meta;
use crate::nodes::Reached;
use crate::word;

/// A leaf is packed instead of split if at least one pair in this many is of a deleted key.
const DEAD_SHARE: usize = 4;

/// Packs a leaf if that is worthwhile; the leaf then has space. `let_go` releases a deleted key's chunk.
pub(crate) fn pack<'a, M: Medium>(
    lane: &mut Lane<'_>,
    leaf: Reached<'a, M>,
    let_go: impl Fn(Place),
) -> Result<Option<Reached<'a, M>>, Error> {
    let Meta { level, count } = leaf.meta;
    let dead_count = leaf.node.dead_count(count);
    if dead_count == 0 || dead_count * DEAD_SHARE < count {
        return Ok(None);
    }
    let (node, medium) = (leaf.node, leaf.node.medium);
    // SAFETY: the leaf is locked exclusively.
    unsafe { lane.log(medium, &[node.meta_span(), node.pairs(0, count)]) };
    let (mut dead, mut dead_len, mut live) = ([0; ORDER_MAX], 0, 0);
    for i in 0..count {
        let (key, value) = node.pair(i);
        if value == 0 {
            (dead[dead_len], dead_len) = (key, dead_len + 1);
        } else {
            node.set_pair(live, (key, value));
            live += 1;
        }
    }
    let meta = Meta { level, count: live };
    node.set_meta(meta);
    medium.flush(node.at.span(PAIR_BYTES * (1 + live as u64)));
    leaf.held.committed(lane.finish(medium));
    for &key in &dead[..dead_len] {
        let_go(word::key_place(node.at, key)?);
    }
    Ok(Some(Reached { meta, ..leaf }))
}
