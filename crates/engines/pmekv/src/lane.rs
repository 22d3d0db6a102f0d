//! Lanes: each has its own log, a chain of segments. All changes of a key are in one lane, whose log has their order.
//!
//! # A segment begins, under the lane's lock
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 reserve an extent, ahead of need | an extent that nothing names |
//! | 2 write its header, with the number of this opening; order | the same |
//! | 3 store it in the lane's word; flush | the lane with or without the segment |
//!
//! After step 3, no entry of the segment is acknowledged before the word is durable, because both are flushed before
//! one commit.
//!
//! Entries' checksums begin with the header. So old lines in an extent that was a segment before, or that a lane had
//! begun before its word was lost, are not valid entries. Sequences ascend by one and are not reused within an opening,
//! and each opening begins its own segments unless the region is full (`Lanes::go_on`). So no line of a segment is
//! written twice as an entry. Otherwise a torn entry could become valid through half of another entry that is written
//! over it, if both have some words in common.
//!
//! # Lock order
//! The checkpoint's lock, then lanes in ascending order, then all other locks. No thread waits for the medium under a
//! lane's lock.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::Error;
use heap::Place;
use index::Position;
use parking_lot::{Mutex, MutexGuard};
use pmem::{Checksum, Dram, LINE_BYTES, Medium, Offset, seal};

use crate::bytes::{Line, before_check, is_sealed, put_u64, salt, seal_line, u64_at};
use crate::canary;
use crate::entry::Entry;
use crate::layout::{ENTRY_BYTES, SEGMENT_BYTES, SEGMENT_ENTRY_COUNT, lane_word, segment_place};
use crate::region::Region;
use crate::reserve::Keys;

/// A segment's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    /// The segment's offset.
    pub(crate) at: Offset,
    pub(crate) lane: u64,
    pub(crate) opening: u64,
    /// The sequence of its first entry.
    pub(crate) first: u64,
    /// The previous segment, or null.
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

    /// Returns the segment at `at`, if the line is a valid header.
    pub(crate) fn from_line(line: &Line, at: Offset, uuid: &[u8; 16]) -> Option<Segment> {
        is_sealed(line, salt(uuid), &[]).then(|| Segment {
            at,
            lane: u64_at(line, 0),
            opening: u64_at(line, 8),
            first: u64_at(line, 16),
            previous: Offset(u64_at(line, 24)),
        })
    }

    /// Returns the start of the checksums of its entries. It excludes the header's own checksum, after which the state
    /// of every CRC would be the same.
    pub(crate) fn salt(self, uuid: &[u8; 16]) -> Checksum {
        salt(uuid).update(before_check(&self.to_line(uuid)))
    }

    /// Returns the offset of the entry of this sequence.
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
    /// Segments with entries that may not be in the nodes, the newest last.
    pub(crate) segments: VecDeque<Segment>,
    /// Extents for the next segments.
    pub(crate) ahead: Vec<Place>,
    /// The number of entries that fit into the newest segment, and the offset of the next one. 0 if the segment is of
    /// an earlier opening, unless the lane continues in it.
    pub(crate) left: u64,
    pub(crate) at: Offset,
    /// The start of the checksums of entries in the newest segment.
    pub(crate) salt: Checksum,
    pub(crate) keys: Keys,
}

impl Log {
    /// Continues in the newest segment, which gets at most `segment_entry_count` entries.
    fn fill_on(&mut self, uuid: &[u8; 16], segment_entry_count: u64) {
        let Some(newest) = self.segments.back() else { return };
        self.salt = newest.salt(uuid);
        self.left = (newest.first + segment_entry_count).saturating_sub(self.next);
        self.at = newest.entry_at(self.next);
    }

    /// Returns the sequences of the newest segment after the log's last entry.
    pub(crate) fn rest(&self) -> Range<u64> {
        let newest = self.segments.back();
        newest.map_or(0..0, |newest| self.next..newest.first + SEGMENT_ENTRY_COUNT)
    }

    /// Removes the segments whose entries are all up to `cut`, except the newest. A lane that has no segment ahead of
    /// need keeps one of them for that.
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

    /// Returns true if there are segments that a checkpoint removes.
    pub(crate) fn is_long(&self) -> bool {
        self.segments.len() > 1
    }
}

/// All lanes of a store.
pub(crate) struct Lanes {
    all: Vec<Mutex<Log>>,
    uuid: [u8; 16],
    opening: u64,
    /// Entries per segment: its capacity, or fewer in tests.
    segment_entry_count: u64,
    /// Entries since the last checkpoint, approximately.
    entry_count: AtomicU64,
}

