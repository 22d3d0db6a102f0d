//! Finding one entry: a reader's way, without a lock, and the one that writers go under theirs.
//!
//! # Absent
//! A reader that finds nothing has acquired nothing yet: signatures are compared in one sweep. So the reader fences before
//! saying so: what its caller looks at next is not older than what was not found. Signatures are stored with Release for
//! that.
//!
//! It searches the segment that the directory named, and does not look a second time. While a key is there it has one slot of
//! one segment: replacing, settling and moving an item leave it there, and no overflow bit is ever taken away. So a search of
//! the segment misses the key only if it was absent at some moment of the search, even if only between a removal and a new
//! entry in a slot that was searched before. The segment may be out of date, for three words lead to it (root, directory,
//! offset), and each may be replaced between two of these loads:
//! - Whatever is replaced does not change from then on (`clear`, a doubled directory, a split hold the locks of all writers that
//!   could change it), and the reader's pin keeps the room from being used anew. So the reader sees what was so when the first of
//!   the three was replaced, which was after it had asked; and if it was before, the next rule holds.
//! - Readers are led to what is new before a writer can get there (`directory`; of a root both come with one word). So a reader
//!   that is led to a frozen segment sees all that was written until it had asked.
//! - A split copies every live entry that it finds under all locks, in batches too, whose pairs the split waited for; only a
//!   removal leaves no copy. A chain is only added to; its new segment is empty when linked.
//!
//! # Slots that change hands
//! Signatures are compared first and positions read later, so that a position may be another key's, put there after the
//! removal of the one that was sought. A visitor may take this for damage. So its error counts only if the entry is there still, with
//! the signature that was sought; else the line is searched anew.

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
    /// Where it is.
    pub slot: Slot,
    /// Its word, settled.
    pub position: Position,
    /// What the visitor made of it.
    pub value: R,
}

impl PartitionedHash {
    /// Shows the live positions that have `signature` to `visit` until it answers with a value.
    ///
    /// The caller is pinned from before this call until its last use of what `visit` saw.
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

/// Searches one segment along the ways that the home line's bits allow.
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

/// True if some entry of this home was put somewhere along `way`.
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

/// True if the entry that was seen at `slot` is there, and has `signature`.
#[cold]
#[inline(never)]
fn is_of<M: Medium>(medium: &M, slot: Slot, signature: u64, seen: Position) -> bool {
    let entry = Entry { slot, signature: medium.load(slot.signature, Ordering::Relaxed), position: seen };
    entry.signature == signature && entry.is_still(medium)
}
