//! A signature's home line and its overflow paths, in a segment where the caller holds the lock of the signature's
//! pair.

use std::sync::atomic::Ordering;

use pmem::{Medium, MediumError, Offset};

use super::batch::Batches;
use super::draft::{FreeEntry, first_free_entry, overflow_word};
use super::layout::{Home, OverflowPath, entry_lines, slot};
use super::search::{Found, Searcher, find_entry};
use super::segment::Segment;
use super::settle::is_free;
use super::slot::Slot;
use crate::Position;
use crate::canary;
use crate::segmented::Segmented;

/// A writer's view of a segment. Its creator holds the pair's lock while the view exists.
pub(super) struct LockedHome<'a, M> {
    medium: &'a M,
    batches: &'a Batches,
    segment: &'a Segment,
    signature: u64,
    home: Home,
}

impl<'a, M: Medium> LockedHome<'a, M> {
    #[inline(always)]
    pub(super) fn new(medium: &'a M, batches: &'a Batches, segment: &'a Segment, signature: u64) -> LockedHome<'a, M> {
        LockedHome { medium, batches, segment, signature, home: Home::of(signature) }
    }

    #[inline(always)]
    pub(super) fn medium(&self) -> &'a M {
        self.medium
    }

    #[inline(always)]
    pub(super) fn segment(&self) -> &'a Segment {
        self.segment
    }

    /// Returns the home line.
    #[inline(always)]
    pub(super) fn line(&self) -> Offset {
        self.home.offset(self.segment.offset())
    }

    #[inline(always)]
    pub(super) fn signature(&self) -> u64 {
        self.signature
    }

    #[inline(always)]
    pub(super) fn pair(&self) -> u64 {
        self.home.pair
    }

    /// Like [`super::PartitionedHash::find`].
    #[inline(always)]
    pub(super) fn find<R, E: From<MediumError>>(
        &self,
        mut visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<Found<R>>, E> {
        let found =
            find_entry(self.medium, Searcher::writer(self.batches), self.segment.offset(), self.signature, &mut visit)?;
        if found.is_none() {
            self.medium.check_lost_ranges()?;
        }
        Ok(found)
    }

    /// Returns the first free entry in the pair.
    #[inline(always)]
    pub(super) fn free_entry(&self, free: impl Fn(Slot) -> bool) -> Option<FreeEntry> {
        first_free_entry(self.home, self.segment.offset(), free)
            .filter(|entry| entry.way != Some(OverflowPath::Further))
    }

    /// Returns a free entry in stash or chain, and whether a split is due. The caller holds the stash lock.
    pub(super) fn free_entry_in_stash(&self, free: impl Fn(Slot) -> bool) -> Option<(FreeEntry, bool)> {
        let segment = self.segment.offset();
        let first_free = |line| (0..4).map(|i| slot(line, i)).find(|&slot| free(slot));
        let further = |slot| FreeEntry { slot, way: Some(OverflowPath::Further) };
        let mut stash = self.home.lines(OverflowPath::Further, segment).enumerate();
        if let Some((line, slot)) = stash.find_map(|(i, line)| Some((i as u64, first_free(line)?))) {
            return Some((further(slot), line >= crowded_from_line(segment)));
        }
        let mut chain = self.segment.chain(self.medium).skip(1).flat_map(entry_lines);
        chain.find_map(first_free).map(|slot| (further(slot), false))
    }

    /// Sets and flushes the bit that leads to an entry outside its home line. Returns true if the bit is new and
    /// must be ordered before the entry.
    #[inline(always)]
    pub(super) fn mark_way(&self, way: Option<OverflowPath>) -> bool {
        let Some(way) = way else { return false };
        let word = overflow_word(self.home, way, self.segment.offset());
        let mut seen = self.medium.load(word, Ordering::Acquire);
        if Position::from_word(seen).has_overflow() {
            return false;
        }
        // The exchange fails only if a reader settles the word at the same time.
        while let Err(now) = self.medium.compare_exchange(word, seen, Position::from_word(seen).overflow().word()) {
            seen = now;
        }
        if !self.medium.breaks(canary::OVERFLOW_BIT_LATE) {
            self.medium.flush(word.span(8));
        }
        true
    }

    #[inline(always)]
    pub(super) fn is_free(&self, slot: Slot) -> bool {
        is_free(self.medium, slot, self.now(slot))
    }

    #[inline(always)]
    pub(super) fn now(&self, slot: Slot) -> Position {
        Position::from_word(self.medium.load(slot.position, Ordering::Acquire))
    }
}

/// Returns the stash line whose use makes a split due. The line differs between segments: with uniform hashing all
/// segments fill up at the same time, and would otherwise split in one wave.
fn crowded_from_line(segment: Offset) -> u64 {
    const FIRST: u64 = 1;
    const SPREAD: u64 = 3;
    FIRST + (segment.0 / heap::layout::SEGMENT_BYTES).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(16) % SPREAD
}
