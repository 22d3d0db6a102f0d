//! A segment under construction: filled in DRAM, then streamed into the region in one piece.

use heap::layout::SEGMENT_BYTES;
use pmem::{LINE_BYTES, Medium, Offset, seal};

use super::layout::{
    Home, LINE_ENTRY_COUNT, NEXT_BYTES, OverflowPath, PREFIX_BYTES, SEGMENT_LINE_COUNT, SegmentHeader, State,
    entry_lines, slot,
};
use super::slot::Slot;
use crate::Position;

const WORD_COUNT: usize = SEGMENT_BYTES as usize / 8;

/// The words of a segment that no other thread can see yet.
pub(super) struct SegmentDraft {
    words: Box<[u64; WORD_COUNT]>,
    /// The number of entries in each line, which are its first ones. A count finds the next free entry without a
    /// branch that depends on the line.
    counts: [u8; SEGMENT_LINE_COUNT as usize],
}

impl SegmentDraft {
    /// Creates an empty segment.
    pub(super) fn new(header: SegmentHeader) -> SegmentDraft {
        let words = vec![0; WORD_COUNT].into_boxed_slice().try_into().expect("the vector has that length");
        let mut draft = SegmentDraft { words, counts: [0; SEGMENT_LINE_COUNT as usize] };
        draft.set_header(header);
        draft
    }

    /// Empties the draft, for another segment.
    pub(super) fn restart(&mut self, header: SegmentHeader) {
        self.words.fill(0);
        self.counts.fill(0);
        self.set_header(header);
    }

    fn set_header(&mut self, header: SegmentHeader) {
        self.words[0] = header.state_word();
        self.words[PREFIX_BYTES as usize / 8] = seal(header.prefix);
    }

    pub(super) fn set_next(&mut self, next: Offset) {
        self.words[NEXT_BYTES as usize / 8] = seal(next.0);
    }

    /// Places an entry where an insert would place it. Returns false if pair and stash are full.
    #[inline(always)]
    pub(super) fn place(&mut self, signature: u64, position: Position) -> bool {
        let home = Home::of(signature);
        let line = home.offset(Offset(0));
        if let Some(slot) = self.free_slot(line) {
            self.put(slot, signature, position);
            return true;
        }
        self.place_further(home, signature, position)
    }

    /// Like [`SegmentDraft::place`], for an entry whose home line is full.
    #[inline(never)]
    fn place_further(&mut self, home: Home, signature: u64, position: Position) -> bool {
        let Some(entry) = first_free_entry(home, Offset(0), |slot| self.position(slot).is_empty()) else {
            return false;
        };
        if let Some(way) = entry.way {
            self.set_overflow(home, way);
        }
        self.put(entry.slot, signature, position);
        true
    }

    /// Places an entry in a chained segment, which is searched from end to end. Returns false if the segment is
    /// full.
    pub(super) fn place_anywhere(&mut self, signature: u64, position: Position) -> bool {
        let Some(slot) = entry_lines(Offset(0)).find_map(|line| self.free_slot(line)) else { return false };
        self.put(slot, signature, position);
        true
    }

    /// Sets the bit that makes a search of `home` continue along the overflow path `way`.
    pub(super) fn set_overflow(&mut self, home: Home, way: OverflowPath) {
        let word = &mut self.words[overflow_word(home, way, Offset(0)).0 as usize / 8];
        *word = Position::from_word(*word).overflow().word();
    }

    /// Writes the draft to `at` and flushes it. Only the caller uses the segment until it is linked.
    pub(super) fn stream<M: Medium>(&self, medium: &M, at: Offset) {
        const { assert!(cfg!(target_endian = "little"), "words are stored as they are") };
        // SAFETY: any initialised words are readable as bytes, eight for each.
        let bytes = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), SEGMENT_BYTES as usize) };
        // SAFETY: the caller reserved the segment and has not linked it.
        unsafe { medium.stream(at, &[bytes]) }
    }

    /// Returns the first free entry of a line.
    #[inline(always)]
    fn free_slot(&self, line: Offset) -> Option<Slot> {
        let count = u64::from(self.counts[line_number(line)]);
        (count < LINE_ENTRY_COUNT).then(|| slot(line, count))
    }

    #[inline(always)]
    fn position(&self, slot: Slot) -> Position {
        Position::from_word(self.words[slot.position.0 as usize / 8])
    }

    #[inline(always)]
    fn put(&mut self, slot: Slot, signature: u64, position: Position) {
        let old = self.position(slot);
        self.words[slot.signature.0 as usize / 8] = signature;
        self.words[slot.position.0 as usize / 8] = position.in_place_of(old).word();
        self.counts[line_number(slot.position)] += 1;
    }
}

/// A free entry, and the overflow path that leads to it from the home line.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeEntry {
    pub(super) slot: Slot,
    pub(super) way: Option<OverflowPath>,
}

/// Returns the number of the line of a draft that holds the byte `at`.
#[inline(always)]
const fn line_number(at: Offset) -> usize {
    (at.0 / LINE_BYTES) as usize
}

/// Returns the entries of a line.
#[inline(always)]
fn slots(line: Offset) -> impl Iterator<Item = Slot> {
    (0..LINE_ENTRY_COUNT).map(move |i| slot(line, i))
}

/// Returns the first free entry for `home` in pair and stash.
pub(super) fn first_free_entry(home: Home, segment: Offset, is_free: impl Fn(Slot) -> bool) -> Option<FreeEntry> {
    let free = |line| slots(line).find(|&slot| is_free(slot));
    if let Some(slot) = free(home.offset(segment)) {
        return Some(FreeEntry { slot, way: None });
    }
    [OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further].into_iter().find_map(|way| {
        let slot = home.lines(way, segment).find_map(free)?;
        Some(FreeEntry { slot, way: Some(way) })
    })
}

/// Returns the position word whose overflow bit stands for `way`.
pub(super) fn overflow_word(home: Home, way: OverflowPath, segment: Offset) -> Offset {
    slot(home.offset(segment), way as u64).position
}

/// Creates an empty live segment.
pub(super) fn empty(header: SegmentHeader) -> SegmentDraft {
    SegmentDraft::new(header.with(State::Live))
}

const _: () = assert!(SEGMENT_BYTES.is_multiple_of(LINE_BYTES));
