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

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use heap::{HeapError, Reservation};
use parking_lot::Mutex;
use pmem::{Dram, Medium, MediumError, Offset, Waited};

use super::draft::SegmentDraft;
use super::layout::{
    DEPTH_MAX, Home, OverflowPath, PAIR_COUNT, SEGMENT_ENTRY_COUNT, SegmentHeader, State, entry_lines, slot,
};
use super::segment::{Entry, Segment, more};
use super::settle::{is_free, settle_locked};
use super::slot::Slot;
use crate::Position;
use crate::canary;
use crate::segmented::record::{SplitRecord, record_of};
use crate::segmented::segments::{Segments, append, child};
use crate::segmented::{Context, Segmented};

/// The smaller half must get at least one entry in this many. Otherwise a split frees no space, because signatures
/// are equal.
const SMALLER_HALF_MIN: u64 = 8;

/// Tables whose memory is allocated at the same time, for as many splits. An allocator that grows a heap by single
/// pages otherwise makes a system call for every sixteenth split, and waits there while the background makes huge
/// pages.
const TABLE_COUNT: usize = 128;

/// One of the two new segments, with the segments that must be chained to it.
struct Half {
    header: SegmentHeader,
    draft: SegmentDraft,
    chained: Vec<SegmentDraft>,
    counts: [u16; PAIR_COUNT as usize],
    /// Memory for the tables of this split and of later ones.
    #[expect(clippy::vec_box, reason = "a directory owns each table as a box")]
    tables: Vec<Box<MaybeUninit<Segment>>>,
}

/// The drafts of a split's two new segments.
type Halves = Box<[Half; 2]>;

/// The splits since the store was opened.
#[derive(Default)]
pub(super) struct Splits {
    split_count: AtomicU64,
    split_entry_count: AtomicU64,
    chained_count: AtomicU64,
    /// Drafts that no split uses at present: as many as splits ran at the same time. A split that allocated 32 KiB
    /// would often get new pages from the operating system, and return them. The lock is held alone.
    spare: Mutex<Vec<Halves>>,
}

/// Counters of splits since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitStats {
    /// The number of segments that were split.
    pub split_count: u64,
    /// The total number of entries in those segments. Divided by `split_count * SEGMENT_ENTRY_COUNT`, it is the
    /// mean load at a split.
    pub split_entry_count: u64,
    /// The number of segments that got a chained segment because a split would not have freed space.
    pub chained_count: u64,
}

impl std::fmt::Debug for Splits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Splits").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Splits {
    pub(super) fn stats(&self) -> SplitStats {
        SplitStats {
            split_count: self.split_count.load(Ordering::Relaxed),
            split_entry_count: self.split_entry_count.load(Ordering::Relaxed),
            chained_count: self.chained_count.load(Ordering::Relaxed),
        }
    }

    /// Makes space in the segment of the first `wanted` signature, if that is still the one at `full`. The `wanted`
    /// signatures of the segment are about to be inserted. If the segment is or becomes chained, there is then space
    /// for all of them, or for one more segment's worth. They count in the decision whether a split frees space,
    /// because the segment may already hold far fewer entries.
    pub(super) fn make_space<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        segments: &Segments<Segment>,
        wanted: &[u64],
        full: Offset,
    ) -> Result<(), HeapError> {
        let _pin = epoch::pin();
        let partition = segments.geometry().partition(wanted[0]);
        let _partition = segments.lock_partition(partition);
        let segment = segments.of(wanted[0]);
        if segment.offset() != full {
            return Ok(());
        }
        let mut halves = self.halves([0, 1].map(|bit| child(cx, segment, partition, bit)));
        let split = self.split_or_chain(cx, segments, wanted, segment, &mut halves);
        self.spare.lock().push(halves);
        split
    }

    /// Returns empty drafts.
    fn halves(&self, headers: [SegmentHeader; 2]) -> Halves {
        let spare = self.spare.lock().pop();
        let Some(mut halves) = spare else { return Box::new(headers.map(Half::new)) };
        halves.iter_mut().zip(headers).for_each(|(half, header)| half.restart(header));
        halves
    }

    /// Carries out steps 1 to 6 with empty drafts, or chains a segment. The caller has locked the partition.
    fn split_or_chain<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        segments: &Segments<Segment>,
        wanted: &[u64],
        segment: &Segment,
        halves: &mut [Half; 2],
    ) -> Result<(), HeapError> {
        let geometry = segments.geometry();
        let partition = geometry.partition(wanted[0]);
        // Reserved before the freeze: if the region has to grow, no writer of the segment waits for that.
        let reserved = reserve_two(cx);
        let _frozen = segment.lock_all();
        segment.make_durable(cx.medium);
        let depth = segment.depth() + 1;
        let bit = |signature| geometry.prefix(signature, depth) & 1;
        let mut ones = wanted.iter().copied().map(bit).sum::<u64>();
        let mut entry_count = 0;
        each_live_entry(cx, segment, |signature, position| {
            let bit = bit(signature);
            (ones, entry_count) = (ones + bit, entry_count + 1);
            halves[bit as usize].place(signature, position);
        })?;
        let count = entry_count + wanted.len() as u64;
        if segment.depth() == DEPTH_MAX || ones.min(count - ones) * SMALLER_HALF_MIN < count {
            drop(reserved);
            return self.chain(cx, segment, partition, wanted.len());
        }
        let tables = commit_split(cx, segment, partition, halves, reserved?)?;
        let counts = std::array::from_fn(|pair| halves[0].counts[pair] + halves[1].counts[pair]);
        segments.root().counter.add(more(&segment.counts(), &counts));
        segments.switch(cx, segment, partition, tables, cx.medium.breaks(canary::WRITERS_LED_FIRST));
        self.split_count.fetch_add(1, Ordering::Relaxed);
        self.split_entry_count.fetch_add(entry_count, Ordering::Relaxed);
        Ok(())
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
        let draft = SegmentDraft::new(child(cx, segment, partition, 0).with(State::Chained));
        let place = cx.heap.reserve_segment(cx.medium)?.publish();
        draft.stream(cx.medium, place.offset);
        append(cx.medium, segment, place.offset);
        self.chained_count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Reserves the space for both halves: before the first is published, because a publication cannot be undone.
fn reserve_two<'a, M: Medium, D: Dram>(cx: Context<'a, M, D>) -> Result<[Reservation<'a, D>; 2], HeapError> {
    Ok([cx.heap.reserve_segment(cx.medium)?, cx.heap.reserve_segment(cx.medium)?])
}

