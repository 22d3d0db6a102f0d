//! Volatile due times of segments, for callers that give entries an expiry.
//!
//! Each segment stores a due time that is not later than the earliest due time of its entries, or [`NEVER`] if no
//! entry has one. The index stores these times and passes them on at splits. Their meaning is the caller's.
//!
//! # Invariants
//! - A writer, under the bucket's lock, first publishes its entry, then lowers the due time of the segment, then
//!   that of the index.
//! - A visitor of a segment first resets the due time, then reads the entries, then lowers the due time to the
//!   earliest one that it found. So an entry that the visitor missed lowers the due time afterwards. The visitor
//!   holds the partition's lock, which keeps out splits, because they pass the due time on.
//! - A visitor of all segments resets the due time of the index before it reads that of the first segment. So the
//!   next round notices a due time that was lowered behind the visitor.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{Dram, Medium, MediumError};

use super::segment::Segment;
use super::walk::Cursor;
use super::{Bucket, Context, PartitionedHash};
use crate::Position;

/// No due time.
pub const NEVER: u64 = u64::MAX;
/// The due times of the entries are unknown; a visit determines them.
pub(super) const UNKNOWN: u64 = 0;

/// The earliest of several due times.
#[derive(Debug)]
pub(super) struct Due(AtomicU64);

impl Due {
    pub(super) fn at(moment: u64) -> Due {
        Due(AtomicU64::new(moment))
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn take(&self) -> u64 {
        self.0.swap(NEVER, Ordering::SeqCst)
    }

    /// Lowers the due time. It writes even if nothing changes: a visitor that resets the due time afterwards then
    /// sees everything that the caller published before.
    fn lower(&self, moment: u64) {
        self.0.fetch_min(moment, Ordering::SeqCst);
    }
}

impl PartitionedHash {
    /// Lowers the due time of the segment and that of the index. If nothing changes, it does not write to the
    /// index's line.
    #[cold]
    fn lower_due(&self, segment: &Segment, moment: u64) {
        segment.due.lower(moment);
        self.lower_due_of_all(moment);
    }

    fn lower_due_of_all(&self, moment: u64) {
        if moment < self.due.get() {
            self.due.lower(moment);
        }
    }

    /// Records that an entry of this signature is due at `moment`. The caller is pinned and holds no lock.
    pub fn lower_due_of<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>, signature: u64, moment: u64) {
        self.lock(cx, signature).due_at(moment).lower_due();
    }

    /// Returns a time that is not later than the earliest due time of all segments.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due.get()
    }

    /// Begins a round of visits. From now on, [`PartitionedHash::due`] covers the entries that the round misses.
    pub fn begin_due_round(&self) {
        self.due.take();
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
            let _partition = self.partitions[cursor.partition()].lock();
            let segment = self.at_cursor(cursor);
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
                self.lower_due_of_all(segment.due.get());
                cursor = self.next_cursor(cursor, segment);
            }
            if is_due || cursor.is_done() {
                break;
            }
        }
        Ok(cursor)
    }
}

impl<'a, M: Medium, D: Dram> Bucket<'a, M, D> {
    /// Sets the due time of the entry that is about to be published; see the module's head.
    pub fn due_at(mut self, moment: u64) -> Bucket<'a, M, D> {
        self.due = moment;
        self
    }

    /// Lowers the due times to that of the published entry.
    #[inline(always)]
    pub(super) fn lower_due(&self) {
        if self.due != NEVER {
            self.index.lower_due(self.home.segment(), self.due);
        }
    }
}
