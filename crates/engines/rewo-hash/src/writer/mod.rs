//! Writes: first the item, if larger than a slot, then its slot (`index::block_hash`).
//!
//! Every method is one attempt. If it finds the region full or the key changed, nothing has changed: the engine frees
//! space, or makes another attempt.

mod at_once;
mod batch;
mod conditional;
mod moved;
mod prepared;

use engine::{Error, ExpiredItem, KeyChanges, Outcome, PriorState, WriteResult, may_write};
use heap::layout::SEGMENT_BYTES;
use index::BlockHash;
use index::Position;
use index::block_hash::{At, Key, Published, Slot, Target};
use index::cached_table::{NewCopy, Write, canary};
use index::segmented::Context;
use items::NewItem;
use pmem::{Dram, Medium, MediumError};

use crate::cached::{Cache, Hidden, reveal};
use crate::contents::{New, witness_of_item, witness_of_small};
use crate::expiring::Expiring;
use crate::keys::Keys;
use crate::reader::Reader;
use crate::space::Space;

pub(crate) use batch::Batch;
pub(crate) use prepared::Prepared;

/// The store's writes.
pub(crate) struct Writer<M, D: Dram> {
    reader: Reader<M>,
    space: Space<D>,
    expiring: Expiring,
    growth: Growth,
    key_changes: KeyChanges,
}

/// The handling of a put whose segment is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Growth {
    /// The segment is split.
    #[default]
    Splits,
    /// The put is refused.
    Refused,
}

/// The result of a write under its locks.
enum Entered<'a, 'k> {
    /// The slot is published, instead of the old slot.
    Published(Published<'a>, Option<Slot>, Hidden<'a, 'k>),
    /// Nothing changed: the write was not allowed, or removes an absent key.
    Unchanged(Outcome),
}

/// Decides by the key's slot whether a write takes place.
type Allowed<'a> = dyn FnMut(Option<&Slot>) -> bool + 'a;

impl<M: Medium, D: Dram> Writer<M, D> {
    pub(crate) fn new(reader: Reader<M>, space: Space<D>) -> Writer<M, D> {
        Writer {
            reader,
            space,
            expiring: Expiring::default(),
            growth: Growth::default(),
            key_changes: KeyChanges::default(),
        }
    }

    pub(crate) fn set_growth(&mut self, growth: Growth) {
        self.growth = growth;
    }

    #[inline(always)]
    pub(crate) fn reader(&self) -> &Reader<M> {
        &self.reader
    }

    pub(crate) fn reader_mut(&mut self) -> &mut Reader<M> {
        &mut self.reader
    }

    #[inline(always)]
    pub(crate) fn space(&self) -> &Space<D> {
        &self.space
    }

    #[inline(always)]
    pub(crate) fn expiring(&self) -> &Expiring {
        &self.expiring
    }

    #[inline(always)]
    pub(crate) fn key_changes(&self) -> &KeyChanges {
        &self.key_changes
    }

    #[inline(always)]
    pub(crate) fn keys(&self) -> &Keys<M> {
        self.reader.keys()
    }

    #[inline(always)]
    fn cache(&self) -> &Cache {
        self.reader.cache()
    }

    #[inline(always)]
    pub(crate) fn medium(&self) -> &M {
        self.keys().medium()
    }

    #[inline(always)]
    pub(crate) fn table(&self) -> &BlockHash {
        self.keys().table()
    }

    #[inline(always)]
    pub(crate) fn cx(&self) -> Context<'_, M, D> {
        self.space.cx(self.medium())
    }

    /// Begins a write that leaves garbage. The caller holds no lock.
    #[inline(always)]
    pub(crate) fn begin(&self) -> Result<(), Error> {
        may_write(self.medium())?;
        self.space.bound_garbage(self.medium());
        Ok(())
    }

    /// Prefetches the lines that a write of the key needs first. The caller is pinned while it uses the result.
    #[inline(always)]
    fn prefetch(&self, key: Key<'_>) -> Target<'_> {
        let target = self.table().prefetch(self.medium(), key.signature);
        self.cache().table().into_iter().for_each(|cache| cache.prefetch(key.signature));
        target
    }

    /// Step 1.
    fn prepare<'v>(&self, key: Key<'_>, item: &NewItem<'v>) -> Result<Prepared<'_, 'v, D>, Error> {
        let mut new = self.prepare_unwritten(key, item)?;
        self.write_prepared(&mut new, item);
        Ok(new)
    }

