//! Both buckets of a key, locked: lookups in them, and steps 3 to 6 of a write (see the parent module).

use std::hint;
use std::sync::atomic::Ordering;

use heap::HeapError;
use pmem::{Dram, Level, Medium, MediumError, Offset, Taken, Ticket, Waited};

use super::crowding::Moves;
use super::image::{Stored, Words};
use super::layout::{FILLED_MAX, Meta, bucket};
use super::lookup::{BucketMatches, SlotMatches};
use super::segment::Segment;
use super::slot::{Key, Signer};
use super::{Slot, broken, canary};
use crate::Position;
use crate::segmented::{Context, Segmented};
use crate::shared::HeldLocks;

/// Marks the item of this slot, which the sweep will not reach any more. The caller holds the locks that keep the
/// sweep out.
#[inline(always)]
pub(super) fn mark_unlinked<M: Medium, D: Dram>(cx: Context<'_, M, D>, slot: &Slot) {
    if !cx.heap.is_swept()
        && let Some(place) = slot.position().and_then(Position::place)
    {
        cx.heap.sweep().mark_unlinked(place);
    }
}

/// Returns the meta word of the bucket at `at` for a thread that holds its lock and is going to change it. On a
/// log, it clears the lock bits of slots that are durable. Otherwise readers would wait for these slots together
/// with the change, and in vain if the log fails.
#[inline(always)]
pub(super) fn meta_to_change<M: Medium>(medium: &M, at: Offset, meta: Meta) -> Meta {
    if medium.deferred().is_some() && meta.is_any_locked() { without_durable(medium, at, meta) } else { meta }
}

#[cold]
#[inline(never)]
fn without_durable<M: Medium>(medium: &M, at: Offset, meta: Meta) -> Meta {
    match medium.acknowledge_now(medium.commit_published(at, at.0)) {
        Ok(Waited::Durable) => meta.unlocked(),
        Ok(Waited::Deferred) | Err(_) => meta,
    }
}

/// The segment that has no space for a key, and must be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    /// The segment.
    pub(super) segment: Offset,
}

/// The result of a lookup of a key in its buckets, under their locks.
#[derive(Clone, Copy, Debug)]
pub enum LockedLookup {
    /// The only slot that holds the key, or that names an item of the key's signature, which may belong to another
    /// key.
    Entry(At),
    /// The key is absent.
    Nothing,
    /// A search is needed.
    Unsure,
}

/// A slot that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// The slot.
    pub slot: Slot,
    pub(super) bucket: Bucket,
    pub(super) i: usize,
}

/// The number and the place of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bucket {
    pub(super) number: usize,
    pub(super) at: Offset,
}

/// Both buckets of a key, locked.
pub struct Buckets<'a, M, D: Dram> {
    pub(super) signer: &'a Signer,
    pub(super) moves: &'a Moves,
    pub(super) cx: Context<'a, M, D>,
    pub(super) segment: &'a Segment,
    pub(super) numbers: [usize; 2],
    pub(super) _locks: HeldLocks<'a>,
}

/// A write that is visible, but not known to be durable.
#[derive(Debug)]
#[must_use]
pub struct Published<'a> {
    segment: &'a Segment,
    bucket: Bucket,
    counter: u64,
    ticket: Ticket,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment {{ offset: {:#x} }}", self.offset().0)
    }
}

impl Published<'_> {
    /// Returns true on memory: the write is durable.
    pub(super) fn is_done(&self) -> bool {
        self.ticket.is_done()
    }

    /// Carries out step 6: waits, and clears a log's lock bits. The caller is still pinned, and holds no lock.
    ///
    /// # Errors
    /// Returns the medium's error.
    #[inline(always)]
    pub fn settle<M: Medium>(self, medium: &M) -> Result<(), MediumError> {
        let Published { segment, bucket, counter, ticket } = self;
        if medium.acknowledge(ticket)? == Waited::Durable && !ticket.is_done() {
            segment.unlock_bits(medium, bucket.number, bucket.at, counter);
        }
        Ok(())
    }
}

