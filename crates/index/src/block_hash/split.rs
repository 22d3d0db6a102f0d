//! Splits a full segment in two, or chains a new segment to it if a split would not free space.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 freeze: partition lock, then all locks of the segment | nothing |
//! | 2a two new segments, PENDING, streamed | free space |
//! | 2b if lock bits were found: meta words with lock bits published; failure ends the split | free space |
//! | 2c ordered | free space |
//! | 3 the partition's split record, its commit word last in the line; ordered | a split that recovery finishes |
//! | 4 states LIVE, LIVE, DEAD; ordered | the same |
//! | 5 the record is cleared; ordered | the completed split |
//! | 6a the directory names the halves; the old segment is marked dead | the same |
//! | 6b the locks are released; the old segment is retired | the same |
//!
//! A slot stays in the bucket with its number, so each bucket of the halves has space for new items. A split never
//! stops readers: the buckets of the old segment stay as they were at the freeze, and stay correct until step 6.
//!
//! Writers wait while the segment is locked, so a split does nothing slow in that time. The space for the new
//! segments is reserved before, and its pages are populated. So if a file has to grow for this, no writer waits for
//! a bucket during that. If the old segment has more chained segments than were reserved for, the split releases
//! the bucket locks and reserves more. The partition's lock comes first. So if another thread splits the segment
//! first, this thread has reserved nothing, and has taken no space of a nearly full region from other threads.

use std::sync::atomic::Ordering;

use heap::layout::SEGMENT_BYTES;
use heap::{HeapError, Reservation};
use pmem::{Dram, Medium, MediumError, Offset, Taken, seal};

use super::canary;
use super::image::{Image, SegmentImage, Words};
use super::layout::{BUCKET_COUNT, FILLED_MAX, bucket, choices};
use super::segment::Segment;
use super::write::Full;
use super::{BlockHash, Slot};
use crate::segmented::layout::{DEPTH_MAX, NEXT_BYTES, SegmentHeader, State};
use crate::segmented::record::{SplitRecord, record_of};
use crate::segmented::{Context, Garbage, Segmented, Table};

/// Splits free space if a key in the full buckets differs from the new key within so many bits.
const DISTINGUISHING_BITS: u32 = 8;

/// The segments that most splits need: one for each half.
const RESERVED_COUNT: usize = 2;

/// Reserved segments whose pages are populated.
type Reservations<'a, D> = Vec<Reservation<'a, D>>;

/// The result of an attempt to split.
enum Attempt {
    /// There is space for the key.
    Ended,
    /// Nothing has changed: so many segments are needed.
    Short(usize),
}

/// One of the two new segments, with the segments that must be chained to it.
struct Half {
    header: SegmentHeader,
    buckets: Vec<[Image; BUCKET_COUNT]>,
    item_count: u64,
}

