//! The sweep after open: settles the words that an earlier process left undecided, counts the entries, and reports
//! the reached places to the allocator.

use heap::{HeapError, InvalidPlace, PlaceKind};
use pmem::{Dram, Level, Medium, Offset};

use super::layout::{Home, PAIR_COUNT};
use super::segment::{Entry, Segment};
use super::split::segment_place;
use super::walk::Cursor;
use super::{Context, PartitionedHash};
use crate::canary;
use crate::segmented::{Misplacement, Segmented};

impl PartitionedHash {
    /// Sweeps the segment at `cursor`. It makes changes of an earlier process durable, counts the entries, reports
    /// the reached places to the allocator, and reports invalid positions to `misplaced`.
    pub fn sweep<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        cursor: Cursor,
        misplaced: &mut dyn FnMut(Misplacement),
    ) -> Result<Cursor, HeapError> {
        let _pin = epoch::pin();
        let _partition = self.partitions[cursor.partition].lock();
        let segment = self.at_cursor(cursor);
        let frozen = segment.lock_all();
        if cx.medium.is_writable() {
            settle_all(cx, segment)?;
        }
        segment.make_durable(cx.medium);
        let missed = cx.medium.breaks(canary::SWEEP_MISSES_SPLIT) && segment.depth() > 0;
        let mut counts = [0; PAIR_COUNT as usize];
        for entry in segment.entries(cx.medium) {
            let entry = entry.decided(cx.medium, &self.batches).map_err(HeapError::from)?;
            if !entry.position.is_live() {
                continue;
            }
            counts[Home::of(entry.signature).pair as usize] += 1;
            if !missed {
                reach(cx, entry, misplaced);
            }
        }
        self.root().tally.add(segment.set_counts(&counts));
        for offset in segment.chain(cx.medium) {
            reach_place(cx, offset, segment_place(offset), misplaced);
        }
        drop(frozen);
        cx.medium.check_lost_ranges().map_err(HeapError::from)?;
        Ok(self.next_cursor(cursor, segment))
    }
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

fn reach<M: Medium, D: Dram>(cx: Context<'_, M, D>, entry: Entry, misplaced: &mut dyn FnMut(Misplacement)) {
    match entry.position.place() {
        Some(place) if place.kind != PlaceKind::Segment => reach_place(cx, entry.slot.position, place, misplaced),
        _ => misplaced((
            entry.slot.position,
            InvalidPlace { offset: entry.position.offset().0, what: "has no valid size class" },
        )),
    }
}

fn reach_place<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    named_at: Offset,
    place: heap::Place,
    misplaced: &mut dyn FnMut(Misplacement),
) {
    match cx.heap.sweep().mark_reached(place) {
        Ok(true) => {}
        Ok(false) => misplaced((named_at, InvalidPlace { offset: place.offset.0, what: "is named by two entries" })),
        Err(wrong) => misplaced((named_at, wrong)),
    }
}
