//! Writes an item and publishes it, or removes a key: the steps of a write.
//!
//! # Two paths
//! Steps 3 to 6 have a fast path ([`Writer::put`], [`Writer::remove`]), which reads only the key's home line. That is
//! enough for most keys: the entry is in its home line, or absent, and has no mark. The old item, if there is one, is
//! in a slot, and neither item expires. No snapshot was taken since the new item was stamped, and none is live. The
//! key's queue has a free place. Otherwise nothing has been changed yet, and the general path does all of it from the
//! beginning, with the bucket unlocked.
//!
//! The general path ([`Writer::enter`]) serves puts and deletes of all kinds, groups of puts, and changes that hold
//! only while the key's entry is the one that the caller saw. Such a caller read the item under a pin that lasts until
//! the change is published. So the item's space was not reused, and an equal position names the same item.

use epoch::Pin;
use index::Position;
use index::cached_table::Write;
use index::partitioned_hash::{LockedLookup, Published};
use pmem::{Backoff, Medium, MediumError, Offset};

use super::target::{Attempt, Committed, Expected, Pending, Prepared, PreparedPlace, Tried, WriteTarget};
use super::{Writer, broken};
use crate::cache::{Hidden, reveal};
use crate::canary;
use crate::memory::Memory;
use crate::order::{self, Written};
use crate::snapshots::Replacement;
use engine::{Clock, Error, Expiry, Outcome, PriorState, WriteResult};
use items::NewItem;

impl<M: Medium, D: Memory> Writer<M, D> {
    /// Puts an item. The two attempts are not in a loop: the compiler would compute all values that depend on the
    /// item's lengths ahead, and keep them in memory.
    #[inline(always)]
    pub(crate) fn put(&self, item: &NewItem<'_>) -> Result<(), Error> {
        match self.try_put(item) {
            Err(error) if error.is_full() => self.put_in_reserved(item.key, item.value, item.expiry),
            done => done,
        }
    }

    /// Makes the second attempt.
    #[cold]
    #[inline(never)]
    fn put_in_reserved(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.make_space()?;
        self.try_put(&NewItem { key, value, expiry })
    }

    /// Puts an item unless the region is full.
    #[inline(always)]
    fn try_put(&self, item: &NewItem<'_>) -> Result<(), Error> {
        let pin = epoch::pin();
        let target = self.reader.index().prefetch(self.reader.medium(), self.reader.signature(item.key));
        if let Some(done) = broken::put(self, target.signature(), item) {
            return done;
        }
        let (key, new) = (item.key, self.prepare_place(item)?);
        let candidate = self.reader.prefetch_old(&target);
        let Some(bucket) = self.reader.index().lock_target(self.cx(), &target) else {
            return self.publish_after_all(pin, target.signature(), key, new);
        };
        let lookup = bucket.lookup_candidate(&target, candidate);
        let is_clear = match lookup {
            LockedLookup::Entry(found) => self.reader.plain_of(found.position, key).is_some(),
            LockedLookup::Free(_) | LockedLookup::Full => self.reader.trusts_absence(),
            LockedLookup::Unsure => false,
        };
        if !is_clear || !new.expiry.is_never() || !self.snapshots.has_no_snapshot(new.stamp) {
            drop(bucket);
            return self.publish_after_all(pin, target.signature(), key, new);
        }
        let Some(ticket) = self.order.take(|| self.reader.index().partition(target.signature())) else {
            drop(bucket);
            return self.publish_after_all(pin, target.signature(), key, new);
        };
        let position = new.position;
        let mut hidden = self.cache.hide(self.reader.medium(), target.signature(), key, Some(position));
        let (old, published) = match lookup {
            LockedLookup::Entry(found) => (Some(found.position), bucket.replace_found(&found, position)),
            LockedLookup::Free(slot) => (None, bucket.insert_at(slot, position)),
            LockedLookup::Full | LockedLookup::Unsure => match bucket.insert(position) {
                Ok(published) => (None, published),
                Err(_) => {
                    hidden.into_iter().for_each(Write::unchanged);
                    drop(ticket);
                    return self.publish_after_all(pin, target.signature(), key, new);
                }
            },
        };
        let crowded = published.crowded;
        if old.is_none() {
            self.key_changes.added(key);
        }
        self.settle(Written { key, old, new: Some(position) }, published, ticket, &mut hidden)?;
        if let Some(segment) = crowded {
            self.split(target.signature(), segment);
        }
        Ok(())
    }

