//! Searches one segment for an entry, along the overflow paths that the bits of the home line allow.
//!
//! # Slots that change owner
//! Signatures are compared first and positions are read later. The position may therefore belong to another key
//! that was inserted into the slot after the removal of the sought key, and a visitor may take this for damage. So
//! a visitor's error counts only if the entry is still there with the sought signature. Otherwise the line is
//! searched again.

use std::sync::atomic::Ordering;

use pmem::{Medium, MediumError, Offset};

use super::batch::Batches;
use super::draft::overflow_word;
use super::layout::{Home, OverflowPath, entry_lines, slot};
use super::segment::{Entry, chained};
use super::settle::settle_locked;
use super::slot::Slot;
use crate::Position;

/// The kind of thread that searches. It determines how a mark of an undecided word is handled.
#[derive(Clone, Copy)]
pub(super) struct Searcher<'a> {
    batches: &'a Batches,
    is_writer: bool,
}

impl<'a> Searcher<'a> {
    /// Returns the searcher for a thread that acts on the result.
    #[inline(always)]
    pub(super) fn reader(batches: &'a Batches) -> Searcher<'a> {
        Searcher { batches, is_writer: false }
    }

    /// Returns the searcher for a thread that holds the pair's lock, and so must not wait for a disk. Its own word
    /// follows the found word, in the log also. A thread that publishes nothing has to search again, as a reader,
    /// before it reports the result.
    #[inline(always)]
    pub(super) fn writer(batches: &'a Batches) -> Searcher<'a> {
        Searcher { batches, is_writer: true }
    }

    /// Returns the word of the entry at `slot`, which was `seen` with a mark, without the mark.
    pub(super) fn decided<M: Medium>(self, medium: &M, slot: Slot, seen: Position) -> Result<Position, MediumError> {
        if self.is_writer && !seen.is_in_batch() {
            // If the word is not durable, this is recorded for threads that reach the item by other ways, such as
            // snapshots, which see the replaced item.
            let _ = settle_locked(medium, slot, seen)?;
            return Ok(seen.settled());
        }
        self.batches.decided(medium, slot, seen)
    }
}

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
