//! Room for an insert where both buckets are full: an item of one of them goes to its other bucket.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the lock of the third bucket, if nobody has it; else another item is tried | nothing |
//! | 2 its counter + 1; a copy of the slot is written there and flushed; ordered | nothing |
//! | 3 its bit on there: published, with its lock bit | the item, or equal twins |
//! | 4 the insert, as a write over the item that left: the new slot written, ordered (so is 3); one word has its bit on and the old one off | twins; or both items, each once |
//!
//! One fence more than an insert has. Readers of the item find it in one of its buckets: the counter of the bucket that it leaves is
//! raised after 3 and before 4 empties its slot (`find`).

use std::sync::atomic::Ordering;

use pmem::{Dram, Medium};

use super::image::Words;
use super::layout::{FILLED_MAX, bucket, choices};
use super::segment::clear_bits;
use super::write::{Bucket, Buckets, Full, Published};
use super::{Slot, canary};
use crate::segmented::Segmented;
use crate::shared::Locked;

/// An item that can move: its bucket and slot, and the bucket that it goes to, locked.
struct Move<'a> {
    from: Bucket,
    i: usize,
    slot: Slot,
    to: Bucket,
    _lock: Locked<'a>,
}

impl<'a, M: Medium, D: Dram> Buckets<'a, M, D> {
    /// As [`Buckets::insert`], where neither bucket has room.
    #[cold]
    pub(super) fn insert_moving(self, slot: &Slot) -> Result<Published<'a>, Full> {
        let Some(moved) = self.movable() else { return Err(Full { segment: self.segment.offset() }) };
        let (segment, medium) = (self.segment, self.cx.medium);
        if medium.breaks(canary::DELETE_BEFORE_INSERT) {
            self.empty_early(&moved);
            medium.order();
        }
        self.copy(&moved);
        if medium.breaks(canary::DELETE_NOT_ORDERED) {
            self.empty_early(&moved);
        }
        segment.count(1);
        self.table.move_count.fetch_add(1, Ordering::Relaxed);
        let published = self.fill(moved.from, slot, Some(moved.i));
        if published.is_done() {
            clear_bits(medium, moved.to.at);
        }
        Ok(published)
    }

    /// Step 1.
    fn movable(&self) -> Option<Move<'a>> {
        let candidates = self.buckets().flat_map(|from| {
            let stored = self.stored(from);
            let meta = stored.meta();
            meta.slots().map(move |i| (from, i, stored.slot(meta, i)))
        });
        candidates.into_iter().find_map(|(from, i, slot)| self.leads_away(from, i, slot))
    }

    fn leads_away(&self, from: Bucket, i: usize, slot: Slot) -> Option<Move<'a>> {
        let signature = self.table.signature_of(&slot).filter(|_| slot.is_whole())?;
        let number = choices(signature).into_iter().find(|number| !self.numbers.contains(number))?;
        let has_room = |bucket: &Bucket| self.stored(*bucket).meta().filled() < FILLED_MAX;
        let lock = self.segment.try_lock(number)?;
        let mut others = self.segment.offsets().map(|segment| Bucket { number, at: bucket(segment, number) });
        others.find(has_room).map(|to| Move { from, i, slot, to, _lock: lock })
    }

    /// Steps 2 and 3.
    fn copy(&self, Move { slot, to, .. }: &Move<'_>) {
        let (medium, stored) = (self.cx.medium, self.stored(*to));
        let meta = stored.meta();
        let i = meta.free_slot().expect("it has room");
        self.segment.raise(to.number);
        stored.write_slot(i, slot, true);
        medium.order();
        let with = meta.with(i, slot.shape());
        let with = if medium.breaks(canary::LOCK_BIT_LOST_BY_MOVE) { with.unlocked() } else { with };
        medium.publish(&[(to.at, with.0)], to.at.0);
    }

    /// The broken twins' step.
    fn empty_early(&self, Move { from, i, .. }: &Move<'_>) {
        let meta = self.stored(*from).meta().without(*i);
        self.cx.medium.publish(&[(from.at, meta.0)], from.at.0);
    }
}