impl BlockHash {
    /// Makes space for `signature` in the segment that was full, if that is still its segment. The caller holds no
    /// bucket.
    ///
    /// # Errors
    /// Returns the allocator's error, or damage to a slot; then nothing has changed.
    pub fn split<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        signature: u64,
        full: Full,
    ) -> Result<(), HeapError> {
        self.split_for(cx, signature, full, &[])
    }

    /// Like [`BlockHash::split`], if `others` are about to be inserted also. These signatures are ascending. They
    /// count in the decision whether a split frees space.
    pub(super) fn split_for<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        signature: u64,
        full: Full,
        others: &[u64],
    ) -> Result<(), HeapError> {
        let _pin = epoch::pin();
        let partition = self.geometry.partition(signature);
        let _partition = self.partitions[partition].lock();
        let segment = self.segment(signature);
        if segment.offset() != full.segment {
            return Ok(());
        }
        let (mut reservations, mut count) = (Reservations::new(), RESERVED_COUNT);
        loop {
            // Fewer reservations than wanted may still be enough.
            let made_ready = make_ready(cx, &mut reservations, count);
            match self.try_split(cx, segment, signature, others, &mut reservations)? {
                Attempt::Ended => return Ok(()),
                Attempt::Short(needed_count) => count = needed_count,
            }
            made_ready?;
        }
    }

    /// Carries out steps 1 to 6 with the reserved segments. The caller has locked the partition.
    fn try_split<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        segment: &Segment,
        signature: u64,
        others: &[u64],
        reservations: &mut Reservations<'_, D>,
    ) -> Result<Attempt, HeapError> {
        let partition = self.geometry.partition(signature);
        let _frozen = segment.lock_all();
        segment.make_durable(cx.medium);
        let images = segment.images(cx.medium);
        if !self.do_splits_help(segment, signature, &images, others) {
            return Ok(self.chain(cx, segment, partition, reservations));
        }
        let is_unsettled = images.iter().any(|(.., image)| image.meta().is_any_locked());
        let mut halves = [0, 1].map(|bit| Half::new(child(cx, segment, partition, bit)));
        for (number, at, image) in &images {
            for (_, slot) in image.slots() {
                let damaged = HeapError::Damaged { offset: at.0, what: "a slot's bytes are damaged" };
                let signature = self.signature_of(&slot).filter(|_| slot.is_intact()).ok_or(damaged)?;
                let bit = self.geometry.prefix(signature, segment.depth() + 1) & 1;
                halves[bit as usize].place(*number, &slot);
            }
        }
        let is_unsettled = is_unsettled && !cx.medium.breaks(canary::LOCK_BITS_LOST_BY_SPLIT);
        let needed_count = halves.iter().map(|half| half.buckets.len()).sum();
        if reservations.len() < needed_count {
            return Ok(Attempt::Short(needed_count));
        }
        let tables = commit_split(cx, segment, partition, &halves, reservations, is_unsettled)?;
        self.switch(cx, segment, partition, tables);
        self.note_crowding();
        self.split_count.fetch_add(1, Ordering::Relaxed);
        Ok(Attempt::Ended)
    }

    /// Returns true if, after some splits from now on, a key that fills or is going to fill the buckets of `wanted`
    /// is in another segment.
    fn do_splits_help(
        &self,
        segment: &Segment,
        wanted: u64,
        images: &[(usize, Offset, Image)],
        others: &[u64],
    ) -> bool {
        let depth = (segment.depth() + DISTINGUISHING_BITS).min(DEPTH_MAX);
        let numbers = choices(wanted);
        let prefix = |signature| self.geometry.prefix(signature, depth);
        let slots = images.iter().filter(|(number, ..)| numbers.contains(number)).flat_map(|(.., image)| image.slots());
        let place =
            |signature: u64| (self.geometry.partition(signature), self.geometry.prefix(signature, segment.depth()));
        let start = others.partition_point(|&other| place(other) < place(wanted));
        let own = others[start..].iter().take_while(|&&other| place(other) == place(wanted));
        let to_come = own.filter(|&&other| choices(other).iter().any(|number| numbers.contains(number)));
        let mut all = slots.filter_map(|(_, slot)| self.signature_of(&slot)).chain(to_come.copied());
        segment.depth() < depth && all.any(|other| prefix(other) != prefix(wanted))
    }

    /// Carries out step 6, except for the release of the locks.
    fn switch<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        old: &Segment,
        partition: usize,
        halves: [Box<Segment>; 2],
    ) {
        let places = old.places();
        let table = self.root().put_halves(cx, partition, old, halves, false);
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
        reservations: &mut Reservations<'_, D>,
    ) -> Attempt {
        let Some(reserved) = reservations.pop() else { return Attempt::Short(1) };
        let image = SegmentImage::new(child(cx, segment, partition, 0).with(State::Chained));
        let place = reserved.publish();
        image.stream(cx.medium, place.offset);
        cx.medium.order();
        let last = segment.offsets().last().expect("a chain begins with the segment itself").plus(NEXT_BYTES);
        cx.medium.store(last, seal(place.offset.0), Ordering::Release);
        cx.medium.flush(last.span(8));
        cx.medium.order();
        segment.link(place.offset);
        self.note_crowding();
        self.chained_count.fetch_add(1, Ordering::Relaxed);
        Attempt::Ended
    }
}

