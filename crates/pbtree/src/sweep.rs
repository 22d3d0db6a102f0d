//! The sweep after opening: marks everything that the tree reaches, so that the heap can free everything else.
//!
//! Levels are walked from the leaves up, so that a separator that a split moves up is found either in the old node or
//! in the new one. A writer that releases a place under a node's lock marks the place there (`Space::let_go`), so a
//! place that is unlinked before the walk passes is not handed out twice.

use heap::{Heap, InvalidPlace, Place};
use pmem::{Backoff, Dram, Medium};

use crate::Error;
use crate::canary;
use crate::nodes::{Nodes, Reached};
use crate::walk::Walks;
use crate::writer::Writers;

/// Walks the whole tree and frees everything that it does not reach. All free space is known when this returns, even
/// if another thread's sweep has found it.
pub(crate) fn sweep<M: Medium, D: Dram>(
    nodes: &Nodes<M, D>,
    walks: &Walks<D>,
    heap: &Heap<D>,
    writers: &Writers<D>,
) -> Result<(), Error> {
    if heap.is_swept() {
        return Ok(());
    }
    (0..writers.lanes().count()).try_for_each(|lane| mark(heap, writers.lanes().log(lane)))?;
    walks.each_node_upwards(nodes, |node| {
        if node.meta.level == 0 {
            writers.vacate(lack_of(node, nodes.order()));
        }
        nodes.places(node).try_for_each(|place| mark(heap, place?))
    })?;
    let medium = nodes.medium();
    heap.sweep().finish(medium);
    let mut backoff = Backoff::long();
    while medium.is_writable() && !heap.is_swept() && !medium.breaks(canary::SWEEP_NOT_AWAITED) {
        backoff.relax();
    }
    Ok(())
}

fn mark<D: Dram>(heap: &Heap<D>, place: Place) -> Result<(), Error> {
    let damaged = |wrong: InvalidPlace| Error::Damaged { offset: wrong.offset, what: wrong.what };
    heap.sweep().mark_reached(place).map(drop).map_err(damaged)
}

/// Returns how many pairs a leaf lacks to be three eighths full; a split never leaves a leaf with fewer.
fn lack_of<M: Medium>(leaf: &Reached<'_, M>, order: usize) -> u64 {
    (order * 3 / 8).saturating_sub(leaf.kept_count()) as u64
}
