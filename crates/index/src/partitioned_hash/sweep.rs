//! Walking all segments: the sweep after open, walks for readers, and `clear`
//! (`docs/decisions/0008-clear-by-generation.md`).
//!
//! A walk holds nothing between two segments. It advances by prefix, so that a split behind it shows nothing twice and
//! one before it hides nothing: the halves of a visited segment lie behind, those of an unvisited one ahead.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use heap::{HeapError, Misplaced, PlaceKind};
use pmem::{Dram, Level, Medium, MediumError, Offset};

use super::format::empty_root;
use super::layout::{Home, PAIR_COUNT};
use super::segment::{Entry, Segment};
use super::split::segment_place;
use super::{Context, Garbage, PartitionedHash, Root, Table};
use crate::Position;
use crate::canary;
use crate::segmented::directory::Retired;
use crate::segmented::open::bury;

pub use crate::segmented::Cursor;

/// What the sweep found wrong in a segment.
pub type Misplacement = (Offset, Misplaced);

impl PartitionedHash {
    /// Shows every live entry of the segment at `cursor` to `each` and returns the cursor of the next. Not a snapshot.
    /// The caller is pinned while it uses the positions. Beyond the last partition, where a made-up number may lead, the
    /// walk is over.
    ///
    /// A signature and a position that are shown together are of one entry, though no writer is locked out: a visitor that holds
    /// the item's key against the signature finds no damage where a slot only changed hands.
    pub fn visit<M: Medium, E: From<MediumError>>(
        &self,
        medium: &M,
        cursor: Cursor,
        mut each: impl FnMut(u64, Position) -> Result<(), E>,
    ) -> Result<Cursor, E> {
        if cursor.partition >= self.partition_count() {
            return Ok(Cursor { done: true, ..cursor });
        }
        let segment = self.at_cursor(cursor);
        for entry in segment.entries(medium) {
            let entry = entry.decided_steady(medium, &self.batches)?;
            if entry.position.is_live() {
                each(entry.signature, entry.position)?;
            }
        }
        medium.check_lost_ranges()?;
        Ok(self.next_cursor(cursor, segment))
    }

    /// The signatures of what a step of a walk visits that goes from `cursor` to `next`.
    pub fn signatures(&self, cursor: Cursor, next: Cursor) -> RangeInclusive<u64> {
        let start = |cursor: Cursor| self.geometry.signature(cursor.partition as u64, cursor.prefix);
        let last = if next.done { u64::MAX } else { start(next) - 1 };
        start(cursor)..=last
    }

    /// Sweeps the segment at `cursor`: makes durable what an earlier process left, counts entries, tells the allocator
    /// what is reached, and shows what points nowhere to `misplaced`.
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
        segment.set_counts(&counts);
        for offset in segment.chain(cx.medium) {
            reach_place(cx, offset, segment_place(offset), misplaced);
        }
        drop(frozen);
        cx.medium.check_lost_ranges().map_err(HeapError::from)?;
        Ok(self.next_cursor(cursor, segment))
    }

    /// Removes every entry, as one step for readers and for a crash.
    ///
    /// | step | a crash after it leaves |
    /// |---|---|
    /// | 1 freeze: all partitions, all segments | everything |
    /// | 2 an empty segment a partition, of the next generation; ordered | everything, and free space once it is buried |
    /// | 3 the store's generation, one word; committed | nothing: segments of another generation are the same |
    /// | 4 old segments DEAD, which readers do not look at; ordered | nothing |
    /// | 5 the root is switched, the locks released | |
    /// | 6 when no reader is left, old segments and their items are freed | |
    ///
    /// What a crash between 3 and 4 leaves of another generation is buried when the store is opened. So no segment is alive of
    /// any generation but the store's, however long readers keep the old ones, and the numbers may come round.
    pub fn clear<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>) -> Result<Cleared, HeapError> {
        let _pin = epoch::pin();
        let _partitions: Vec<_> = self.partitions.iter().map(|partition| partition.lock()).collect();
        let old = self.root();
        let frozen: Vec<_> = old.segments().map(Segment::lock_all).collect();
        let generation = cx.heap.generation().wrapping_add(1);
        let root = empty_root(cx, self.geometry, generation)?;
        if !cx.medium.breaks(canary::CLEAR_BEFORE_SEGMENTS) {
            cx.medium.order();
        }
        cx.heap.set_generation(cx.medium, generation);
        cx.medium.wait(cx.medium.commit(Level::Strongest))?;
        if !cx.medium.breaks(canary::CLEARED_UNBURIED) {
            old.segments().flat_map(|segment| segment.chain(cx.medium)).for_each(|offset| bury(cx.medium, offset));
            cx.medium.order();
        }
        old.segments().for_each(Segment::kill);
        let old = self.root.swap(Box::into_raw(root), Ordering::AcqRel);
        drop(frozen);
        // SAFETY: it came from a box, and only `clear` replaces the root, under all partition locks.
        Ok(Cleared(unsafe { Retired::new(old) }))
    }

    /// The segment that `cursor` has come to.
    pub(super) fn at_cursor(&self, cursor: Cursor) -> &Segment {
        self.root().at_cursor(cursor)
    }

    /// The cursor past `segment`.
    pub(super) fn next_cursor(&self, cursor: Cursor, segment: &Segment) -> Cursor {
        cursor.past(segment, self.geometry.partition_count())
    }
}

/// What `clear` unlinked: to be freed with [`Cleared::free`] once no reader is left.
#[derive(Debug)]
#[must_use]
pub struct Cleared(Retired<Root>);

impl Cleared {
    /// Step 6. The caller waited until no thread that was pinned during `clear` is still pinned.
    pub fn free<M: Medium, D: Dram>(self, cx: Context<'_, M, D>) {
        for segment in self.0.segments() {
            let places: Vec<_> = segment
                .entries(cx.medium)
                .filter(|entry| entry.position.is_live())
                .filter_map(|entry| entry.position.place())
                .collect();
            let chain: Vec<_> = segment.chain(cx.medium).collect();
            for place in places.into_iter().chain(chain.into_iter().map(segment_place)) {
                cx.heap.free(cx.medium, place);
            }
        }
        cx.retire(Garbage::Table(Table::new(self.0)));
    }
}

/// Settles what an earlier process left FRESH, and empties what it left DELETED. The caller holds all locks.
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
        // It fails only where a reader settled the word first, and then says the same.
        let _ = cx.medium.compare_exchange(entry.slot.position, entry.position.word(), settled.word());
    }
    Ok(())
}

fn reach<M: Medium, D: Dram>(cx: Context<'_, M, D>, entry: Entry, misplaced: &mut dyn FnMut(Misplacement)) {
    match entry.position.place() {
        Some(place) if place.kind != PlaceKind::Segment => reach_place(cx, entry.slot.position, place, misplaced),
        _ => misplaced((
            entry.slot.position,
            Misplaced { offset: entry.position.offset().0, what: "is of no size class" },
        )),
    }
}

fn reach_place<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    named_at: Offset,
    place: heap::Place,
    misplaced: &mut dyn FnMut(Misplacement),
) {
    match cx.heap.mark_reached(place) {
        Ok(true) => {}
        Ok(false) => misplaced((named_at, Misplaced { offset: place.offset.0, what: "is named by two entries" })),
        Err(wrong) => misplaced((named_at, wrong)),
    }
}
