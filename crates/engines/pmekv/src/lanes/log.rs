//! The log of one lane.

use std::collections::VecDeque;
use std::ops::Range;

use engine::Error;
use heap::Place;
use index::Position;
use pmem::{Checksum, Dram, LINE_BYTES, Medium, Offset};

use super::segment::{Segment, store_word, write_line};
use crate::canary;
use crate::entry::Entry;
use crate::layout::{ENTRY_BYTES, SEGMENT_BYTES, SEGMENT_ENTRY_COUNT, lane_word, segment_place};
use crate::region::Region;
use crate::reserve::Keys;

/// What the segments of an opening have in common.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) uuid: [u8; 16],
    pub(super) opening: u64,
    /// Entries per segment: its capacity, or fewer in tests.
    pub(super) entry_count: u64,
}

/// A lane's log, under its lock.
pub(crate) struct Log {
    number: usize,
    form: Form,
    /// The sequence of the next entry.
    next: u64,
    /// Segments with entries that may not be in the nodes, the newest last.
    segments: VecDeque<Segment>,
    /// Extents for the next segments.
    ahead: Vec<Place>,
    /// The number of entries that fit into the newest segment, and the offset of the next one. 0 if the segment is of
    /// an earlier opening, unless the lane continues in it.
    left: u64,
    at: Offset,
    /// The start of the checksums of entries in the newest segment.
    salt: Checksum,
    keys: Keys,
}

impl Log {
    /// Creates the log of lane `number`, whose next entry has the sequence `next`. Segments are of earlier openings,
    /// whose numbers differ, so the lane continues in none.
    pub(super) fn new(number: usize, form: Form, (next, segments): (u64, VecDeque<Segment>)) -> Log {
        let (ahead, left, at) = (Vec::new(), 0, Offset::NULL);
        let mut log =
            Log { number, form, next, segments, ahead, left, at, salt: Checksum::default(), keys: Keys::default() };
        if log.segments.back().is_some_and(|newest| newest.opening == form.opening) {
            log.fill_on();
        }
        log
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Returns the sequence of the last entry.
    #[inline(always)]
    pub(crate) fn last(&self) -> u64 {
        self.next - 1
    }

    /// Returns the number of extents for the next segments.
    #[inline(always)]
    pub(crate) fn ahead_count(&self) -> usize {
        self.ahead.len()
    }

    /// Removes the extents ahead of need, except `count`.
    pub(super) fn keep_ahead(&mut self, count: usize) -> Vec<Place> {
        self.ahead.split_off(count)
    }

    /// Returns the keys that the lane may add, and those that it has deleted.
    #[inline(always)]
    pub(crate) fn keys(&mut self) -> &mut Keys {
        &mut self.keys
    }

    /// Returns the places of the segments, and of the extents ahead of need.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let segments = self.segments.iter().map(|segment| segment_place(segment.at));
        segments.chain(self.ahead.iter().copied())
    }

    /// Returns the sequences of the newest segment after the log's last entry.
    pub(super) fn rest(&self) -> Range<u64> {
        let newest = self.segments.back();
        newest.map_or(0..0, |newest| self.next..newest.first + SEGMENT_ENTRY_COUNT)
    }

    /// Ensures that there is space for `entries` entries, and then for `spare` further segments.
    #[inline(always)]
    pub(super) fn provide<M: Medium, D: Dram>(
        &mut self,
        region: &Region<M, D>,
        entries: u64,
        spare: usize,
    ) -> Result<(), Error> {
        if entries <= self.left && spare <= self.ahead.len() {
            return Ok(());
        }
        self.reserve(region, entries, spare)
    }

    #[cold]
    #[inline(never)]
    fn reserve<M: Medium, D: Dram>(&mut self, region: &Region<M, D>, entries: u64, spare: usize) -> Result<(), Error> {
        let lacking = entries.saturating_sub(self.left);
        let wanted = lacking.div_ceil(self.form.entry_count) as usize + spare;
        while self.ahead.len() < wanted {
            self.ahead.push(region.heap().reserve_extent(region.medium(), SEGMENT_BYTES)?.publish());
        }
        Ok(())
    }

