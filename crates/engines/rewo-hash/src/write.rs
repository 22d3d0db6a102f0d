//! Writes of one key: first the item, if larger than a slot, then its slot (`index::block_hash`).

use engine::{Error, ExpiredItem, Expiry, Limits, PriorState, WriteResult, wait_for_readers, with_space};
use heap::Reservation;
use heap::layout::SEGMENT_BYTES;
use index::Position;
use index::block_hash::{At, Key, Published, Slot, Target};
use index::cached_table::{NewCopy, Write, canary};
use index::segmented::Garbage;
use items::NewItem;
use pmem::{Dram, Medium, MediumError};

use crate::cached::Hidden;
use crate::read::{witness_of_item, witness_of_small};
use crate::reaper::Reaper;
use crate::{Growth, RewoHash};

/// A new slot. If the item is larger than a slot: also the reserved space with the written and flushed item.
pub(crate) struct Prepared<'a, 'v, D: Dram> {
    pub(crate) new: New<'v>,
    reservation: Option<Reservation<'a, D>>,
    expires: bool,
}

/// A new slot, and the writer's copy of the item: reading back an item that was streamed past the cache is slow.
#[derive(Clone, Copy)]
pub(crate) struct New<'v> {
    pub(crate) slot: Slot,
    pub(crate) copy: Option<NewCopy<'v>>,
}

/// The result of a write under its locks.
enum Entered<'a, 'k> {
    /// The slot is published, instead of the old slot.
    Published(Published<'a>, Option<Slot>, Hidden<'a, 'k>),
    /// Nothing changed: the write was not allowed, or removes an absent key.
    Unchanged(WriteResult<PriorState>),
}

/// The result of a write.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answer: WriteResult<PriorState>,
    /// The item that had expired before, if there is a callback for it.
    pub(crate) expired: Option<ExpiredItem>,
}

impl From<WriteResult<PriorState>> for Outcome {
    fn from(answer: WriteResult<PriorState>) -> Outcome {
        Outcome { answer, expired: None }
    }
}

/// Decides by the key's slot whether a write takes place.
pub(crate) type Allowed<'a> = dyn FnMut(Option<&Slot>) -> bool + 'a;

impl<'a, 'v, D: Dram> Prepared<'a, 'v, D> {
    /// Creates a slot that names the item at the start of `reservation`.
    #[inline(always)]
    pub(crate) fn in_reserved(key: Key<'_>, reservation: Reservation<'a, D>, expiry: Expiry) -> Prepared<'a, 'v, D> {
        let slot = Slot::of_item(key.signature, Position::of(reservation.place()));
        Prepared { new: New { slot, copy: None }, reservation: Some(reservation), expires: !expiry.is_never() }
    }

    /// Keeps the item, which is named now. The reaper is notified only now: a walk that it began before may have met
    /// the key's old item.
    #[inline(always)]
    pub(crate) fn publish(self, reaper: &Reaper) {
        self.reservation.into_iter().for_each(|reservation| _ = reservation.publish());
        if self.expires {
            reaper.expect();
        }
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        if self.medium.is_writable() { Ok(self.medium.health()?) } else { Err(MediumError::ReadOnly.into()) }
    }

    /// Puts a key, unless the value is too long.
    #[inline(always)]
    pub(crate) fn put_item(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.may_write()?;
        self.bound_garbage();
        check_value(value.len() as u64)?;
        let key = self.key(key)?;
        let item = NewItem { key: key.bytes, value, expiry };
        let outcome = match self.try_put(key, &item) {
            Err(error) if error.is_full() => self.put_in_reserved(key, &item)?,
            outcome => outcome?,
        };
        self.report_expired(outcome);
        Ok(())
    }

    /// Frees space and puts again. The caller is not pinned.
    #[cold]
    #[inline(never)]
    fn put_in_reserved(&self, key: Key<'_>, item: &NewItem<'_>) -> Result<Outcome, Error> {
        self.make_space()?;
        self.try_put(key, item)
    }