impl<'a, M: Medium, D: Dram> Buckets<'a, M, D> {
    #[inline(always)]
    pub(super) fn stored(&self, bucket: Bucket) -> Stored<'a, M> {
        Stored { medium: self.cx.medium, at: bucket.at }
    }

    #[inline(always)]
    pub(super) fn buckets(&self) -> impl Iterator<Item = Bucket> + 'a {
        let numbers = self.numbers;
        let of = move |segment| numbers.map(|number| Bucket { number, at: bucket(segment, number) });
        self.segment.offsets().flat_map(of)
    }

    /// Returns the bucket's meta word, for a change of it.
    #[inline(always)]
    pub(super) fn meta_to_change(&self, bucket: Bucket) -> Meta {
        meta_to_change(self.cx.medium, bucket.at, self.stored(bucket).meta())
    }

    /// Looks up a key.
    #[inline(always)]
    pub fn lookup(&self, key: Key<'_>) -> LockedLookup {
        let start = self.segment.offset();
        let places = self.numbers.map(|number| bucket(start, number));
        let seen = BucketMatches::of(self.cx.medium, places, key).filter(|_| self.segment.is_alone_at(start));
        let spotted = seen.filter(|seen| seen.metas.iter().all(|meta| meta.filled() <= FILLED_MAX));
        match spotted.as_ref().map_or(SlotMatches::Unsure, BucketMatches::only) {
            SlotMatches::Unsure => LockedLookup::Unsure,
            SlotMatches::At(spot) => {
                let slot = spot.slot();
                let bucket = Bucket { number: self.numbers[spot.choice], at: places[spot.choice] };
                if key.may_be_in(&slot) { LockedLookup::Entry(At { slot, bucket, i: spot.i }) } else { self.nothing() }
            }
            SlotMatches::Nothing => self.nothing(),
        }
    }

    /// Reports an absence, unless the medium has lost data.
    #[inline(always)]
    fn nothing(&self) -> LockedLookup {
        if self.cx.medium.check_lost_ranges().is_ok() { LockedLookup::Nothing } else { LockedLookup::Unsure }
    }

    /// Returns the slot of the key. Removes a duplicate.
    ///
    /// # Errors
    /// Returns the error of `is_key` or of the medium, or [`HeapError::Damaged`] if a bucket has no free slot.
    #[inline(always)]
    pub fn find<E: From<HeapError>>(
        &self,
        key: Key<'_>,
        mut is_key: impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<Option<At>, E> {
        match self.lookup(key) {
            LockedLookup::Unsure => self.find_among_all(key, is_key),
            LockedLookup::Nothing => Ok(None),
            LockedLookup::Entry(at) => {
                let found = key.is_in(&at.slot, &mut is_key)?.then_some(at);
                self.found(found)
            }
        }
    }

    /// Returns the result of a search. An absence counts only if the medium has lost no data.
    #[inline(always)]
    fn found<E: From<HeapError>>(&self, found: Option<At>) -> Result<Option<At>, E> {
        if found.is_none() {
            self.cx.medium.check_lost_ranges().map_err(HeapError::from)?;
        }
        Ok(found)
    }

    /// Like [`Buckets::find`], slot by slot.
    #[inline(never)]
    fn find_among_all<E: From<HeapError>>(
        &self,
        key: Key<'_>,
        mut is_key: impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<Option<At>, E> {
        let (mut found, heads): (Option<At>, _) = (None, key.heads());
        for bucket in self.buckets() {
            let stored = self.stored(bucket);
            let meta = stored.meta();
            if meta.filled() > FILLED_MAX {
                return Err(HeapError::Damaged { offset: bucket.at.0, what: "a bucket has no free slot" }.into());
            }
            for i in meta.slots().filter(|&i| heads.may_be(meta.shape(i), stored.head(i))) {
                let slot = stored.slot(meta, i);
                if key.is_in(&slot, &mut is_key)? {
                    match found {
                        None => found = Some(At { slot, bucket, i }),
                        Some(_) => self.drop_duplicate(bucket, i),
                    }
                }
            }
        }
        self.found(found)
    }

    /// Empties slot `i`, whose item is also in another slot, and orders that.
    #[cold]
    fn drop_duplicate(&self, bucket: Bucket, i: usize) {
        let medium = self.cx.medium;
        if medium.breaks(canary::DUPLICATE_KEPT) {
            return;
        }
        self.segment.raise(bucket.number);
        // If the medium has failed, both stay, and a reader uses the first.
        let _ = medium.publish(&[(bucket.at, self.stored(bucket).meta().without(i).word())], bucket.at.0);
        medium.order();
    }

    /// Like `BlockHash::damaged_bucket`.
    pub fn damaged_bucket(&self) -> Option<Offset> {
        self.buckets().find(|bucket| self.stored(*bucket).has_damaged_slot()).map(|bucket| bucket.at)
    }

    /// Returns the bucket with the fewest items, the first of equal ones, and that number of items.
    #[inline(always)]
    pub(super) fn emptiest(&self) -> (u32, Bucket) {
        let both = |segment| {
            let buckets = self.numbers.map(|number| Bucket { number, at: bucket(segment, number) });
            buckets.map(|bucket| (self.stored(bucket).meta().filled(), bucket))
        };
        // Without a branch, because it would be unpredictable.
        let emptier =
            |one: (u32, Bucket), other: (u32, Bucket)| hint::select_unpredictable(other.0 < one.0, other, one);
        let [one, other] = both(self.segment.offset());
        self.segment.offsets().skip(1).flat_map(both).fold(emptier(one, other), emptier)
    }

    /// Carries out steps 3 to 5: writes the slot to a free one of the bucket, and empties slot `old` with the same
    /// word. The segment then has `more` items more.
    #[inline(always)]
    pub(super) fn fill(self, bucket: Bucket, slot: &Slot, old: Option<usize>, more: i64) -> Published<'a> {
        let (medium, stored) = (self.cx.medium, self.stored(bucket));
        let meta = self.meta_to_change(bucket);
        let i = meta.free_slot().expect("every bucket has a free slot");
        if !medium.breaks(canary::REFILL_NOT_COUNTED) {
            self.segment.raise(bucket.number);
        }
        if !medium.breaks(canary::BIT_BEFORE_SLOT) {
            stored.write_slot(i, slot, !medium.breaks(canary::SLOT_NOT_FLUSHED));
            medium.order();
        }
        let with = meta.with(i, slot.shape());
        let meta = old.map_or(with, |old| with.without(old));
        if medium.breaks(canary::BIT_BEFORE_SLOT) {
            broken::publish_bit_first(&stored, meta, i, slot);
        }
        let moves = self.moves;
        let published = self.publish(bucket, meta, more);
        if old.is_none() && meta.filled() >= FILLED_MAX {
            moves.note_crowding();
        }
        published
    }

    /// Publishes that slot `i` is empty, without an order.
    pub(super) fn empty(&self, from: Bucket, i: usize) -> Taken {
        let meta = self.stored(from).meta().without(i);
        self.cx.medium.publish(&[(from.at, meta.0)], from.at.0)
    }

    /// Carries out steps 4 and 5. Items are counted after the commit, because the counter needs a locked
    /// instruction, which waits for flushes. A failed log does not accept the word: the bucket stays as it was, and
    /// [`Published::settle`] returns the error.
    #[inline(always)]
    pub(super) fn publish(self, bucket: Bucket, meta: Meta, more: i64) -> Published<'a> {
        let medium = self.cx.medium;
        let taken = medium.publish(&[(bucket.at, meta.word())], bucket.at.0);
        let ticket = medium.commit(Level::Strongest);
        if ticket.is_done() {
            medium.store(bucket.at, meta.unlocked().word(), Ordering::Release);
        }
        if more != 0 && taken == Taken::Yes {
            self.segment.count(more);
        }
        Published { segment: self.segment, bucket, counter: self.segment.counter(bucket.number), ticket }
    }
}
