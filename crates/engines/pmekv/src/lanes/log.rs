//! The log of one lane.

use std::collections::VecDeque;
use std::ops::Range;

use heap::Place;
use index::Position;
use pmem::{Checksum, LINE_BYTES, Medium, Offset};

use super::segment::{Segment, write_line};
use crate::entry::Entry;
use crate::layout::{SEGMENT_ENTRY_COUNT, segment_place};
use crate::reserve::Keys;

/// A lane's log, under its lock.
#[derive(Default)]
pub(crate) struct Log {
    number: usize,
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
    /// Creates the log of lane `number`, whose next entry has the sequence `next`.
    pub(crate) fn new(number: usize, next: u64, segments: VecDeque<Segment>) -> Log {
        Log { number, next, segments, ..Log::default() }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Returns the sequence of the last entry.
    #[inline(always)]
    pub(crate) fn last(&self) -> u64 {
        self.next - 1
    }

    pub(super) fn newest(&self) -> Option<&Segment> {
        self.segments.back()
    }

    /// Returns the number of entries that fit into the newest segment.
    #[inline(always)]
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the number of extents for the next segments.
    #[inline(always)]
    pub(crate) fn ahead_count(&self) -> usize {
        self.ahead.len()
    }

    #[cfg(test)]
    pub(super) fn next_at(&self) -> Offset {
        self.at
    }

    pub(super) fn add_ahead(&mut self, place: Place) {
        self.ahead.push(place);
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

    /// Continues in the newest segment, which gets at most `segment_entry_count` entries.
    pub(super) fn fill_on(&mut self, uuid: &[u8; 16], segment_entry_count: u64) {
        let Some(newest) = self.segments.back() else { return };
        self.salt = newest.salt(uuid);
        self.left = (newest.first + segment_entry_count).saturating_sub(self.next);
        self.at = newest.entry_at(self.next);
    }

    /// Takes an extent for the next segment, and returns the header of the segment.
    pub(super) fn next_segment(&mut self, opening: u64) -> Segment {
        let at = self.ahead.pop().expect("the caller provided space").offset;
        let previous = self.segments.back().map_or(Offset::NULL, |newest| newest.at);
        Segment { at, lane: self.number as u64, opening, first: self.next, previous }
    }

    /// Begins the segment, whose header is written and named.
    pub(super) fn begin(&mut self, segment: Segment, uuid: &[u8; 16], segment_entry_count: u64) {
        self.segments.push_back(segment);
        self.salt = segment.salt(uuid);
        (self.left, self.at) = (segment_entry_count, segment.entry_at(self.next));
    }

    /// Writes and flushes an entry after the last, in the newest segment.
    #[inline(always)]
    pub(super) fn push<M: Medium>(&mut self, medium: &M, entry: Entry) {
        write_line(medium, self.at, &Entry { sequence: self.next, ..entry }.to_line(self.salt));
        self.keys.note(entry.new != Position::EMPTY, entry.old != Position::EMPTY);
        (self.next, self.left, self.at) = (self.next + 1, self.left - 1, self.at.plus(LINE_BYTES));
        // The lane's next entry will be written there, unless the segment is full.
        medium.prefetch_for_stream(self.at.span(LINE_BYTES));
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
