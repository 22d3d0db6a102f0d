//! Makes space for an insert whose two buckets are full, by moving one of their items to the item's other bucket.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the lock of the third bucket, if it is free; else another item is tried | nothing |
//! | 2 its counter + 1; a copy of the slot is written there and flushed; ordered | nothing |
//! | 3 its bit on there: published, with its lock bit | the item, or duplicates |
//! | 4a the insert's slot is written; ordered, and so is 3 | duplicates |
//! | 4b one word: the bit of the insert on, that of the moved item off | duplicates; or both items, each once |
//!
//! Step 4 is an ordinary write that replaces the moved item. A move needs one fence more than an insert. Readers
//! find the item in one of the two buckets: the counter of the source bucket is raised after step 3 and before step
//! 4 empties the slot (`find`).
//!
//! # Ahead of inserts
//! Background pre-eviction (paper, section III.F) takes a bucket that has no space for an insert, and moves one
//! item to that item's other bucket, if the other bucket is light. Of several such items it chooses the last. (The
//! paper moves the bucket's very last item. Because inserts use the emptier bucket, that item hardly ever has a
//! light other bucket.) Pre-eviction acts as a writer of the item, and so holds both buckets of the item.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 both of the item's buckets are locked; item still there, bucket still full | nothing |
//! | 2 the other's counter + 1; the copy written there and flushed; ordered | nothing |
//! | 3 its bit on there: published, with its lock bit; ordered | the item, or duplicates |
//! | 4 the source's counter + 1; its bit off: published, with its lock bit | duplicates, or the item |
//! | 5 memory: fence, lock bits off. On a log the bits stay until a thread waits | the item |
//!
//! On a log, no thread has waited after step 5, so a thread that finds the lock bits waits.
//!
//! After one walk, the next walk can find new work only if a bucket has lost its space for inserts since, or has
//! become light. A write that causes either sets a flag of the table, after it has published. So the background
//! needs neither a walk nor a count of keys to know that there is nothing to do.

use pmem::{Dram, Level, Medium, Offset, Taken};

use super::buckets::{Bucket, Buckets, Full, Published};
use super::crowding::LIGHT_FILLED_MAX;
use super::image::{Stored, Words};
use super::layout::{FILLED_MAX, bucket, choices};
use super::segment::clear_bits;
use super::slot::Signer;
use super::{Slot, broken, canary};
use crate::segmented::Segmented;
use crate::shared::HeldLocks;

/// The number of items whose other buckets are prefetched together: one of them has space nearly always.
const TRIED_TOGETHER: usize = 4;

/// An item that may move, and the number of its other bucket.
struct Candidate {
    from: Bucket,
    i: usize,
    slot: Slot,
    number: usize,
}

/// An item that can move: its bucket and slot, and the locked bucket to which it moves.
struct Move<'a> {
    from: Bucket,
    i: usize,
    slot: Slot,
    to: Bucket,
    _lock: HeldLocks<'a>,
}