impl Lanes {
    /// Creates the lanes. Segments are of earlier openings, whose numbers differ, so no lane continues in one.
    pub(crate) fn new(mut logs: Vec<Log>, uuid: [u8; 16], opening: u64, segment_entry_count: u64) -> Lanes {
        let is_this = |log: &&mut Log| log.segments.back().is_some_and(|newest| newest.opening == opening);
        logs.iter_mut().filter(is_this).for_each(|log| log.fill_on(&uuid, segment_entry_count));
        let all = logs.into_iter().map(Mutex::new).collect();
        Lanes { all, uuid, opening, segment_entry_count, entry_count: AtomicU64::new(0) }
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the lane of keys of this hash.
    pub(crate) fn of(&self, hash: u64) -> usize {
        lane_of(hash, self.all.len())
    }

    pub(crate) fn lock(&self, lane: usize) -> MutexGuard<'_, Log> {
        self.all[lane].lock()
    }

    /// Locks all lanes, which excludes all writers.
    pub(crate) fn lock_all(&self) -> Vec<MutexGuard<'_, Log>> {
        self.all.iter().map(Mutex::lock).collect()
    }

    /// Returns the number of this opening.
    pub(crate) fn opening(&self) -> u64 {
        self.opening
    }

    /// Returns the number of entries since the last checkpoint.
    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count.load(Ordering::Relaxed)
    }

    /// Adds `more` new entries to the count, and subtracts `fewer` that are in the nodes now.
    pub(crate) fn count_entries(&self, more: u64, fewer: u64) {
        self.entry_count.fetch_add(more.wrapping_sub(fewer), Ordering::Relaxed);
    }

    /// Ensures that the log has space for `entries` entries, and then for `spare` further segments.
    #[inline(always)]
    pub(crate) fn provide<M: Medium, D: Dram>(
        &self,
        log: &mut Log,
        region: &Region<M, D>,
        entries: u64,
        spare: usize,
    ) -> Result<(), Error> {
        if entries <= log.left && spare <= log.ahead.len() {
            return Ok(());
        }
        self.reserve(log, region, entries, spare)
    }

    #[cold]
    #[inline(never)]
    fn reserve<M: Medium, D: Dram>(
        &self,
        log: &mut Log,
        region: &Region<M, D>,
        entries: u64,
        spare: usize,
    ) -> Result<(), Error> {
        let lacking = entries.saturating_sub(log.left);
        let wanted = lacking.div_ceil(self.segment_entry_count) as usize + spare;
        while log.ahead.len() < wanted {
            log.ahead.push(region.heap().reserve_extent(region.medium(), SEGMENT_BYTES)?.publish());
        }
        Ok(())
    }

    /// Continues in the newest segment when a full region has no space for a new one. First clears, durably, the lines
    /// there that a crash may have torn.
    pub(crate) fn go_on<M: Medium>(&self, log: &mut Log, medium: &M) {
        let Some(newest) = log.segments.back() else { return };
        log.rest().for_each(|sequence| write_line(medium, newest.entry_at(sequence), &[0; ENTRY_BYTES]));
        medium.order();
        log.fill_on(&self.uuid, self.segment_entry_count);
    }

    /// Writes and flushes an entry after the log's last. The caller has provided space, and orders and counts the
    /// entry. This has no locked instruction, which would wait for all earlier streamed stores.
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
        // The lane's next entry will be written there, unless the segment is full.
        medium.prefetch_for_stream(log.at.span(LINE_BYTES));
    }

    /// Steps 2 and 3.
    #[cold]
    #[inline(never)]
    fn begin<M: Medium>(&self, log: &mut Log, medium: &M) {
        let at = log.ahead.pop().expect("the caller provided space").offset;
        let previous = log.segments.back().map_or(Offset::NULL, |newest| newest.at);
        let segment = Segment { at, lane: log.number as u64, opening: self.opening, first: log.next, previous };
        write_line(medium, at, &segment.to_line(&self.uuid));
        medium.order_unless(canary::WORD_BEFORE_HEADER);
        store_word(medium, lane_word(log.number), at.0);
        log.segments.push_back(segment);
        log.salt = segment.salt(&self.uuid);
        (log.left, log.at) = (self.segment_entry_count, segment.entry_at(log.next));
    }
}

/// Returns the lane of keys of this hash, of `lane_count` lanes.
#[inline(always)]
pub(crate) fn lane_of(hash: u64, lane_count: usize) -> usize {
    // Lanes are few: a 32-bit division is enough.
    ((hash >> 32) as u32 % lane_count as u32) as usize
}

/// Writes a line and flushes it.
#[inline(always)]
pub(crate) fn write_line<M: Medium>(medium: &M, at: Offset, line: &Line) {
    // SAFETY: the caller holds the lane's lock or has exclusive use of the store, and readers do not read logs.
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

    /// Half of a torn entry could otherwise make an entry that is written over it valid.
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
