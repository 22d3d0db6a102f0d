//! Walks over all segments, for readers and for the sweep.
//!
//! A walk holds no lock between two segments. It advances by prefix. So a split behind the walk repeats no entry
//! and a split ahead of it hides none: the halves of a visited segment are behind the walk, those of an unvisited
//! one ahead.

use std::ops::RangeInclusive;

use pmem::{Medium, MediumError};

use super::PartitionedHash;
use super::segment::Segment;
use crate::Position;

pub use crate::segmented::Cursor;

impl PartitionedHash {
    /// Passes every live entry of the segment at `cursor` to `each`, and returns the cursor of the next segment.
    /// The walk is not a snapshot. The caller is pinned while it uses the positions. If the cursor is beyond the
    /// last partition, which is possible with an invented number, the walk ends.
    ///
    /// A signature and a position that are passed together belong to the same entry, although no writer is locked
    /// out. So a visitor that compares the item's key with the signature does not mistake a reused slot for damage.
    pub fn visit<M: Medium, E: From<MediumError>>(
        &self,
        medium: &M,
        cursor: Cursor,
        mut each: impl FnMut(u64, Position) -> Result<(), E>,
    ) -> Result<Cursor, E> {
        if cursor.partition >= self.partition_count() {
            return Ok(Cursor { done: true, ..cursor });
        }
        let segment = self.at_cursor(cursor);
        segment.each_filled(medium, &self.batches, |entry| {
            if entry.position.is_live() { each(entry.signature, entry.position) } else { Ok(()) }
        })?;
        medium.check_lost_ranges()?;
        Ok(self.next_cursor(cursor, segment))
    }

    /// Returns the signatures covered by the step of a walk from `cursor` to `next`.
    pub fn signatures(&self, cursor: Cursor, next: Cursor) -> RangeInclusive<u64> {
        let start = |cursor: Cursor| self.geometry.signature(cursor.partition as u64, cursor.prefix);
        let last = if next.done { u64::MAX } else { start(next) - 1 };
        start(cursor)..=last
    }

    /// Returns the segment at `cursor`.
    pub(super) fn at_cursor(&self, cursor: Cursor) -> &Segment {
        self.root().at_cursor(cursor)
    }

    /// Returns the cursor behind `segment`.
    pub(super) fn next_cursor(&self, cursor: Cursor, segment: &Segment) -> Cursor {
        cursor.past(segment, self.geometry.partition_count())
    }
}
