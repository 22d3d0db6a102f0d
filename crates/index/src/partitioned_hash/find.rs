//! Finds one entry: without a lock for readers, and under the pair's lock for writers.
//!
//! # Why an absence can be trusted
//! A reader that finds nothing has not acquired anything yet: all signatures of a line are compared in one sweep,
//! without Acquire. The reader therefore issues an acquire fence before it reports the absence. Whatever the caller
//! reads next is then not older than the slots that did not hold the key. For this, writers store signatures with
//! Release.
//!
//! A reader searches the segment that the directory names, once. A key that is present occupies one slot of one
//! segment: replacing, settling or moving the key's item does not change the slot, and overflow bits are never
//! cleared. So a search of the segment misses the key only if the key was absent at some moment of the search, even
//! if only between a removal and a new insert into a slot that had been searched already.
//!
//! The segment may be out of date: three words lead to it (root, directory, offset), and each may be replaced
//! between two of these loads. Three rules make this harmless:
//! - A replaced root, directory or segment does not change any more: `clear`, doubling a directory, and a split
//!   hold the locks of all writers that could change it. The reader's pin prevents the reuse of its memory. So the
//!   reader sees the state of the moment at which the first of the three was replaced. If that moment is after the
//!   reader's call began, the answer was correct at that moment. If it is before, the next rule applies.
//! - Readers are directed to a new structure before any writer can reach it (`directory`; for a root, one word
//!   directs both). So a reader that is directed to a frozen segment sees everything written before its call began.
//! - A split holds all locks and copies every live entry. This includes entries of batches, because the split
//!   waited for their pairs. Only a removal leaves no copy. Chains only grow, and a new chained segment is empty
//!   when it is linked.
//!
//! # Slots that change owner
//! Signatures are compared first and positions are read later. The position may therefore belong to another key
//! that was inserted into the slot after the removal of the sought key, and a visitor may take this for damage. So
//! a visitor's error counts only if the entry is still there with the sought signature. Otherwise the line is
//! searched again.

use std::sync::atomic::Ordering;

use pmem::{Medium, MediumError, Offset};

use super::PartitionedHash;
use super::draft::overflow_word;
use super::layout::{Home, OverflowPath, entry_lines, slot};
use super::segment::{Entry, chained};
use super::settle::Searcher;
use super::slot::Slot;
use crate::Position;
use crate::canary;

/// An entry that a search found.
#[derive(Clone, Copy, Debug)]
pub struct Found<R> {
    /// The place of the entry.
    pub slot: Slot,
    /// The position word, settled.
    pub position: Position,
    /// The value that the visitor returned.
    pub value: R,
}

impl PartitionedHash {
    /// Passes the live positions that have `signature` to `visit`, until it returns a value.
    ///
    /// The caller is pinned from before this call until its last use of the positions.
    #[inline(always)]
    pub fn find<M: Medium, R, E: From<MediumError>>(
        &self,
        medium: &M,
        signature: u64,
        mut visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<R>, E> {
        let segment = self.root().offset(self.geometry, signature);
        if let Some(found) = find_entry(medium, Searcher::reader(&self.batches), segment, signature, &mut visit)? {
            return Ok(Some(found.value));
        }
        medium.check_lost_ranges()?;
        if !medium.breaks(canary::MISS_NOT_FENCED) {
            medium.acquire();
        }
        Ok(None)
    }
}

/// Searches one segment along the overflow paths that the bits of the home line allow.
#[inline(always)]
pub(super) fn find_entry<M: Medium, R, E: From<MediumError>>(
    medium: &M,
    searcher: Searcher<'_>,
    segment: Offset,
    signature: u64,
    visit: &mut impl FnMut(Position) -> Result<Option<R>, E>,
) -> Result<Option<Found<R>>, E> {
    let home = Home::of(signature);
    let line = home.offset(segment);
    if let Some(found) = find_in_line(medium, searcher, line, signature, visit)? {
        return Ok(Some(found));
    }
    let marks = [OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further]
        .map(|way| has_way(medium, home, way, segment));
    if marks == [false; 3] {
        return Ok(None);
    }
    find_in_overflow(medium, searcher, segment, signature, marks, visit)
}

/// Returns true if an entry of this home was ever placed along the overflow path `way`.
#[inline(always)]
pub(super) fn has_way<M: Medium>(medium: &M, home: Home, way: OverflowPath, segment: Offset) -> bool {
    Position::from_word(medium.load(overflow_word(home, way, segment), Ordering::Acquire)).has_overflow()
}

#[inline(never)]
fn find_in_overflow<M: Medium, R, E: From<MediumError>>(
    medium: &M,
    searcher: Searcher<'_>,
    segment: Offset,
    signature: u64,
    marks: [bool; 3],
    visit: &mut impl FnMut(Position) -> Result<Option<R>, E>,
) -> Result<Option<Found<R>>, E> {
    let home = Home::of(signature);
    for (way, _) in [OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further]
        .into_iter()
        .zip(marks)
        .filter(|(_, marked)| *marked)
    {
        for line in home.lines(way, segment) {
            if let Some(found) = find_in_line(medium, searcher, line, signature, visit)? {
                return Ok(Some(found));
            }
        }
    }
    let mut chain = chained(medium, segment).filter(|_| marks[OverflowPath::Further as usize]);
    while let Some(segment) = chain {
        for line in entry_lines(segment) {
            if let Some(found) = find_in_line(medium, searcher, line, signature, visit)? {
                return Ok(Some(found));
            }
        }
        chain = chained(medium, segment);
    }
    Ok(None)
}

#[inline(always)]
fn find_in_line<M: Medium, R, E: From<MediumError>>(
    medium: &M,
    searcher: Searcher<'_>,
    line: Offset,
    signature: u64,
    visit: &mut impl FnMut(Position) -> Result<Option<R>, E>,
) -> Result<Option<Found<R>>, E> {
    'line: loop {
        let mut hits = medium.match4(line, signature);
        while hits != 0 {
            let slot = slot(line, u64::from(hits.trailing_zeros()));
            hits &= hits - 1;
            let seen = Position::from_word(medium.load(slot.position, Ordering::Acquire));
            let position = if seen.is_undecided() { searcher.decided(medium, slot, seen)? } else { seen };
            if !position.is_live() {
                continue;
            }
            match visit(position) {
                Ok(None) => {}
                Ok(Some(value)) => return Ok(Some(Found { slot, position, value })),
                Err(error) if is_of(medium, slot, signature, seen) => return Err(error),
                Err(_) => continue 'line,
            }
        }
        return Ok(None);
    }
}

/// Returns true if the entry that was read from `slot` is still there and has `signature`.
#[cold]
#[inline(never)]
fn is_of<M: Medium>(medium: &M, slot: Slot, signature: u64, seen: Position) -> bool {
    let entry = Entry { slot, signature: medium.load(slot.signature, Ordering::Relaxed), position: seen };
    entry.signature == signature && entry.is_still(medium)
}
