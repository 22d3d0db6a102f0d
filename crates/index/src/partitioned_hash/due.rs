//! When segments want to be visited: volatile, for callers that give entries a time to go.
//!
//! Each segment knows the earliest moment that its entries were given, or an earlier one; [`NEVER`] where there is none. The
//! index keeps the moment, hands it down at splits, and does not ask what the moments are.
//!
//! # Invariants
//! - Under the bucket's lock a writer publishes first, then lowers the segment's moment, then that of all.
//! - A visitor takes the moment away first, then reads the entries, then lowers the moment to what it found: so an entry that it
//!   did not see lowers the moment afterwards. The partition's lock keeps splits away meanwhile, which hand it down.
//! - A visitor of all segments takes the moment of all away before it reads the first one's: so one that was lowered behind it is
//!   noticed in the next round.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{Dram, Medium, MediumError};

use super::segment::Segment;
use super::walk::Cursor;
use super::{Bucket, Context, PartitionedHash};
use crate::Position;

/// No moment at all.
pub const NEVER: u64 = u64::MAX;
/// No entry is known: a visit finds out.
pub(super) const UNKNOWN: u64 = 0;

/// The earliest of several moments.
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

    /// Always writes: a visitor that takes the moment away afterwards sees what the caller published before.
    fn lower(&self, moment: u64) {
        self.0.fetch_min(moment, Ordering::SeqCst);
    }
}

impl PartitionedHash {
    /// Lowers the segment's moment and that of all, whose line is left alone where that changes nothing.
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

    /// An entry of this signature wants to be visited at this moment. The caller is pinned and holds no lock.
    pub fn lower_due_of<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>, signature: u64, moment: u64) {
        self.lock(cx, signature).due_at(moment).lower_due();
    }

    /// The earliest moment of all segments, or an earlier one.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due.get()
    }

    /// Begins a round of visits: from now on [`PartitionedHash::due`] tells what the round does not see.
    pub fn begin_due_round(&self) {
        self.due.take();
    }

    /// Goes on with a round at `cursor`, past at most `segment_count` segments. The first one that is due at `now` is
    /// visited: `each` is shown the entries' positions, and answers with their moments, [`NEVER`] for what is
    /// deleted. A segment that stays due is visited again. The caller is pinned while it uses the positions.
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
                // What could not be read is unknown, as it was.
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
    /// The entry that is published wants to be visited at this moment: see the module's head.
    pub fn due_at(mut self, moment: u64) -> Bucket<'a, M, D> {
        self.due = moment;
        self
    }

    /// Lowers the moments by that of the entry, which was published.
    #[inline(always)]
    pub(super) fn lower_due(&self) {
        if self.due != NEVER {
            self.index.lower_due(self.home.segment(), self.due);
        }
    }
}
