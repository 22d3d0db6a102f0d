//! Publishes a written item, or a removal: steps 3 to 6 of a write.
//!
//! [`HiKv::enter`] is the only way to an entry: for puts and deletes, for groups of puts, and for changes that hold
//! only while the key's entry is the one that the caller saw. A caller that expects an item read it under a pin that
//! lasts until the change is published. So the item's space was not reused, and an equal position names the same item.

use epoch::Pin;
use heap::Reservation;
use index::Position;
use index::cached_table::{Write, canary as cached_table};
use index::partitioned_hash::Published;
use pmem::{Backoff, Dram, Medium, MediumError};

use crate::cache::{Hidden, reveal};
use crate::item;
use crate::order::{self, Ordered, Written};
use crate::{HiKv, Memory, broken, canary};
use engine::{Error, ExpiredItem, Expiry, PriorState, WriteResult};

/// The entry that a write expects of its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// Any: the write takes place in any case.
    Anything,
    /// This item, or none.
    Item(Option<Position>),
    /// This item, which its copy replaces. A reader, also of a snapshot, may see either of the two.
    Original(Position),
}

/// The key that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTarget<'k> {
    pub(crate) signature: u64,
    pub(crate) key: &'k [u8],
    pub(crate) expected: Expected,
}

/// An item that was written and flushed, and that no reader sees yet.
pub(crate) struct Prepared<'r, D: Dram> {
    pub(crate) reservation: Reservation<'r, D>,
    pub(crate) expiry: Expiry,
    /// The snapshot epoch of the item.
    pub(crate) stamp: u32,
}

impl<D: Dram> Prepared<'_, D> {
    #[inline(always)]
    pub(crate) fn position(&self) -> Position {
        Position::of(self.reservation.place())
    }
}

/// As [`Prepared`], by its position: the space belongs to the writer until it publishes the item, or reserves the space
/// again ([`HiKv::hold`]) and frees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laid {
    pub(crate) position: Position,
    pub(crate) expiry: Expiry,
    pub(crate) stamp: u32,
}

/// The thread that commits a published entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Committed {
    /// The thread that publishes it.
    Alone,
    /// The thread that publishes it together with others, whose items were ordered together.
    Together,
}

/// An entry that was published and not settled.
pub(crate) struct Pending<'k, 'r> {
    pub(crate) written: Written<'k>,
    /// The expiry of the old item, if one is replaced or removed.
    pub(crate) old_expiry: Option<Expiry>,
    pub(crate) published: Published,
    pub(crate) ticket: order::Ticket<'r>,
    /// The key's copy in the read cache.
    pub(crate) hidden: Hidden<'r, 'k>,
}

/// The state of the key before the write, and a copy of the item if that had expired.
pub(crate) type Was = (PriorState, Option<ExpiredItem>);

/// The result of a write attempt of this engine. A full queue returns the new item, if there is one.
pub(crate) type Tried<'r, D, T> = WriteResult<T, Option<Prepared<'r, D>>>;

impl Expected {
    #[inline(always)]
    fn allows(self, present: Option<Position>) -> bool {
        match self {
            Expected::Anything => true,
            Expected::Item(item) => item == present.map(Position::item),
            Expected::Original(item) => present.is_some_and(|present| present.item() == item.item()),
        }
    }
}

