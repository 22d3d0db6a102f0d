//! Lanes: each has a log of its own, a chain of segments. A key's changes are all in one lane, whose log has their order.
//!
//! # A segment begins, under the lane's lock
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 an extent is reserved, ahead of need | nothing that any word names |
//! | 2 its header is written, with the number of this opening; ordered | the same |
//! | 3 the lane's word names it; flushed | the lane with it, or without: no entry of it is acknowledged before the word is durable, since both are flushed before one commit |
//!
//! Entries' checksums begin with the header: what lies in an extent that was a segment before, or that a lane whose word was
//! lost had begun, is no entry. Sequences ascend by one and are not given twice in one opening, and each opening begins segments of
//! its own, unless the region is full (`Lanes::go_on`). So no line is written twice as an entry of one segment: an entry that a crash has torn could otherwise be made whole
//! by half of another that is written over it, where both have some words in common.
//!
//! # Lock order
//! The checkpoint's lock, then lanes in ascending order, then the rest. Nobody waits for the medium under a lane's lock.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::Error;
use heap::{Heap, Place};
use index::Position;
use parking_lot::{Mutex, MutexGuard};
use pmem::{Checksum, Dram, LINE_BYTES, Medium, Offset, seal};

use crate::bytes::{Line, before_check, is_sealed, put_u64, salt, seal_line, u64_at};
use crate::canary;
use crate::entry::Entry;
use crate::layout::{ENTRY_BYTES, SEGMENT_BYTES, SEGMENT_ENTRY_COUNT, lane_word, segment_place};
use crate::reserve::Keys;

/// A segment's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    /// Where it lies.
    pub(crate) at: Offset,
    pub(crate) lane: u64,
    pub(crate) opening: u64,
    /// The sequence of its first entry.
    pub(crate) first: u64,
    /// The segment before it, or null.
    pub(crate) previous: Offset,
}

impl Segment {
    fn to_line(self, uuid: &[u8; 16]) -> Line {
        let mut line = [0; ENTRY_BYTES];
        put_u64(&mut line, 0, self.lane);
        put_u64(&mut line, 8, self.opening);
        put_u64(&mut line, 16, self.first);
        put_u64(&mut line, 24, self.previous.0);
        seal_line(&mut line, salt(uuid), &[]);
        line
    }

    /// The segment at `at`, if a header lies there.
    pub(crate) fn from_line(line: &Line, at: Offset, uuid: &[u8; 16]) -> Option<Segment> {
        is_sealed(line, salt(uuid), &[]).then(|| Segment {
            at,
            lane: u64_at(line, 0),
            opening: u64_at(line, 8),
            first: u64_at(line, 16),
            previous: Offset(u64_at(line, 24)),
        })
    }

    /// What the checksums of its entries begin with: without the header's own, behind which every checksum is the same.
    pub(crate) fn salt(self, uuid: &[u8; 16]) -> Checksum {
        salt(uuid).update(before_check(&self.to_line(uuid)))
    }

    /// Where the entry of this sequence stands.
    pub(crate) fn entry_at(self, sequence: u64) -> Offset {
        self.at.plus((1 + sequence - self.first) * LINE_BYTES)
    }
}

/// A lane's log, under its lock.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) number: usize,
    /// The sequence of the next entry.
    pub(crate) next: u64,
    /// Segments that have entries which may not be in the nodes, the newest last.
    pub(crate) segments: VecDeque<Segment>,
    /// Extents for the segments that come next.
    pub(crate) ahead: Vec<Place>,
    /// Entries that the newest segment still has room for, and where the next one stands: none if it is of an opening before this one, unless
    /// the lane goes on in it.
    pub(crate) left: u64,
    pub(crate) at: Offset,
    /// What the checksums of entries begin with that are written to the newest segment.
    pub(crate) salt: Checksum,
    pub(crate) keys: Keys,
}

impl Log {
    /// The next entry goes to the newest segment, which gets so many.
    fn fill_on(&mut self, uuid: &[u8; 16], segment_entry_count: u64) {
        let Some(newest) = self.segments.back() else { return };
        self.salt = newest.salt(uuid);
        self.left = (newest.first + segment_entry_count).saturating_sub(self.next);
        self.at = newest.entry_at(self.next);
    }

    /// Entries that lie, or would lie, in the newest segment behind the log's last.
    pub(crate) fn rest(&self) -> Range<u64> {
        let newest = self.segments.back();
        newest.map_or(0..0, |newest| self.next..newest.first + SEGMENT_ENTRY_COUNT)
    }