    /// Does steps 1 and 2: reserves space, writes the item and flushes it.
    #[inline(always)]
    pub(crate) fn prepare(&self, item: &NewItem<'_>) -> Result<Prepared<'_, D>, Error> {
        Ok(self.prepare_place(item)?.hold(self.space.heap()))
    }

    /// As [`Writer::prepare`], and returns the position instead of the reservation.
    #[inline(always)]
    fn prepare_place(&self, item: &NewItem<'_>) -> Result<PreparedPlace, Error> {
        let medium = self.reader.medium();
        let reservation = self.space.reserve_for(medium, item.expiry, item.item_bytes())?;
        let (place, stamp) = (reservation.publish(), self.snapshots.stamp());
        // SAFETY: the space was just reserved.
        unsafe { item.write(medium, place.offset, stamp) };
        Ok(PreparedPlace { position: Position::of(place), expiry: item.expiry, stamp })
    }

    /// Removes the key; returns false if it was absent.
    #[inline(always)]
    pub(crate) fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let pin = epoch::pin();
        let target = self.reader.index().prefetch(self.reader.medium(), self.reader.signature(key));
        target.prefetch_count();
        let candidate = self.reader.prefetch_old(&target);
        let Some(bucket) = self.reader.index().lock_target(self.cx(), &target) else {
            return self.remove_after_all(pin, target.signature(), key);
        };
        let found = match bucket.lookup_candidate(&target, candidate) {
            LockedLookup::Entry(found)
                if self.reader.plain_of(found.position, key).is_some()
                    && self.snapshots.has_no_snapshot(self.snapshots.stamp()) =>
            {
                found
            }
            _ => {
                drop(bucket);
                return self.remove_after_all(pin, target.signature(), key);
            }
        };
        let Some(ticket) = self.order.take(|| self.reader.index().partition(target.signature())) else {
            drop(bucket);
            return self.remove_after_all(pin, target.signature(), key);
        };
        let mut hidden = self.cache.hide(self.reader.medium(), target.signature(), key, None);
        let published = bucket.remove_found(&found);
        self.key_changes.removed(key);
        self.settle(Written { key, old: Some(found.position), new: None }, published, ticket, &mut hidden)?;
        Ok(true)
    }

    /// Splits a segment whose stash fills up. The item is already in; if the split finds no space now, a later put
    /// tries again.
    #[cold]
    fn split(&self, signature: u64, segment: Offset) {
        let _ = self.reader.index().split(self.cx(), signature, segment);
    }

    #[cold]
    #[inline(never)]
    fn publish_after_all(&self, pin: Pin, signature: u64, key: &[u8], new: PreparedPlace) -> Result<(), Error> {
        self.publish_waiting(pin, WriteTarget::any(signature, key), Some(new.hold(self.space.heap()))).map(drop)
    }

    #[cold]
    #[inline(never)]
    fn remove_after_all(&self, pin: Pin, signature: u64, key: &[u8]) -> Result<bool, Error> {
        Ok(self.publish_waiting(pin, WriteTarget::any(signature, key), None)? == PriorState::Present)
    }