impl<'k> WriteTarget<'k> {
    /// Returns the key with any entry.
    #[inline(always)]
    pub(crate) fn any(signature: u64, key: &'k [u8]) -> WriteTarget<'k> {
        WriteTarget { signature, key, expected: Expected::Anything }
    }

    /// Returns the key with this item, which the caller saw under the pin that it still holds.
    pub(crate) fn holding(signature: u64, key: &'k [u8], item: Option<Position>) -> WriteTarget<'k> {
        WriteTarget { signature, key, expected: Expected::Item(item.map(Position::item)) }
    }
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Does steps 3 and 4: publishes `new`, whose item was written and flushed, or removes the key. The caller is
    /// pinned.
    #[inline(always)]
    pub(crate) fn enter<'a, 'k>(
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
            let stamp = new.as_ref().map_or_else(|| self.stamp(), |new| new.stamp);
            let is_copy = matches!(expected, Expected::Original(_));
            if !is_copy && !self.may_publish(stamp, signature, key, old)? {
                drop((ticket, bucket));
                new = new.map(|new| self.stamp_anew(new)).transpose()?;
                continue;
            }
            let mut hidden = self.cache.hide(self.reader.medium(), signature, key);
            if self.reader.medium().breaks(cached_table::COPY_SHOWN_EARLY) {
                reveal(self.reader.medium(), hidden.take(), position);
            }
            let published = match (&found, position) {
                (Some(found), Some(position)) => Ok(bucket.replace(found, position)),
                (Some(found), None) => Ok(bucket.remove(found)),
                (None, position) => bucket.insert(position.expect("a delete of an absent key returned above")),
            };
            match published {
                Ok(published) => {
                    new.map(|new| new.reservation.publish());
                    if self.reader.medium().breaks(canary::KEPT_AFTER_PUBLISH) {
                        self.keep_for_snapshots(stamp, signature, key, old)?;
                    }
                    self.reaper.expect(expiry);
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
    pub(crate) fn settle<'a>(&'a self, pending: Pending<'_, 'a>) -> Result<(), MediumError> {
        let Pending { written, published, ticket, mut hidden, .. } = pending;
        self.settle_parts(written, published, ticket, &mut hidden)
    }

    /// As [`HiKv::settle`], for separate parts.
    #[inline(always)]
    pub(crate) fn settle_parts<'a, 'k>(
        &'a self,
        written: Written<'k>,
        published: Published,
        ticket: order::Ticket<'a>,
        hidden: &mut Hidden<'a, 'k>,
    ) -> Result<(), MediumError> {
        let settled = published.settle(self.reader.medium());
        if self.reader.medium().breaks(canary::PLAIN_ZERO_DELETE) && broken::free_deleted(self, &written) {
            return Ok(());
        }
        if hidden.is_some() && settled.is_ok() {
            reveal(self.reader.medium(), hidden.take(), written.new);
        }
        self.enqueue(ticket, written);
        settled
    }

    /// Returns the state of the key before a write that has just removed an item of this expiry.
    #[inline(always)]
    pub(crate) fn before(&self, old_expiry: Option<Expiry>) -> PriorState {
        match old_expiry {
            None => PriorState::Absent,
            Some(expiry) if self.reader.clock().is_past(expiry) => PriorState::Expired,
            Some(_) => PriorState::Present,
        }
    }

    /// Returns a copy of a removed item that had expired, for the callback, if there is one. The caller has been pinned
    /// since before the removal.
    #[cold]
    pub(crate) fn copy_expired(&self, position: Option<Position>) -> Option<ExpiredItem> {
        // SAFETY: the caller's pin keeps the item, which was found in the index.
        let item = unsafe { item::read(self.reader.medium(), position?) }.ok()?;
        // A damaged expiry or value is not reported.
        if item.is_intact() { self.expired_hook.copy(item.key, item.value, item.expiry) } else { None }
    }

    /// Does step 6.
    #[inline(always)]
    pub(crate) fn enqueue<'a>(&'a self, ticket: order::Ticket<'a>, written: Written<'_>) {
        self.order.enqueue(self.disposal(), ticket, written);
    }

    /// Does steps 3 to 6, and returns a copy of the item that had expired before. The caller is pinned.
    #[inline]
    pub(crate) fn publish<'a>(
        &'a self,
        target: WriteTarget<'_>,
        new: Option<Prepared<'a, D>>,
    ) -> Result<Tried<'a, D, Was>, Error> {
        let pending = match self.enter(target, new, Committed::Alone)? {
            WriteResult::Done(Some(pending)) => pending,
            WriteResult::Done(None) => return Ok(WriteResult::Done((PriorState::Absent, None))),
            WriteResult::Unexpected => return Ok(WriteResult::Unexpected),
            WriteResult::QueueFull(new) => return Ok(WriteResult::QueueFull(new)),
        };
        let before = self.before(pending.old_expiry);
        let (crowded, old) = (pending.published.crowded, pending.written.old);
        self.settle(pending)?;
        if let Some(segment) = crowded {
            self.split(target.signature, segment);
        }
        let expired = if before == PriorState::Expired { self.copy_expired(old) } else { None };
        Ok(WriteResult::Done((before, expired)))
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
            match self.publish(target, new)? {
                WriteResult::Done((before, expired)) => {
                    drop(pin);
                    expired.into_iter().for_each(|item| self.expired_hook.notify(item));
                    return Ok(before);
                }
                WriteResult::QueueFull(waiting) => new = waiting,
                WriteResult::Unexpected => unreachable!("a write that may wait expects no item"),
            }
            drop(pin.take());
            Ordered::make_space(self, self.reader.index().partition(target.signature), &mut backoff)?;
            pin = Some(epoch::pin());
        }
    }
}
