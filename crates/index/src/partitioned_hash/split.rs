//! Splits a full segment in two, or chains a new segment to it if a split would not free space.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 freeze: partition lock, then all locks of the segment | nothing |
//! | 2 two new segments, PENDING, streamed, ordered | free space |
//! | 3 the partition's split record, its commit word last in the line; ordered | a split that recovery finishes |
//! | 4 states LIVE, LIVE, DEAD; ordered | the same |
//! | 5 the record is cleared; ordered | the completed split |
//! | 6a the directory directs readers to the halves, then writers | the same |
//! | 6b the old segment is marked dead; the locks are released; it is retired | the same |
//!
//! A split moves entries and touches no items. It never stops readers: the entries of the old segment stay as they
//! were at the freeze, and stay correct until step 6, because no writer can get in.

use std::sync::atomic::Ordering;

use heap::{HeapError, Place, PlaceKind, Reservation};
use pmem::{Dram, Medium, MediumError, Offset, Waited, seal};

use super::draft::SegmentDraft;
use super::layout::{
    DEPTH_MAX, Home, NEXT_BYTES, OverflowPath, PAIR_COUNT, SEGMENT_ENTRY_COUNT, SegmentHeader, State, entry_lines, slot,
};
use super::segment::{Entry, Segment, more};
use super::settle::{is_free, settle_locked};
use super::slot::Slot;
use super::{Context, Garbage, PartitionedHash, Table};
use crate::Position;
use crate::canary;
use crate::segmented::Segmented;
use crate::segmented::record::{SplitRecord, record_of};

/// The smaller half must get at least one entry in this many. Otherwise a split frees no space, because signatures
/// are equal.
const SMALLER_HALF_MIN: u64 = 8;

/// One of the two new segments, with the segments that must be chained to it.
struct Half {
    header: SegmentHeader,
    drafts: Vec<SegmentDraft>,
    counts: [u16; PAIR_COUNT as usize],
}

impl PartitionedHash {
    /// Makes space in the segment of `signature`, if that is still the one at `full`. The caller holds no bucket.
    ///
    /// # Errors
    /// Returns the allocator's error; then nothing has changed.
    pub fn split<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        signature: u64,
        full: Offset,
    ) -> Result<(), HeapError> {
        self.split_for(cx, &[signature], full)
    }

    /// Like [`PartitionedHash::split`], for several signatures of the segment that are about to be inserted. If the
    /// segment is or becomes chained, there is then space for all of them, or for one more segment's worth. They
    /// count in the decision whether a split frees space, because the segment may already hold far fewer entries.
    pub(super) fn split_for<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        wanted: &[u64],
        full: Offset,
    ) -> Result<(), HeapError> {
        let _pin = epoch::pin();
        let partition = self.geometry.partition(wanted[0]);
        let _partition = self.partitions[partition].lock();
        let segment = self.root().segment(self.geometry, wanted[0]);
        if segment.offset() != full {
            return Ok(());
        }
        let _frozen = segment.lock_all();
        segment.make_durable(cx.medium);
        let entries = live_entries(cx, segment)?;
        let (geometry, depth) = (self.geometry, segment.depth() + 1);
        let bit = |signature| geometry.prefix(signature, depth) & 1;
        let all = entries.iter().map(|(signature, _)| *signature).chain(wanted.iter().copied());
        let (count, ones) = ((entries.len() + wanted.len()) as u64, all.map(bit).sum::<u64>());
        if segment.depth() == DEPTH_MAX || ones.min(count - ones) * SMALLER_HALF_MIN < count {
            return self.chain(cx, segment, partition, wanted.len());
        }
        let mut halves = [0, 1].map(|bit| Half::new(self.child(cx, segment, partition, bit)));
        entries.iter().for_each(|&(signature, position)| halves[bit(signature) as usize].place(signature, position));
        let tables = self.commit_split(cx, segment, partition, &mut halves)?;
        let counts = std::array::from_fn(|pair| halves[0].counts[pair] + halves[1].counts[pair]);
        self.root().tally.add(more(&segment.counts(), &counts));
        self.switch(cx, segment, partition, tables);
        self.split_count.fetch_add(1, Ordering::Relaxed);
        self.split_entry_count.fetch_add(entries.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn child<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        parent: &Segment,
        partition: usize,
        bit: u64,
    ) -> SegmentHeader {
        SegmentHeader {
            state: State::Pending,
            partition: partition as u32,
            depth: parent.depth() + 1,
            prefix: parent.prefix() << 1 | bit,
            generation: cx.heap.region().generation(),
        }
    }

    /// Carries out steps 2 to 5.
    fn commit_split<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        old: &Segment,
        partition: usize,
        halves: &mut [Half; 2],
    ) -> Result<[Box<Segment>; 2], HeapError> {
        // Both halves are reserved before the first is published, because a publication cannot be undone.
        let [zero, one] = [halves[0].reserve(cx)?, halves[1].reserve(cx)?];
        let offsets = [halves[0].stream(cx, zero), halves[1].stream(cx, one)];
        cx.medium.order_unless(canary::SPLIT_BEFORE_SEGMENTS);
        let split = SplitRecord { at: record_of(partition as u32), old: old.offset(), halves: offsets };
        split.commit(cx.medium);
        split.finish(cx)?;
        Ok([0, 1].map(|i| {
            let table = Segment::new(offsets[i], halves[i].header, true, old.due.get());
            let _ = table.set_counts(&halves[i].counts);
            table
        }))
    }

    /// Carries out step 6, except for the release of the locks.
    fn switch<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        old: &Segment,
        partition: usize,
        halves: [Box<Segment>; 2],
    ) {
        let places: Vec<_> = old.chain(cx.medium).map(segment_place).collect();
        let is_late = cx.medium.breaks(canary::WRITERS_LED_FIRST);
        let table = self.root().put_halves(cx, partition, old, halves, is_late);
        old.kill();
        // The table is retired last: the caller still holds its locks, and is pinned.
        for place in places {
            // The sweep, which the partition's lock keeps out, will not reach the segment any more.
            cx.heap.sweep().mark_unlinked(place);
            cx.retire(Garbage::of(place));
        }
        cx.retire(Garbage::Table(Table::new(table)));
    }

    /// Adds an empty segment to the end of the chain:
    ///
    /// 1. The segment is written as CHAINED and ordered.
    /// 2. The chain word of the last segment is stored and ordered.
    ///
    /// A crash in between leaves free space.
    fn chain<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        segment: &Segment,
        partition: usize,
        wanted_count: usize,
    ) -> Result<(), HeapError> {
        let is_free = |entry: &Entry| is_free(cx.medium, entry.slot, entry.position);
        let free = segment.entries(cx.medium).skip(SEGMENT_ENTRY_COUNT as usize).filter(is_free);
        if free.take(wanted_count).count() == wanted_count {
            return Ok(());
        }
        let mut draft = SegmentDraft::new();
        draft.set_header(self.child(cx, segment, partition, 0).with(State::Chained));
        let place = cx.heap.reserve_segment(cx.medium)?.publish();
        draft.stream(cx.medium, place.offset);
        cx.medium.order();
        let last = segment.chain(cx.medium).last().expect("a chain begins with the segment itself");
        cx.medium.store(last.plus(NEXT_BYTES), seal(place.offset.0), Ordering::Release);
        cx.medium.flush(last.plus(NEXT_BYTES).span(8));
        cx.medium.order();
        self.chained_count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Half {
    /// Creates a half without entries.
    fn new(header: SegmentHeader) -> Half {
        let mut half = Half { header, drafts: vec![SegmentDraft::new()], counts: [0; PAIR_COUNT as usize] };
        half.drafts[0].set_header(header);
        half
    }

    /// Places an entry.
    #[inline(always)]
    fn place(&mut self, signature: u64, position: Position) {
        self.counts[Home::of(signature).pair as usize] += 1;
        if !self.drafts[0].place(signature, position.moved()) {
            self.place_in_chain(signature, position.moved());
        }
    }

    #[cold]
    fn place_in_chain(&mut self, signature: u64, position: Position) {
        self.drafts[0].set_overflow(Home::of(signature), OverflowPath::Further);
        let full = |draft: &mut SegmentDraft| !draft.place_anywhere(signature, position);
        if self.drafts.len() == 1 || self.drafts.last_mut().is_some_and(full) {
            let mut draft = SegmentDraft::new();
            draft.set_header(self.header.with(State::Chained));
            draft.place_anywhere(signature, position);
            self.drafts.push(draft);
        }
    }

    /// Reserves the space for the segments.
    fn reserve<'a, M: Medium, D: Dram>(&self, cx: Context<'a, M, D>) -> Result<Vec<Reservation<'a, D>>, HeapError> {
        self.drafts.iter().map(|_| cx.heap.reserve_segment(cx.medium)).collect()
    }

    /// Writes the segments, each with the offset of the next, and returns the offset of the first.
    fn stream<M: Medium, D: Dram>(&mut self, cx: Context<'_, M, D>, reserved: Vec<Reservation<'_, D>>) -> Offset {
        let offsets: Vec<_> = reserved.into_iter().map(|reservation| reservation.publish().offset).collect();
        for (i, draft) in self.drafts.iter_mut().enumerate() {
            if let Some(&next) = offsets.get(i + 1) {
                draft.set_next(next);
            }
            draft.stream(cx.medium, offsets[i]);
        }
        offsets[0]
    }
}