impl<'a, M: Medium, D: Dram> Buckets<'a, M, D> {
    /// Like [`Buckets::insert`], if neither bucket has space.
    #[cold]
    pub(super) fn insert_moving(self, slot: &Slot) -> Result<Published<'a>, Full> {
        let Some(moved) = self.movable() else { return Err(Full { segment: self.segment.offset() }) };
        let medium = self.cx.medium;
        if medium.breaks(canary::DELETE_BEFORE_INSERT) {
            broken::empty_early(&self, moved.from, moved.i);
        }
        // If the medium has failed, it refuses the insert's own word as well.
        let _ = self.copy(&moved.slot, moved.to);
        if medium.breaks(canary::DELETE_NOT_ORDERED) {
            let _ = self.empty(moved.from, moved.i);
        }
        self.moves.note_moves(1);
        let moves = self.moves;
        let published = self.fill(moved.from, slot, Some(moved.i), 1);
        moves.note_crowding();
        if published.is_done() {
            clear_bits(medium, moved.to.at);
        }
        Ok(published)
    }

    /// Carries out step 1. The other buckets of some items are prefetched together, because most are tried in vain
    /// while many buckets are full.
    fn movable(&self) -> Option<Move<'a>> {
        let mut candidates = self.buckets().flat_map(|from| {
            let stored = self.stored(from);
            let meta = stored.meta();
            meta.slots().filter_map(move |i| self.candidate(from, i, stored.slot(meta, i)))
        });
        loop {
            let some: [Option<Candidate>; TRIED_TOGETHER] = std::array::from_fn(|_| candidates.next());
            some[0].as_ref()?;
            let others = some.iter().flatten().flat_map(|candidate| self.others(candidate.number));
            others.for_each(|other| self.cx.medium.prefetch_line(other.at));
            if let Some(movable) = some.into_iter().flatten().find_map(|candidate| self.leads_away(candidate)) {
                return Some(movable);
            }
        }
    }

    /// Returns the item if it is intact and has another bucket than those of the key.
    fn candidate(&self, from: Bucket, i: usize, slot: Slot) -> Option<Candidate> {
        let signature = self.signer.signature_of_intact(&slot)?;
        let number = choices(signature).into_iter().find(|number| !self.numbers.contains(number))?;
        Some(Candidate { from, i, slot, number })
    }

    /// Returns the buckets of this number, in the segment and in those chained to it.
    fn others(&self, number: usize) -> impl Iterator<Item = Bucket> + use<'a, M, D> {
        self.segment.offsets().map(move |segment| Bucket { number, at: bucket(segment, number) })
    }

    fn leads_away(&self, Candidate { from, i, slot, number }: Candidate) -> Option<Move<'a>> {
        let has_space = |bucket: &Bucket| self.stored(*bucket).meta().filled() < FILLED_MAX;
        let lock = self.segment.try_lock(number)?;
        self.others(number).find(has_space).map(|to| Move { from, i, slot, to, _lock: lock })
    }

    /// Carries out steps 2 and 3.
    fn copy(&self, slot: &Slot, to: Bucket) -> Taken {
        let (medium, stored) = (self.cx.medium, self.stored(to));
        let meta = stored.meta();
        let i = meta.free_slot().expect("it has space");
        self.segment.raise(to.number);
        stored.write_slot(i, slot, true);
        medium.order();
        let with = meta.with(i, slot.shape());
        let with = if medium.breaks(canary::LOCK_BIT_LOST_BY_MOVE) { with.unlocked() } else { with };
        medium.publish(&[(to.at, with.0)], to.at.0)
    }

    /// Carries out steps 1 to 5 of a move ahead of inserts, for an item that was seen in `from`. Returns false if
    /// the item must not be moved any more.
    pub(super) fn move_out(self, from: Bucket, slot: &Slot) -> bool {
        let (medium, stored) = (self.cx.medium, self.stored(from));
        let meta = stored.meta();
        let is_full = meta.filled() >= FILLED_MAX;
        let Some(i) = meta.slots().find(|&i| is_full && stored.slot(meta, i) == *slot) else { return false };
        let is_light = |to: &Bucket| to.number != from.number && self.stored(*to).meta().filled() <= LIGHT_FILLED_MAX;
        let Some(to) = self.buckets().find(is_light) else { return false };
        if medium.breaks(canary::DELETE_BEFORE_INSERT) {
            broken::empty_early(&self, from, i);
        }
        if self.copy(slot, to) == Taken::No {
            return false;
        }
        medium.order_unless(canary::DELETE_NOT_ORDERED);
        if !medium.breaks(canary::MOVE_NOT_COUNTED) {
            self.segment.raise(from.number);
        }
        // If the medium refuses the word, duplicates remain.
        let _ = self.empty(from, i);
        if medium.commit(Level::Strongest).is_done() {
            [from.at, to.at].into_iter().for_each(|at| clear_bits(medium, at));
        }
        true
    }
}

/// Returns the last item of a full bucket whose other bucket is light, with its signature. It reads without a
/// lock, so the result is a guess. A reader that requests the key reports damage; this function skips it.
pub(super) fn light_item<M: Medium>(medium: &M, signer: &Signer, from: Bucket) -> Option<(u64, Slot)> {
    let stored = Stored { medium, at: from.at };
    let meta = Some(stored.meta()).filter(|meta| meta.filled() >= FILLED_MAX)?;
    let before = bucket(Offset(0), from.number).0;
    let light = |slot: &Slot| {
        let signature = signer.signature_of_intact(slot)?;
        let other = choices(signature).into_iter().find(|number| *number != from.number)?;
        let at = bucket(Offset(from.at.0 - before), other);
        (Stored { medium, at }.meta().filled() <= LIGHT_FILLED_MAX).then_some(signature)
    };
    let items: Vec<_> = meta.slots().map(|i| stored.slot(meta, i)).collect();
    items.iter().rev().find_map(|slot| light(slot).map(|signature| (signature, *slot)))
}