/// Carries out steps 2 to 5.
fn commit_split<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    old: &Segment,
    partition: usize,
    halves: &mut [Half; 2],
    [zero, one]: [Reservation<'_, D>; 2],
) -> Result<[Box<Segment>; 2], HeapError> {
    let [of_zero, of_one] = [halves[0].reserve_chained(cx)?, halves[1].reserve_chained(cx)?];
    let offsets = [halves[0].stream(cx, zero, of_zero), halves[1].stream(cx, one, of_one)];
    cx.medium.order_unless(canary::SPLIT_BEFORE_SEGMENTS);
    let split = SplitRecord { at: record_of(partition as u32), old: old.offset(), halves: offsets };
    split.commit(cx.medium);
    split.finish(cx)?;
    Ok([0, 1].map(|i| {
        let memory = halves[i].table_memory();
        let table = Box::write(memory, Segment::new(offsets[i], halves[i].header, true, old.due.get()));
        let _ = table.set_counts(&halves[i].counts);
        table
    }))
}

impl Half {
    /// Creates a half without entries.
    fn new(header: SegmentHeader) -> Half {
        let draft = SegmentDraft::new(header);
        Half { header, draft, chained: Vec::new(), counts: [0; PAIR_COUNT as usize], tables: Vec::new() }
    }

    /// Returns memory for a table.
    fn table_memory(&mut self) -> Box<MaybeUninit<Segment>> {
        if self.tables.is_empty() {
            self.tables.extend((0..TABLE_COUNT).map(|_| Box::new_uninit()));
        }
        self.tables.pop().expect("there are some now")
    }

    /// Removes all entries, for another split.
    fn restart(&mut self, header: SegmentHeader) {
        self.header = header;
        self.draft.restart(header);
        self.chained.clear();
        self.counts.fill(0);
    }

    /// Places an entry.
    #[inline(always)]
    fn place(&mut self, signature: u64, position: Position) {
        self.counts[Home::of(signature).pair as usize] += 1;
        if !self.draft.place(signature, position.moved()) {
            self.place_in_chain(signature, position.moved());
        }
    }

    #[cold]
    fn place_in_chain(&mut self, signature: u64, position: Position) {
        self.draft.set_overflow(Home::of(signature), OverflowPath::Further);
        let has_taken = |draft: &mut SegmentDraft| draft.place_anywhere(signature, position);
        if !self.chained.last_mut().is_some_and(has_taken) {
            let mut draft = SegmentDraft::new(self.header.with(State::Chained));
            draft.place_anywhere(signature, position);
            self.chained.push(draft);
        }
    }

    /// Reserves the space for the chained segments.
    fn reserve_chained<'a, M: Medium, D: Dram>(
        &self,
        cx: Context<'a, M, D>,
    ) -> Result<Vec<Reservation<'a, D>>, HeapError> {
        self.chained.iter().map(|_| cx.heap.reserve_segment(cx.medium)).collect()
    }

    /// Writes the segments, each with the offset of the next, and returns the offset of the first.
    fn stream<M: Medium, D: Dram>(
        &mut self,
        cx: Context<'_, M, D>,
        first: Reservation<'_, D>,
        chained: Vec<Reservation<'_, D>>,
    ) -> Offset {
        let first = first.publish().offset;
        let chained: Vec<_> = chained.into_iter().map(|reservation| reservation.publish().offset).collect();
        let (mut at, drafts) = (first, [&mut self.draft].into_iter().chain(&mut self.chained));
        for (i, draft) in drafts.enumerate() {
            let next = chained.get(i).copied();
            next.into_iter().for_each(|next| draft.set_next(next));
            draft.stream(cx.medium, at);
            at = next.unwrap_or(at);
        }
        first
    }
}

/// Passes signatures and positions of the entries to move to `each`. A word of a log that is not durable yet stays
/// FRESH in its copy. A removal leaves no copy, so it is made durable first.
#[inline(always)]
fn each_live_entry<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    segment: &Segment,
    mut each: impl FnMut(u64, Position),
) -> Result<(), HeapError> {
    let medium = cx.medium;
    for line in segment.chain(medium).flat_map(entry_lines) {
        for (i, word) in medium.load4(slot(line, 0).position).into_iter().enumerate() {
            let (slot, mut position) = (slot(line, i as u64), Position::from_word(word));
            if position.is_fresh() {
                position = settled_or_fresh(medium, slot, position)?;
            }
            if position.is_live() {
                each(medium.load(slot.signature, Ordering::Relaxed), position);
            }
        }
    }
    Ok(())
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