/// Returns signatures and positions of the entries to move. A word of a log that is not durable yet stays FRESH in
/// its copy. A removal leaves no copy, so it is made durable first.
fn live_entries<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    segment: &Segment,
) -> Result<Vec<(u64, Position)>, HeapError> {
    let (medium, mut entries) = (cx.medium, Vec::with_capacity(SEGMENT_ENTRY_COUNT as usize));
    for line in segment.chain(medium).flat_map(entry_lines) {
        for (i, word) in medium.load4(slot(line, 0).position).into_iter().enumerate() {
            let (slot, mut position) = (slot(line, i as u64), Position::from_word(word));
            if position.is_fresh() {
                position = settled_or_fresh(medium, slot, position)?;
            }
            if position.is_live() {
                entries.push((medium.load(slot.signature, Ordering::Relaxed), position));
            }
        }
    }
    Ok(entries)
}

#[cold]
fn settled_or_fresh<M: Medium>(medium: &M, slot: Slot, position: Position) -> Result<Position, MediumError> {
    let waited = settle_locked(medium, slot, position)?;
    if waited == Waited::Deferred && position.is_live() {
        return Ok(if medium.breaks(canary::SPLIT_SETTLES_FRESH) { position.settled() } else { position });
    }
    if waited == Waited::Deferred {
        medium.wait(slot.commit_published(medium, position))?;
    }
    Ok(position.settled())
}

pub(super) fn segment_place(offset: Offset) -> Place {
    Place { offset, kind: PlaceKind::Segment }
}

/// Returns the stash line whose use makes a split due. The line differs between segments: with uniform hashing all
/// segments fill up at the same time, and would otherwise split in one wave.
pub(super) fn crowded_from_line(segment: Offset) -> u64 {
    const FIRST: u64 = 1;
    const SPREAD: u64 = 3;
    FIRST + (segment.0 / heap::layout::SEGMENT_BYTES).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(16) % SPREAD
}