    /// Does steps 3 and 4: publishes `new`, whose item was written and flushed, or removes the key. The caller is
    /// pinned.
    #[inline(always)]
    pub(super) fn enter<'a, 'k>(
        &'a self,
        target: WriteTarget<'k>,
        mut new: Option<Prepared<'a, D>>,
        committed: Committed,
    ) -> Result<Tried<'a, D, Option<Pending<'k, 'a>>>, Error> {
        let WriteTarget { signature, key, expected } = target;
        let position = new.as_ref().map(Prepared::position);
        let expiry = new.as_ref().map_or(Expiry::NEVER, |new| new.expiry);
        loop {
            let mut bucket = self.reader.index().lock(self.cx(), signature).due_at(expiry.ms());
            if committed == Committed::Together {
                bucket = bucket.in_group();
            }
            let found =
                bucket.find(|position| Ok::<_, Error>(self.reader.item_of(position, key)?.map(|item| item.expiry)))?;
            let old = found.as_ref().map(|found| found.position);
            if old.is_none() {
                self.reader.refuse_hidden(signature, key)?;
            }
            if !expected.allows(old) && !self.reader.medium().breaks(canary::CAS_IGNORES_CHANGE) {
                return Ok(WriteResult::Unexpected);
            }
            if old.is_none() && position.is_none() {
                drop(bucket);
                self.reader.find_again(signature, key)?;
                return Ok(WriteResult::Done(None));
            }
            let Some(ticket) = self.order.take(|| self.reader.index().partition(signature)) else {
                return Ok(WriteResult::QueueFull(new));
            };
            let stamp = new.as_ref().map_or_else(|| self.snapshots.stamp(), |new| new.stamp);
            let replacement = Replacement { stamp, signature, key, old };
            let is_copy = matches!(expected, Expected::Original(_));
            if !is_copy && !self.snapshots.may_publish(self.reader.medium(), replacement)? {
                drop((ticket, bucket));
                new = new.map(|new| new.stamped_as(self.reader.medium(), self.snapshots.stamp())).transpose()?;
                continue;
            }
            let hidden = self.cache.hide(self.reader.medium(), signature, key, position);
            let published = match (&found, position) {
                (Some(found), Some(position)) => Ok(bucket.replace(found, position)),
                (Some(found), None) => Ok(bucket.remove(found)),
                (None, position) => bucket.insert(position.expect("a delete of an absent key returned above")),
            };
            match published {
                Ok(published) => {
                    new.map(|new| new.reservation.publish());
                    if self.reader.medium().breaks(canary::KEPT_AFTER_PUBLISH) {
                        self.snapshots.keep(self.reader.medium(), replacement)?;
                    }
                    self.reaper.expect(expiry);
                    self.key_changes.replaced(key, old.is_some(), position.is_some());
                    let written = Written { key, old, new: position };
                    let old_expiry = found.filter(|_| !is_copy).map(|found| found.value);
                    return Ok(WriteResult::Done(Some(Pending { written, old_expiry, published, ticket, hidden })));
                }
                Err(full) => {
                    hidden.into_iter().for_each(Write::unchanged);
                    drop(ticket);
                    self.reader.index().split(self.cx(), signature, full)?;
                }
            }
        }
    }

    /// Does steps 5 and 6. If 5 fails, the change is published nevertheless, and the ordered index follows.
    #[inline(always)]
    pub(super) fn settle<'a, 'k>(
        &'a self,
        written: Written<'k>,
        published: Published,
        ticket: order::Ticket<'a>,
        hidden: &mut Hidden<'a, 'k>,
    ) -> Result<(), MediumError> {
        let settled = published.settle(self.reader.medium());
        if broken::free_deleted(self, &written) {
            return Ok(());
        }
        if hidden.is_some() && settled.is_ok() {
            reveal(self.reader.medium(), hidden.take(), written.new);
        }
        self.order.enqueue(self.disposal(), ticket, written);
        settled
    }

    /// Does steps 3 to 6, and returns a copy of the item that had expired before. The caller is pinned.
    #[inline]
    pub(crate) fn publish<'a>(
        &'a self,
        target: WriteTarget<'_>,
        new: Option<Prepared<'a, D>>,
    ) -> Result<Attempt<'a, D>, Error> {
        let pending = match self.enter(target, new, Committed::Alone)? {
            WriteResult::Done(Some(pending)) => pending,
            // The key was absent and stays so, or nothing was published.
            entered => return Ok(Outcome { answer: entered.map(|_| PriorState::Absent), expired: None }),
        };
        let before = prior_state(self.reader.clock(), pending.old_expiry);
        let Pending { written, published, ticket, mut hidden, .. } = pending;
        let (crowded, old) = (published.crowded, written.old);
        self.settle(written, published, ticket, &mut hidden)?;
        if let Some(segment) = crowded {
            self.split(target.signature, segment);
        }
        let expired = if before == PriorState::Expired { self.reaper.copy(self.reader.medium(), old) } else { None };
        Ok(Outcome { answer: WriteResult::Done(before), expired })
    }

    /// Does steps 3 to 6, also if queues are full: the caller is not pinned while it waits. So `target` expects nothing
    /// that a pin keeps. If the key had expired, the callback has been called.
    #[inline]
    pub(crate) fn publish_waiting<'a>(
        &'a self,
        pin: Pin,
        target: WriteTarget<'_>,
        mut new: Option<Prepared<'a, D>>,
    ) -> Result<PriorState, Error> {
        let (mut pin, mut backoff) = (Some(pin), Backoff::long());
        loop {
            let outcome = self.publish(target, new)?;
            drop(pin.take());
            match self.reaper.hook().report(outcome) {
                WriteResult::Done(before) => return Ok(before),
                WriteResult::QueueFull(waiting) => new = waiting,
                WriteResult::Unexpected => unreachable!("a write that may wait expects no item"),
            }
            self.order.make_space(self.source(), self.reader.index().partition(target.signature), &mut backoff)?;
            pin = Some(epoch::pin());
        }
    }
}

/// Returns the state of the key before a write that has just removed an item of this expiry.
#[inline(always)]
pub(super) fn prior_state(clock: &Clock, old_expiry: Option<Expiry>) -> PriorState {
    match old_expiry {
        None => PriorState::Absent,
        Some(expiry) if clock.is_past(expiry) => PriorState::Expired,
        Some(_) => PriorState::Present,
    }
}
