//! Walks over all segments: for readers, the sweep, checks, and the callers that give entries an expiry.
//!
//! A walk holds no lock between two segments. It advances by prefix. So a split behind the walk repeats no entry
//! and a split ahead of it hides none: the halves of a visited segment are behind the walk, those of an unvisited
//! one ahead.

use heap::HeapError;
use pmem::{Dram, Medium, MediumError, Offset};

use super::check::{EachEntry, SegmentDamage, check};
use super::due::{NEVER, UNKNOWN};
use super::sweep::sweep;
use super::{Context, PartitionedHash};
use crate::Position;
use crate::segmented::Misplacement;

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
        if !self.segments.has(cursor) {
            return Ok(Cursor { done: true, ..cursor });
        }
        let segment = self.segments.at(cursor);
        segment.each_filled(medium, &self.batches, |entry| {
            if entry.position.is_live() { each(entry.signature, entry.position) } else { Ok(()) }
        })?;
        medium.check_lost_ranges()?;
        Ok(self.segments.past(cursor, segment))
    }

    /// Sweeps the segment at `cursor`. It makes changes of an earlier process durable, counts the entries, reports
    /// the reached places to the allocator, and reports invalid positions to `misplaced`.
    pub fn sweep<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        cursor: Cursor,
        misplaced: &mut dyn FnMut(Misplacement),
    ) -> Result<Cursor, HeapError> {
        let _pin = epoch::pin();
        let _partition = self.segments.lock_partition(cursor.partition);
        let segment = self.segments.at(cursor);
        self.segments.root().counter.add(sweep(cx, segment, &self.batches, misplaced)?);
        Ok(self.segments.past(cursor, segment))
    }

    /// Reports the damage in the segment at `cursor` to `damaged`, and passes every live entry to `each`. Each
    /// entry comes with the earlier entries of the segment that have the same signature and so might belong to the
    /// same key. `is_place` returns whether a segment can be at an offset.
    ///
    /// The caller is pinned. No thread may write to the segment during the call; otherwise damage may be reported
    /// that does not exist.
    pub fn check_segment<M: Medium>(
        &self,
        medium: &M,
        cursor: Cursor,
        is_place: &dyn Fn(Offset) -> bool,
        damaged: &mut dyn FnMut(SegmentDamage),
        each: &mut EachEntry<'_>,
    ) -> Cursor {
        let segment = self.segments.at(cursor);
        check(medium, segment, (self.segments.geometry(), &self.batches), is_place, damaged, each);
        self.segments.past(cursor, segment)
    }

    /// Continues a round at `cursor`, over at most `segment_count` segments. Visits the first segment that is due
    /// at `now`: `each` is called with the entries' positions and returns their due times, or [`NEVER`] for entries
    /// it has deleted. A segment that is still due afterwards is visited again. The caller is pinned while it uses
    /// the positions.
    pub fn visit_due<M: Medium, D: Dram, E: From<MediumError>>(
        &self,
        cx: Context<'_, M, D>,
        mut cursor: Cursor,
        now: u64,
        segment_count: usize,
        mut each: impl FnMut(u64, Position) -> Result<u64, E>,
    ) -> Result<Cursor, E> {
        for _ in 0..segment_count {
            let _partition = self.segments.lock_partition(cursor.partition());
            let segment = self.segments.at(cursor);
            let is_due = segment.due.get() <= now;
            if is_due {
                segment.due.take();
                let mut earliest = NEVER;
                let visited = self.visit(cx.medium, cursor, |signature, position| -> Result<(), E> {
                    earliest = earliest.min(each(signature, position)?);
                    Ok(())
                });
                // After an error, the due times remain unknown.
                segment.due.lower(if visited.is_ok() { earliest } else { UNKNOWN });
                visited?;
            }
            if segment.due.get() > now {
                self.due.lower_rarely(segment.due.get());
                cursor = self.segments.past(cursor, segment);
            }
            if is_due || cursor.is_done() {
                break;
            }
        }
        Ok(cursor)
    }
}
