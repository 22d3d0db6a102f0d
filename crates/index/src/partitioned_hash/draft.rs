//! A segment under construction: filled in DRAM, then streamed into the region in one piece.

use heap::layout::SEGMENT_BYTES;
use pmem::{LINE_BYTES, Medium, Offset, seal};

use super::layout::{
    Home, LINE_ENTRY_COUNT, NEXT_BYTES, OverflowPath, PREFIX_BYTES, SegmentHeader, State, entry_lines, slot,
};
use super::slot::Slot;
use crate::Position;

const WORD_COUNT: usize = SEGMENT_BYTES as usize / 8;

/// The words of a segment that no other thread can see yet.
pub(super) struct SegmentDraft(Box<[u64; WORD_COUNT]>);

impl SegmentDraft {
    /// Creates an empty segment.
    pub(super) fn new() -> SegmentDraft {
        SegmentDraft(vec![0; WORD_COUNT].into_boxed_slice().try_into().expect("the vector has that length"))
    }

    pub(super) fn set_header(&mut self, header: SegmentHeader) {
        self.0[0] = header.state_word();
        self.0[PREFIX_BYTES as usize / 8] = seal(header.prefix);
    }

    pub(super) fn set_next(&mut self, next: Offset) {
        self.0[NEXT_BYTES as usize / 8] = seal(next.0);
    }

    /// Places an entry where an insert would place it. Returns false if pair and stash are full.
    #[inline(always)]
    pub(super) fn place(&mut self, signature: u64, position: Position) -> bool {
        let (home, segment) = (Home::of(signature), Offset(0));
        let is_empty = |slot: &Slot| self.position(*slot).is_empty();
        if let Some(slot) = slots(home.offset(segment)).find(is_empty) {
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
        let Some(slot) = entry_lines(Offset(0)).flat_map(slots).find(|&slot| self.position(slot).is_empty()) else {
            return false;
        };
        self.put(slot, signature, position);
        true
    }

    /// Sets the bit that makes a search of `home` continue along the overflow path `way`.
    pub(super) fn set_overflow(&mut self, home: Home, way: OverflowPath) {
        let word = &mut self.0[overflow_word(home, way, Offset(0)).0 as usize / 8];
        *word = Position::from_word(*word).overflow().word();
    }

    /// Writes the draft to `at` and flushes it. Only the caller uses the segment until it is linked.
    pub(super) fn stream<M: Medium>(&self, medium: &M, at: Offset) {
        const { assert!(cfg!(target_endian = "little"), "words are stored as they are") };
        // SAFETY: any initialised words are readable as bytes, eight for each.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), SEGMENT_BYTES as usize) };
        // SAFETY: the caller reserved the segment and has not linked it.
        unsafe { medium.stream(at, &[bytes]) }
    }

    #[inline(always)]
    fn position(&self, slot: Slot) -> Position {
        Position::from_word(self.0[slot.position.0 as usize / 8])
    }

    #[inline(always)]
    fn put(&mut self, slot: Slot, signature: u64, position: Position) {
        let old = self.position(slot);
        self.0[slot.signature.0 as usize / 8] = signature;
        self.0[slot.position.0 as usize / 8] = position.in_place_of(old).word();
    }
}

/// A free entry, and the overflow path that leads to it from the home line.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeEntry {
    pub(super) slot: Slot,
    pub(super) way: Option<OverflowPath>,
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
    let mut draft = SegmentDraft::new();
    draft.set_header(header.with(State::Live));
    draft
}

const _: () = assert!(SEGMENT_BYTES.is_multiple_of(LINE_BYTES));