/// Reserves segments until there are `count`. The caller holds no bucket lock, because the file may have to grow.
fn make_ready<'a, M: Medium, D: Dram>(
    cx: Context<'a, M, D>,
    reservations: &mut Reservations<'a, D>,
    count: usize,
) -> Result<(), HeapError> {
    while reservations.len() < count {
        let reserved = cx.heap.reserve_segment(cx.medium)?;
        cx.medium.populate(reserved.place().offset.span(SEGMENT_BYTES));
        reservations.push(reserved);
    }
    Ok(())
}

fn child<M: Medium, D: Dram>(cx: Context<'_, M, D>, parent: &Segment, partition: usize, bit: u64) -> SegmentHeader {
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
    cx: Context<'_, M, D>,
    old: &Segment,
    partition: usize,
    halves: &[Half; 2],
    reservations: &mut Reservations<'_, D>,
    is_unsettled: bool,
) -> Result<[Box<Segment>; 2], HeapError> {
    let [zero, one] =
        [halves[0].stream(cx, reservations, is_unsettled)?, halves[1].stream(cx, reservations, is_unsettled)?];
    cx.medium.order_unless(canary::BLOCK_SPLIT_BEFORE_SEGMENTS);
    let halves_at = [zero.offset(), one.offset()];
    let split = SplitRecord { at: record_of(partition as u32), old: old.offset(), halves: halves_at };
    split.commit(cx.medium);
    split.finish(cx)?;
    Ok([zero, one])
}

impl Half {
    fn new(header: SegmentHeader) -> Half {
        Half { header, buckets: vec![[Image::EMPTY; BUCKET_COUNT]], item_count: 0 }
    }

    /// Places a slot in the bucket of its number, in a chained segment if necessary.
    fn place(&mut self, number: usize, slot: &Slot) {
        let has_space = |buckets: &[Image; BUCKET_COUNT]| buckets[number].meta().filled() < FILLED_MAX;
        if !self.buckets.iter().any(has_space) {
            self.buckets.push([Image::EMPTY; BUCKET_COUNT]);
        }
        let buckets = self.buckets.iter_mut().find(|buckets| has_space(buckets)).expect("one was just added");
        let i = buckets[number].meta().free_slot().expect("it has space");
        buckets[number].set(i, slot);
        self.item_count += 1;
    }

    /// Writes the segments to the reserved places, each with the offset of the next, and returns the table of the
    /// first. If something in the old segment was not durable, everything here gets lock bits until the log makes
    /// it durable.
    fn stream<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        reservations: &mut Reservations<'_, D>,
        is_unsettled: bool,
    ) -> Result<Box<Segment>, MediumError> {
        let reserved = reservations.drain(reservations.len() - self.buckets.len()..);
        let offsets: Vec<_> = reserved.map(|reserved| reserved.publish().offset).collect();
        for (i, buckets) in self.buckets.iter().enumerate() {
            let state = if i == 0 { State::Pending } else { State::Chained };
            let mut image = SegmentImage::new(self.header.with(state));
            offsets.get(i + 1).into_iter().for_each(|&next| image.set_next(next));
            buckets.iter().enumerate().for_each(|(number, bucket)| image.set_bucket(number, &bucket.unlocked()));
            image.stream(cx.medium, offsets[i]);
        }
        let table = Segment::new(offsets[0], self.header, true);
        offsets[1..].iter().for_each(|&offset| table.link(offset));
        table.set_count(self.item_count);
        if is_unsettled {
            self.publish_locked(cx.medium, &offsets)?;
        }
        Ok(table)
    }

    /// Publishes all meta words with lock bits. Returns an error if the medium has failed, because without lock
    /// bits readers would take the items for durable.
    fn publish_locked<M: Medium>(&self, medium: &M, offsets: &[Offset]) -> Result<(), MediumError> {
        for (buckets, &segment) in self.buckets.iter().zip(offsets) {
            for (number, image) in buckets.iter().enumerate() {
                let at = bucket(segment, number);
                if medium.publish(&[(at, image.meta().locked().word())], at.0) == Taken::No {
                    return medium.health();
                }
            }
        }
        Ok(())
    }
}