    /// The beginning of step 1: creates the slot, and reserves space for the item unless it fits into the slot.
    #[inline(always)]
    fn prepare_unwritten<'v>(&self, key: Key<'_>, item: &NewItem<'v>) -> Result<Prepared<'_, 'v, D>, Error> {
        if let Some(slot) = Slot::whole(item.key, item.value).filter(|_| item.expiry.is_never()) {
            return Ok(Prepared::whole(slot));
        }
        let reservation = self.space.reserve(self.medium(), item.item_bytes())?;
        Ok(Prepared::in_reserved(key, reservation, item.expiry))
    }

    /// The rest of step 1.
    #[inline(always)]
    fn write_prepared<'v>(&self, new: &mut Prepared<'_, 'v, D>, item: &NewItem<'v>) {
        let witness = match new.place() {
            Some(place) => {
                // SAFETY: the space was just reserved.
                let checksum = unsafe { item.write(self.medium(), place.offset, 0) };
                witness_of_item(Position::of(place), checksum, item.expiry)
            }
            None if self.cache().table().is_none() => return,
            None => witness_of_small(item.value),
        };
        new.new.copy = Some(NewCopy { value: item.value, version: witness.words(), expiry_ms: item.expiry.ms() });
    }

    /// If `allowed`, puts the prepared item and takes it, or removes the key. The caller reports an expired old item.
    pub(crate) fn write<'a>(
        &'a self,
        key: Key<'_>,
        new: &mut Option<Prepared<'a, '_, D>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let entered = new.as_ref().map(|new| new.new);
        let (published, old, hidden) = match self.publish(key, entered.as_ref(), allowed)? {
            Entered::Published(published, old, hidden) => (published, old, hidden),
            Entered::Unchanged(outcome) => {
                // The slot that decided may not be durable yet: `find` waits for it, and its result does not matter.
                self.keys().find(key)?;
                return Ok(outcome);
            }
        };
        new.take().into_iter().for_each(|new| new.publish(&self.expiring));
        self.key_changes.replaced(key.bytes, old.is_some(), entered.is_some());
        let before = self.keys().prior_state(old.as_ref());
        self.finish(key, published, hidden, entered.as_ref(), old.as_ref())?;
        let before = before?;
        let expired = if before == PriorState::Expired { self.copy_expired(old.as_ref()) } else { None };
        Ok(Outcome { answer: WriteResult::Done(before), expired })
    }

    /// Completes a write after the publication of `new`, or of a removal.
    #[inline(always)]
    fn finish<'a, 'k>(
        &'a self,
        key: Key<'k>,
        published: Published<'_>,
        mut hidden: Hidden<'a, 'k>,
        new: Option<&New<'_>>,
        old: Option<&Slot>,
    ) -> Result<(), Error> {
        published.settle(self.medium())?;
        if self.medium().breaks(canary::COPY_HIDDEN_LATE) {
            hidden = self.cache().hide(key);
        }
        reveal(self.keys(), hidden, new);
        self.space.retire(self.medium(), old);
        Ok(())
    }

    /// Steps 2 to 5.
    fn publish<'a, 'k>(
        &'a self,
        key: Key<'k>,
        new: Option<&New<'_>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<Entered<'a, 'k>, Error> {
        loop {
            let buckets = self.table().lock(self.cx(), key.signature);
            let found: Option<At> = buckets.find(key, |position| self.keys().is_key(position, key))?;
            if found.is_none() {
                self.keys().check_absence(|| buckets.damaged_bucket())?;
            }
            if !allowed(found.as_ref().map(|found| &found.slot)) {
                return Ok(Entered::Unchanged(Outcome::UNEXPECTED));
            }
            if found.is_none() && new.is_none() {
                return Ok(Entered::Unchanged(Outcome::found(PriorState::Absent)));
            }
            let old = found.map(|found| found.slot);
            let mut hidden = self.cache().hide_in_time(self.medium(), key);
            self.cache().hand_over(self.keys(), &mut hidden, new);
            if self.medium().breaks(canary::COPY_SHOWN_EARLY) {
                reveal(self.keys(), hidden.take(), new);
            }
            let published = match (found, new) {
                (Some(found), None) => Ok(buckets.remove(&found)),
                (Some(found), Some(new)) => Ok(buckets.replace(&found, &new.slot)),
                (None, new) => buckets.insert(&new.expect("a removal of an absent key has returned").slot),
            };
            let full = match published {
                Ok(published) => return Ok(Entered::Published(published, old, hidden)),
                Err(full) => full,
            };
            hidden.into_iter().for_each(Write::unchanged);
            self.may_grow()?;
            self.table().split(self.cx(), key.signature, full)?;
        }
    }

    /// Returns an error if a full segment must not be split.
    fn may_grow(&self) -> Result<(), Error> {
        match self.growth {
            Growth::Splits => Ok(()),
            Growth::Refused => {
                let limit_bytes = self.table().segment_count() * SEGMENT_BYTES;
                Err(MediumError::Limit { wanted_bytes: limit_bytes + SEGMENT_BYTES, limit_bytes }.into())
            }
        }
    }

    /// Copies an item that had expired when its slot was replaced, for the callback, if there is one. The caller has
    /// been pinned since before that.
    #[cold]
    fn copy_expired(&self, old: Option<&Slot>) -> Option<ExpiredItem> {
        // A damaged expiry or value is not reported.
        let seen = self.keys().intact_contents(old?).ok()?;
        self.expiring.hook().copy(seen.key, seen.value, seen.expiry)
    }
}