    /// Takes away segments all of whose entries lie up to `cut`, but for the newest. A lane that has none ahead of need keeps one for that.
    pub(crate) fn cut(&mut self, cut: u64) -> Vec<Offset> {
        let mut gone = Vec::new();
        while self.segments.get(1).is_some_and(|second| second.first <= cut + 1) {
            gone.extend(self.segments.pop_front().map(|segment| segment.at));
        }
        if self.ahead.is_empty() {
            self.ahead.extend(gone.pop().map(segment_place));
        }
        gone
    }

    /// There are segments that a checkpoint takes away.
    pub(crate) fn is_long(&self) -> bool {
        self.segments.len() > 1
    }
}

/// All lanes of a store.
pub(crate) struct Lanes {
    all: Vec<Mutex<Log>>,
    uuid: [u8; 16],
    opening: u64,
    /// Entries that a segment gets: all that it has room for, but in tests.
    segment_entry_count: u64,
    /// Entries since the last checkpoint, as far as was counted.
    entry_count: AtomicU64,
}

impl Lanes {
    /// Segments are of earlier openings, each of which had a number of its own: none is gone on in.
    pub(crate) fn new(mut logs: Vec<Log>, uuid: [u8; 16], opening: u64, segment_entry_count: u64) -> Lanes {
        let is_this = |log: &&mut Log| log.segments.back().is_some_and(|newest| newest.opening == opening);
        logs.iter_mut().filter(is_this).for_each(|log| log.fill_on(&uuid, segment_entry_count));
        let all = logs.into_iter().map(Mutex::new).collect();
        Lanes { all, uuid, opening, segment_entry_count, entry_count: AtomicU64::new(0) }
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// The lane of keys of this hash.
    pub(crate) fn of(&self, hash: u64) -> usize {
        lane_of(hash, self.all.len())
    }

    pub(crate) fn lock(&self, lane: usize) -> MutexGuard<'_, Log> {
        self.all[lane].lock()
    }

    /// All lanes, so that nobody writes.
    pub(crate) fn lock_all(&self) -> Vec<MutexGuard<'_, Log>> {
        self.all.iter().map(Mutex::lock).collect()
    }

    /// The number of this opening.
    pub(crate) fn opening(&self) -> u64 {
        self.opening
    }

    /// Entries since the last checkpoint.
    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count.load(Ordering::Relaxed)
    }

    /// So many entries are in the nodes, or there are so many more that are not.
    pub(crate) fn count_entries(&self, more: u64, fewer: u64) {
        self.entry_count.fetch_add(more.wrapping_sub(fewer), Ordering::Relaxed);
    }

    /// Sees that the log has room for so many entries, and then for `spare` segments more.
    #[inline(always)]
    pub(crate) fn provide<M: Medium, D: Dram>(
        &self,
        log: &mut Log,
        (medium, heap): (&M, &Heap<D>),
        entries: u64,
        spare: usize,
    ) -> Result<(), Error> {
        if entries <= log.left && spare <= log.ahead.len() {
            return Ok(());
        }
        self.reserve(log, (medium, heap), entries, spare)
    }

    #[cold]
    #[inline(never)]
    fn reserve<M: Medium, D: Dram>(
        &self,
        log: &mut Log,
        (medium, heap): (&M, &Heap<D>),
        entries: u64,
        spare: usize,
    ) -> Result<(), Error> {
        let lacking = entries.saturating_sub(log.left);
        let wanted = lacking.div_ceil(self.segment_entry_count) as usize + spare;
        while log.ahead.len() < wanted {
            log.ahead.push(heap.reserve_extent(medium, SEGMENT_BYTES)?.publish());
        }
        Ok(())
    }

    /// Where a full region has no room for a segment of this opening: the lane goes on in the newest, once what a crash may have torn
    /// there is nothing, durably.
    pub(crate) fn go_on<M: Medium>(&self, log: &mut Log, medium: &M) {
        let Some(newest) = log.segments.back() else { return };
        log.rest().for_each(|sequence| write_line(medium, newest.entry_at(sequence), &[0; ENTRY_BYTES]));
        medium.order();
        log.fill_on(&self.uuid, self.segment_entry_count);
    }

    /// Writes an entry behind the log's last and flushes it. Room was provided; the order, and counting the entry, are the caller's.
    /// Nothing here is a locked instruction, which would wait for what was stored past the cache before it.
    #[inline(always)]
    pub(crate) fn append<M: Medium>(&self, log: &mut Log, medium: &M, entry: Entry) {
        if log.left == 0 {
            self.begin(log, medium);
        }
        write_line(medium, log.at, &Entry { sequence: log.next, ..entry }.to_line(log.salt));
        let (begins, ends) = (entry.new != Position::EMPTY, entry.old != Position::EMPTY);
        log.keys.left -= u64::from(begins & !ends);
        log.keys.gone += u64::from(ends & !begins);
        (log.next, log.left, log.at) = (log.next + 1, log.left - 1, log.at.plus(LINE_BYTES));
        // The lane's next entry will be written there, if the segment goes so far.
        medium.prefetch_for_stream(log.at.span(LINE_BYTES));
    }

    /// Steps 2 and 3.
    #[cold]
    #[inline(never)]
    fn begin<M: Medium>(&self, log: &mut Log, medium: &M) {
        let at = log.ahead.pop().expect("room was provided").offset;
        let previous = log.segments.back().map_or(Offset::NULL, |newest| newest.at);
        let segment = Segment { at, lane: log.number as u64, opening: self.opening, first: log.next, previous };
        write_line(medium, at, &segment.to_line(&self.uuid));
        if !medium.breaks(canary::WORD_BEFORE_HEADER) {
            medium.order();
        }
        store_word(medium, lane_word(log.number), at.0);
        log.segments.push_back(segment);
        log.salt = segment.salt(&self.uuid);
        (log.left, log.at) = (self.segment_entry_count, segment.entry_at(log.next));
    }
}