    /// Reserves again the segment ahead of need, if there is a log and as long as there is space.
    pub(super) fn refill_ahead<M: Medium, D: Dram>(&mut self, region: &Region<M, D>) {
        if !self.segments.is_empty() && self.provide(region, 0, 1).is_err() {
            self.go_on(region.medium());
        }
    }

    /// Continues in the newest segment when a full region has no space for a new one. First clears, durably, the lines
    /// there that a crash may have torn.
    fn go_on<M: Medium>(&mut self, medium: &M) {
        let Some(newest) = self.segments.back() else { return };
        self.rest().for_each(|sequence| write_line(medium, newest.entry_at(sequence), &[0; ENTRY_BYTES]));
        medium.order();
        self.fill_on();
    }

    /// Continues in the newest segment.
    fn fill_on(&mut self) {
        let Some(newest) = self.segments.back() else { return };
        self.salt = newest.salt(&self.form.uuid);
        self.left = (newest.first + self.form.entry_count).saturating_sub(self.next);
        self.at = newest.entry_at(self.next);
    }

    /// Writes and flushes an entry after the last. The caller has provided space, and orders and counts the entry. This
    /// has no locked instruction, which would wait for all earlier streamed stores.
    #[inline(always)]
    pub(crate) fn append<M: Medium>(&mut self, medium: &M, entry: Entry) {
        if self.left == 0 {
            self.begin(medium);
        }
        write_line(medium, self.at, &Entry { sequence: self.next, ..entry }.to_line(self.salt));
        self.keys.note(entry.new != Position::EMPTY, entry.old != Position::EMPTY);
        (self.next, self.left, self.at) = (self.next + 1, self.left - 1, self.at.plus(LINE_BYTES));
        // The lane's next entry will be written there, unless the segment is full.
        medium.prefetch_for_stream(self.at.span(LINE_BYTES));
    }

    /// Begins a segment: steps 2 and 3.
    #[cold]
    #[inline(never)]
    fn begin<M: Medium>(&mut self, medium: &M) {
        let Form { uuid, opening, entry_count } = self.form;
        let at = self.ahead.pop().expect("the caller provided space").offset;
        let previous = self.segments.back().map_or(Offset::NULL, |newest| newest.at);
        let segment = Segment { at, lane: self.number as u64, opening, first: self.next, previous };
        write_line(medium, at, &segment.to_line(&uuid));
        medium.order_unless(canary::WORD_BEFORE_HEADER);
        store_word(medium, lane_word(self.number), at.0);
        self.segments.push_back(segment);
        self.salt = segment.salt(&uuid);
        (self.left, self.at) = (entry_count, segment.entry_at(self.next));
    }

    /// Removes the segments whose entries are all up to `cut`, except the newest. A lane that has no segment ahead of
    /// need keeps one of them for that.
    pub(super) fn cut(&mut self, cut: u64) -> Vec<Offset> {
        let mut gone = Vec::new();
        while self.segments.get(1).is_some_and(|second| second.first <= cut + 1) {
            gone.extend(self.segments.pop_front().map(|segment| segment.at));
        }
        if self.ahead.is_empty() {
            self.ahead.extend(gone.pop().map(segment_place));
        }
        gone
    }

    /// Returns true if there will be segments that a checkpoint removes, after `more_entries` entries.
    pub(super) fn is_long_after(&self, more_entries: u64) -> bool {
        self.segments.len() + usize::from(more_entries > self.left) > 1
    }
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
        let form = Form { uuid: [7; 16], opening: 2, entry_count: SEGMENT_ENTRY_COUNT };
        let mut log = Log::new(0, form, (2, [newest].into()));
        log.go_on(&sim);
        for image in sim.images(64, 0) {
            assert_eq!((image.line(kept), image.line(torn)), ([u64::MAX; 8], [0; 8]), "{image}");
        }
        assert_eq!((log.left, log.at), (SEGMENT_ENTRY_COUNT - 1, torn));
    }
}