    /// Prefetches the lines that a write of the key needs first. The caller is pinned while it uses the result.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: Key<'_>) -> Target<'_> {
        let target = self.table.prefetch(&self.medium, key.signature);
        self.cached_table().into_iter().for_each(|cache| cache.prefetch(key.signature));
        target
    }

    /// Step 1.
    pub(crate) fn prepare<'v>(&self, key: Key<'_>, item: &NewItem<'v>) -> Result<Prepared<'_, 'v, D>, Error> {
        let mut new = self.prepare_unwritten(key, item)?;
        self.write_prepared(&mut new, item);
        Ok(new)
    }

    /// The beginning of step 1: creates the slot, and reserves space for the item unless it fits into the slot.
    #[inline(always)]
    pub(crate) fn prepare_unwritten<'v>(&self, key: Key<'_>, item: &NewItem<'v>) -> Result<Prepared<'_, 'v, D>, Error> {
        if let Some(slot) = Slot::whole(item.key, item.value).filter(|_| item.expiry.is_never()) {
            return Ok(Prepared { new: New { slot, copy: None }, reservation: None, expires: false });
        }
        let reservation = self.heap.reserve(&self.medium, item.item_bytes(), epoch::thread_index())?;
        Ok(Prepared::in_reserved(key, reservation, item.expiry))
    }

    /// The rest of step 1.
    #[inline(always)]
    pub(crate) fn write_prepared<'v>(&self, new: &mut Prepared<'_, 'v, D>, item: &NewItem<'v>) {
        let witness = match &new.reservation {
            Some(reservation) => {
                let place = reservation.place();
                // SAFETY: the space was just reserved.
                let checksum = unsafe { item.write(&self.medium, place.offset, 0) };
                witness_of_item(Position::of(place), checksum, item.expiry)
            }
            None if self.cache.is_none() => return,
            None => witness_of_small(item.value),
        };
        new.new.copy = Some(NewCopy { value: item.value, version: witness.words(), expiry_ms: item.expiry.ms() });
    }

    /// If `allowed`, puts the prepared item and takes it, or removes the key. Reports an expired old item to the
    /// callback.
    pub(crate) fn write<'a>(
        &'a self,
        key: Key<'_>,
        new: &mut Option<Prepared<'a, '_, D>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<WriteResult<PriorState>, Error> {
        let outcome = self.write_pinned(key, new, allowed)?;
        Ok(self.report_expired(outcome))
    }

    /// Reports an item that had expired before it was overwritten. The caller is not pinned, unless its own caller is:
    /// the callback may use the store.
    #[inline(always)]
    pub(crate) fn report_expired(&self, outcome: Outcome) -> WriteResult<PriorState> {
        outcome.expired.into_iter().for_each(|item| self.expired_hook.notify(item));
        outcome.answer
    }

    /// Writes like [`Self::write`], without reporting.
    pub(crate) fn write_pinned<'a>(
        &'a self,
        key: Key<'_>,
        new: &mut Option<Prepared<'a, '_, D>>,
        allowed: &mut Allowed<'_>,
    ) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let entered = new.as_ref().map(|new| new.new);
        let (published, old, hidden) = match self.publish(key, entered.as_ref(), allowed)? {
            Entered::Published(published, old, hidden) => (published, old, hidden),
            Entered::Unchanged(answer) => {
                // The slot that decided may not be durable yet: `find` waits for it, and its result does not matter.
                self.find(key)?;
                return Ok(answer.into());
            }
        };
        new.take().into_iter().for_each(|new| new.publish(&self.reaper));
        let before = self.before(old.as_ref());
        self.finish(key, published, hidden, entered.as_ref(), old.as_ref())?;
        let before = before?;
        let expired = if before == PriorState::Expired { self.copy_expired(old.as_ref()) } else { None };
        Ok(Outcome { answer: WriteResult::Done(before), expired })
    }

    /// Completes a write after the publication of `new`, or of a removal.
    #[inline(always)]
    pub(crate) fn finish<'a, 'k>(
        &'a self,
        key: Key<'k>,
        published: Published<'_>,
        mut hidden: Hidden<'a, 'k>,
        new: Option<&New<'_>>,
        old: Option<&Slot>,
    ) -> Result<(), Error> {
        published.settle(&self.medium)?;
        if self.medium.breaks(canary::COPY_HIDDEN_LATE) {
            hidden = self.hide(key);
        }
        self.reveal(hidden, new);
        self.retire(old);
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
            let buckets = self.table.lock(self.cx(), key.signature);
            let found: Option<At> = buckets.find(key, |position| self.is_key(position, key))?;
            if found.is_none() {
                self.check_absence(|| buckets.damaged_bucket())?;
            }
            if !allowed(found.as_ref().map(|found| &found.slot)) {
                return Ok(Entered::Unchanged(WriteResult::Unexpected));
            }
            if found.is_none() && new.is_none() {
                return Ok(Entered::Unchanged(WriteResult::Done(PriorState::Absent)));
            }
            let old = found.map(|found| found.slot);
            let mut hidden = self.hide_in_time(key);
            self.hand_over(&mut hidden, new);
            if self.medium.breaks(canary::COPY_SHOWN_EARLY) {
                self.reveal(hidden.take(), new);
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
            self.table.split(self.cx(), key.signature, full)?;
        }
    }

    /// Returns an error if a full segment must not be split.
    pub(crate) fn may_grow(&self) -> Result<(), Error> {
        match self.growth {
            Growth::Splits => Ok(()),
            Growth::Refused => {
                let limit_bytes = self.table.segment_count() * SEGMENT_BYTES;
                Err(MediumError::Limit { wanted_bytes: limit_bytes + SEGMENT_BYTES, limit_bytes }.into())
            }
        }
    }

    /// Returns the state of the key in the old slot. The caller is pinned.
    pub(crate) fn before(&self, old: Option<&Slot>) -> Result<PriorState, Error> {
        let Some(old) = old else { return Ok(PriorState::Absent) };
        let is_past = self.clock.is_past(self.contents(old)?.expiry);
        Ok(if is_past { PriorState::Expired } else { PriorState::Present })
    }

    /// Copies an item that had expired when its slot was replaced, for the callback, if there is one. The caller has
    /// been pinned since before that.
    #[cold]
    pub(crate) fn copy_expired(&self, old: Option<&Slot>) -> Option<ExpiredItem> {
        // A damaged expiry or value is not reported.
        let seen = self.intact_contents(old?).ok()?;
        self.expired_hook.copy(seen.key, seen.value, seen.expiry)
    }

    /// Retires the item of a replaced slot.
    #[inline(always)]
    pub(crate) fn retire(&self, old: Option<&Slot>) {
        let place = old.and_then(Slot::position).and_then(Position::place);
        place.into_iter().for_each(|place| self.cx().retire(Garbage::of(place)));
    }

    /// Retries an attempt once if the region was full: space may have become free. The caller is not pinned, because
    /// its pin would block the freeing.
    pub(crate) fn with_space<R>(&self, attempt: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        with_space(attempt, || self.make_space())
    }

    /// Finishes the sweep, which may find free space, and gives readers some time to unpin, unless the caller is pinned
    /// itself.
    #[cold]
    fn make_space(&self) -> Result<(), Error> {
        self.finish_sweep()?;
        wait_for_readers(|| {
            self.collect();
            !self.limbo.is_empty() && !epoch::is_pinned()
        });
        Ok(())
    }
}

pub(crate) fn check_value(len_bytes: u64) -> Result<(), Error> {
    if len_bytes > Limits::VALUE_BYTES_MAX { Err(Error::ValueTooLong { len_bytes }) } else { Ok(()) }
}
