//! Walks over all segments, of readers and of the sweep.
//!
//! A walk holds nothing between two segments. It advances by prefix, so that a split behind the walk shows nothing
//! twice and one ahead hides nothing: the halves of a visited segment lie behind, those of an unvisited one ahead.

use std::ops::RangeInclusive;

use pmem::{Medium, MediumError};

use super::PartitionedHash;
use super::segment::Segment;
use crate::Position;

pub use crate::segmented::Cursor;

impl PartitionedHash {
    /// Shows every live entry of the segment at `cursor` to `each` and returns the cursor of the next. Not a snapshot.
    /// The caller is pinned while it uses the positions. Beyond the last partition, where a made-up number may lead, the
    /// walk is over.
    ///
    /// A signature and a position that are shown together are of one entry, though no writer is locked out: a visitor that holds
    /// the item's key against the signature finds no damage where a slot only changed hands.
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

    /// The signatures of what a step of a walk visits that goes from `cursor` to `next`.
    pub fn signatures(&self, cursor: Cursor, next: Cursor) -> RangeInclusive<u64> {
        let start = |cursor: Cursor| self.geometry.signature(cursor.partition as u64, cursor.prefix);
        let last = if next.done { u64::MAX } else { start(next) - 1 };
        start(cursor)..=last
    }

    /// The segment that `cursor` has come to.
    pub(super) fn at_cursor(&self, cursor: Cursor) -> &Segment {
        self.root().at_cursor(cursor)
    }

    /// The cursor past `segment`.
    pub(super) fn next_cursor(&self, cursor: Cursor, segment: &Segment) -> Cursor {
        cursor.past(segment, self.geometry.partition_count())
    }
}
