//! The sweep after open: settles the words that an earlier process left undecided, counts the entries, and reports
//! the reached places to the allocator.

use heap::{HeapError, InvalidPlace, PlaceKind};
use pmem::{Dram, Level, Medium};

use super::batch::Batches;
use super::layout::{Home, PAIR_COUNT};
use super::segment::{Entry, Segment};
use crate::canary;
use crate::segmented::sweep::reach;
use crate::segmented::{Context, Misplacement, Segmented};

/// The damage of a place that several entries name.
const TWICE: &str = "is named by two entries";

/// Sweeps a segment. Returns the number of entries that were not counted before.
pub(super) fn sweep<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    segment: &Segment,
    batches: &Batches,
    misplaced: &mut dyn FnMut(Misplacement),
) -> Result<i64, HeapError> {
    let frozen = segment.lock_all();
    if cx.medium.is_writable() {
        settle_all(cx, segment)?;
    }
    segment.make_durable(cx.medium);
    let missed = cx.medium.breaks(canary::SWEEP_MISSES_SPLIT) && segment.depth() > 0;
    let mut counts = [0; PAIR_COUNT as usize];
    for entry in segment.entries(cx.medium) {
        let entry = entry.decided(cx.medium, batches).map_err(HeapError::from)?;
        if !entry.position.is_live() {
            continue;
        }
        counts[Home::of(entry.signature).pair as usize] += 1;
        if !missed {
            reach_item(cx, entry, misplaced);
        }
    }
    let more = segment.set_counts(&counts);
    segment.places(cx.medium).for_each(|place| reach(cx, place.offset, place, TWICE, misplaced));
    drop(frozen);
    cx.medium.check_lost_ranges().map_err(HeapError::from)?;
    Ok(more)
}

/// Settles words that an earlier process left FRESH, and empties those left DELETED. The caller holds all locks.
fn settle_all<M: Medium, D: Dram>(cx: Context<'_, M, D>, segment: &Segment) -> Result<(), HeapError> {
    let marked: Vec<_> = segment
        .entries(cx.medium)
        .filter(|entry| !entry.position.is_empty() && (entry.position.is_fresh() || entry.position.is_deleted()))
        .collect();
    for entry in &marked {
        cx.medium.flush(entry.slot.position.span(8));
    }
    if !marked.is_empty() {
        let ticket = cx.medium.commit(Level::Strongest);
        cx.medium.wait(ticket).map_err(HeapError::from)?;
    }
    for entry in marked {
        let settled = if entry.position.is_deleted() { entry.position.emptied() } else { entry.position.settled() };
        // This fails only if a reader settled the word first, with the same result.
        let _ = cx.medium.compare_exchange(entry.slot.position, entry.position.word(), settled.word());
    }
    Ok(())
}

fn reach_item<M: Medium, D: Dram>(cx: Context<'_, M, D>, entry: Entry, misplaced: &mut dyn FnMut(Misplacement)) {
    match entry.position.place() {
        Some(place) if place.kind != PlaceKind::Segment => reach(cx, entry.slot.position, place, TWICE, misplaced),
        _ => misplaced((
            entry.slot.position,
            InvalidPlace { offset: entry.position.offset().0, what: "has no valid size class" },
        )),
    }
}
