//! Reads the lanes' logs.

use std::collections::VecDeque;

use heap::{Heap, HeapError};
use pmem::{Dram, LINE_BYTES, Medium, Offset, Span};

use super::lost::damaged;
use super::words::newest;
use crate::bytes::Line;
use crate::entry::{Entry, Kind};
use crate::lanes::Segment;
use crate::layout::{SEGMENT_ENTRY_COUNT, segment_place};

/// A lane's log, as found.
pub(super) struct FoundLog {
    pub(super) lane: usize,
    /// The last sequence whose entries are in the nodes.
    pub(super) cut: u64,
    /// The segments that have entries after the cut, or the newest segment.
    pub(super) segments: VecDeque<Segment>,
    /// The entries after the cut, by sequence; `None` where no intact entry is.
    pub(super) entries: Vec<Option<Entry>>,
    /// The entries that end batches.
    pub(super) ends: Vec<Entry>,
    /// The last sequence up to which everything was durable.
    pub(super) mark: u64,
    /// For each entry, true if it is valid.
    pub(super) counts: Vec<bool>,
    /// The records of valid entries above the mark.
    pub(super) records: Vec<Span>,
}

/// Reads the log of a lane after its cut, from these segments.
pub(super) fn read<M: Medium, D: Dram>(
    medium: &M,
    heap: &Heap<D>,
    (lane, cut): (usize, u64),
    segments: &VecDeque<Segment>,
) -> Result<FoundLog, HeapError> {
    let (uuid, segments) = (heap.region().superblock().uuid, segments.clone());
    let (mut entries, mut ends) = (Vec::with_capacity(segments.len() * SEGMENT_ENTRY_COUNT as usize), Vec::new());
    for (number, segment) in segments.iter().enumerate() {
        let full = segment.first + SEGMENT_ENTRY_COUNT;
        let past = segments.get(number + 1).map_or(full, |next| next.first.min(full));
        let salt = segment.salt(&uuid);
        for sequence in segment.first.max(cut + 1)..past {
            let line = read_line(medium, segment.entry_at(sequence))?;
            let entry = Entry::from_line(&line, salt, sequence);
            ends.extend(entry.filter(|entry| entry.kind == Kind::BatchEnd));
            entries.push(entry);
        }
    }
    let past = entries.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    entries.truncate(past);
    let mark = entries.iter().flatten().map(|entry| entry.durable).max().unwrap_or(cut).max(cut);
    let found = FoundLog { lane, cut, segments, entries, ends, mark, counts: Vec::new(), records: Vec::new() };
    found.is_complete().map(|()| found)
}

/// Returns a lane's segments, from the one with the first entry after the cut to the newest.
pub(super) fn chain<M: Medium, D: Dram>(
    medium: &M,
    heap: &Heap<D>,
    lane: usize,
    cut: u64,
) -> Result<VecDeque<Segment>, HeapError> {
    let (mut segments, mut at) = (VecDeque::<Segment>::new(), newest(medium, lane)?);
    while segments.front().is_none_or(|oldest| oldest.first > cut + 1) {
        if at.is_null() && segments.is_empty() {
            break;
        }
        let wrong = |what| HeapError::Damaged { offset: at.0, what };
        heap.table().check_place(segment_place(at)).map_err(damaged)?;
        let segment = Segment::from_line(&read_line(medium, at)?, at, &heap.region().superblock().uuid)
            .filter(|segment| segment.lane == lane as u64)
            .ok_or(wrong("a segment's header is damaged"))?;
        // A segment that an opening began for an entry that a crash undid has no entries.
        let order = |segment: &Segment| (segment.first, segment.opening);
        if segments.front().is_some_and(|after| order(after) <= order(&segment)) {
            return Err(wrong("a lane's segments are out of order"));
        }
        at = segment.previous;
        segments.push_front(segment);
    }
    Ok(segments)
}

fn read_line<M: Medium>(medium: &M, at: Offset) -> Result<Line, HeapError> {
    // SAFETY: no thread writes while the store is being opened.
    let bytes = unsafe { medium.bytes(at.span(LINE_BYTES)) }?;
    Ok(bytes.try_into().expect("a line"))
}

impl FoundLog {
    /// Returns the sequence of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.cut + 1 + self.entries.len() as u64
    }

    /// Returns the sequence of the entry with this index.
    pub(super) fn sequence(&self, number: usize) -> u64 {
        self.cut + 1 + number as u64
    }

    /// Returns the offset of the entry with this index.
    fn at(&self, number: usize) -> Offset {
        let sequence = self.sequence(number);
        self.segment(sequence).entry_at(sequence)
    }

    fn segment(&self, sequence: u64) -> &Segment {
        self.segments.iter().rev().find(|segment| segment.first <= sequence).expect("entries lie in segments")
    }

    /// Returns an error if an entry up to the mark is missing.
    fn is_complete(&self) -> Result<(), HeapError> {
        let hole = self.entries.iter().position(Option::is_none).filter(|&number| self.sequence(number) <= self.mark);
        match hole {
            None if self.mark < self.next() => Ok(()),
            hole => {
                let offset = hole.map_or(0, |number| self.at(number).0);
                Err(HeapError::Damaged { offset, what: "an entry of the log is damaged" })
            }
        }
    }

    /// Returns the valid entries, in order.
    pub(super) fn counted(&self) -> impl DoubleEndedIterator<Item = &Entry> + Clone {
        self.entries.iter().zip(&self.counts).filter(|(_, counts)| **counts).filter_map(|(entry, _)| entry.as_ref())
    }

    /// Returns the void entries that overwrite invalid entries, and their offsets.
    pub(super) fn voids(&self, uuid: &[u8; 16]) -> impl Iterator<Item = (Offset, Line)> {
        let dropped = (0..self.entries.len()).filter(|&number| !self.counts[number]);
        dropped.filter(|&number| self.entries[number].is_none_or(|entry| !entry.is_void())).map(|number| {
            let sequence = self.sequence(number);
            let salt = self.segment(sequence).salt(uuid);
            (self.at(number), Entry { sequence, ..Entry::VOID }.to_line(salt))
        })
    }

    /// Flushes the valid entries of the tail and their records.
    pub(super) fn flush_tail<M: Medium>(&self, medium: &M) -> Result<(), HeapError> {
        let above = (0..self.entries.len()).filter(|&number| self.sequence(number) > self.mark);
        above.for_each(|number| medium.flush(self.at(number).span(LINE_BYTES)));
        self.records.iter().for_each(|record| medium.flush(*record));
        Ok(())
    }
}