/// The lane of keys of this hash, of so many.
#[inline(always)]
pub(crate) fn lane_of(hash: u64, lane_count: usize) -> usize {
    // There are few: half a division.
    ((hash >> 32) as u32 % lane_count as u32) as usize
}

/// Writes a line and flushes it.
#[inline(always)]
pub(crate) fn write_line<M: Medium>(medium: &M, at: Offset, line: &Line) {
    // SAFETY: the caller holds the lane's lock or is alone with the store, and no reader looks at logs.
    unsafe { medium.stream(at, &[line]) };
}

/// Stores a sealed word and flushes it.
pub(crate) fn store_word<M: Medium>(medium: &M, at: Offset, payload: u64) {
    medium.store(at, seal(payload), Ordering::Release);
    medium.flush(at.span(8));
}

#[cfg(test)]
mod tests {
    use pmem::Persist;
    use pmem_sim::{Model, Sim};

    use super::*;

    /// Half of an entry that a crash has torn could otherwise make one whole that is written over it.
    #[test]
    fn lane_continues_after_torn_line() {
        let sim = Sim::new(1 << 20, Model::Line);
        let newest = Segment { at: Offset(1 << 16), lane: 0, opening: 1, first: 1, previous: Offset::NULL };
        let (kept, torn) = (newest.entry_at(1), newest.entry_at(2));
        [kept, torn].iter().for_each(|at| write_line(&sim, *at, &[0xFF; ENTRY_BYTES]));
        sim.order();
        let mut log = Log { next: 2, segments: [newest].into(), ..Log::default() };
        Lanes::new(Vec::new(), [7; 16], 2, SEGMENT_ENTRY_COUNT).go_on(&mut log, &sim);
        for image in sim.images(64, 0) {
            assert_eq!((image.line(kept), image.line(torn)), ([u64::MAX; 8], [0; 8]), "{image}");
        }
        assert_eq!((log.left, log.at), (SEGMENT_ENTRY_COUNT - 1, torn));
    }

    #[test]
    fn entries_of_one_segment_are_none_of_another() {
        let segment = Segment { at: Offset(64), lane: 1, opening: 1, first: 1, previous: Offset(128) };
        let others = [
            Segment { lane: 2, ..segment },
            Segment { opening: 2, ..segment },
            Segment { first: 2, ..segment },
            Segment { previous: Offset(64), ..segment },
        ];
        let uuid = [7; 16];
        for other in others {
            assert_ne!(segment.salt(&uuid).value(), other.salt(&uuid).value(), "{other:?}");
        }
        assert_eq!(Segment::from_line(&segment.to_line(&uuid), segment.at, &uuid), Some(segment));
        assert_eq!(Segment::from_line(&segment.to_line(&uuid), segment.at, &[8; 16]), None);
    }
}
