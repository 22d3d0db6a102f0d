//! Publishing an item that was written, or a removal: steps 3 to 6 of a write.
//!
//! [`HiKv::enter`] is the one way to an entry: for puts and deletes, for those of many together, and for changes that hold
//! only while the key's entry is what the caller saw before. A caller that expects an item read it under a pin that lasts until the
//! change is published: so its room was not reused, and an equal position names the same item.

use epoch::Pin;
use heap::Reservation;
use index::Position;
use index::cached_table::{Write, canary as cached_table};
use index::partitioned_hash::Published;
use pmem::{Backoff, Dram, Medium, MediumError};

use crate::canary;
use crate::item;
use crate::order::{self, Ordered, Written};
use crate::{HiKv, Memory};
use engine::{Error, ExpiredItem, Expiry, PriorState, WriteResult};

/// What a write expects of its key's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// Nothing: it takes place in any case.
    Anything,
    /// This item, or that there is none.
    Item(Option<Position>),
    /// This item, of which a copy comes in its place: a reader that may see the one may see the other, snapshots too.
    Original(Position),
}

/// The key that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTarget<'k> {
    pub(crate) signature: u64,
    pub(crate) key: &'k [u8],
    pub(crate) expected: Expected,
}

/// An item that was written and flushed, and that nobody sees yet.
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

/// The same, by a word: the room stays the writer's until it is published, or held again ([`HiKv::hold`]) and given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laid {
    pub(crate) position: Position,
    pub(crate) expiry: Expiry,
    pub(crate) stamp: u32,
}

/// Which thread commits an entry that is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Committed {
    /// Its own publisher.
    Alone,
    /// The one that published it together with others, whose items were ordered together.
    Together,
}

/// What a write is to the read cache, if there is one.
pub(crate) type Hidden<'a, 'k> = Option<Write<'a, 'k>>;

/// An entry that was published and not settled.
pub(crate) struct Pending<'k, 'r> {
    pub(crate) written: Written<'k>,
    /// When the old item expires, if there is one that goes.
    pub(crate) old_expiry: Option<Expiry>,
    pub(crate) published: Published,
    pub(crate) ticket: order::Ticket<'r>,
    /// The key's copy in the read cache.
    pub(crate) hidden: Hidden<'r, 'k>,
}

/// What a write found, and a copy of the item if that had expired.
pub(crate) type Was = (PriorState, Option<ExpiredItem>);

/// The answer of a write of this engine: the new item, if there is one, comes back from a full queue.
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
    /// The key, whatever it holds.
    #[inline(always)]
    pub(crate) fn any(signature: u64, key: &'k [u8]) -> WriteTarget<'k> {
        WriteTarget { signature, key, expected: Expected::Anything }
    }

    /// The key while its item is this one, which the caller saw under the pin that it still holds.
    pub(crate) fn holding(signature: u64, key: &'k [u8], item: Option<Position>) -> WriteTarget<'k> {
        WriteTarget { signature, key, expected: Expected::Item(item.map(Position::item)) }
    }
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Steps 3 and 4: publishes `new`, whose item was written and flushed, or the removal of what is there. The caller is
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
            let mut bucket = self.index.lock(self.cx(), signature).due_at(expiry.ms());
            if committed == Committed::Together {
                bucket = bucket.in_group();
            }
            let found = bucket.find(|position| Ok::<_, Error>(self.item_of(position, key)?.map(|item| item.expiry)))?;
            let old = found.as_ref().map(|found| found.position);
            if old.is_none() {
                self.refuse_hidden(signature, key)?;
            }
            if !expected.allows(old) && !self.medium.breaks(canary::CAS_IGNORES_CHANGE) {
                return Ok(WriteResult::Unexpected);
            }
            if old.is_none() && position.is_none() {
                drop(bucket);
                self.find_again(signature, key)?;
                return Ok(WriteResult::Done(None));
            }
            let Some(ticket) = self.order.take(|| self.index.partition(signature)) else {
                return Ok(WriteResult::QueueFull(new));
            };
            let stamp = new.as_ref().map_or_else(|| self.stamp(), |new| new.stamp);
            let is_copy = matches!(expected, Expected::Original(_));
            if !is_copy && !self.may_publish(stamp, signature, key, old)? {
                drop((ticket, bucket));
                new = new.map(|new| self.stamp_anew(new)).transpose()?;
                continue;
            }
            let mut hidden = self.hide(signature, key);
            if self.medium.breaks(cached_table::COPY_SHOWN_EARLY) {
                self.reveal(hidden.take(), position);
            }
            let published = match (&found, position) {
                (Some(found), Some(position)) => Ok(bucket.replace(found, position)),
                (Some(found), None) => Ok(bucket.remove(found)),
                (None, position) => bucket.insert(position.expect("where nothing was, something new comes")),
            };
            match published {
                Ok(published) => {
                    new.map(|new| new.reservation.publish());
                    if self.medium.breaks(canary::KEPT_AFTER_PUBLISH) {
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
                    self.index.split(self.cx(), signature, full)?;
                }
            }
        }
    }

    /// For a writer that publishes nothing, and tells its caller what it saw of the key. Under its lock it did not wait until that
    /// was durable; this looks once more as a reader, and so waits until what is there now is durable.
    #[cold]
    pub(crate) fn find_again(&self, signature: u64, key: &[u8]) -> Result<(), Error> {
        if self.medium.deferred().is_some() {
            self.find(signature, key)?;
        }
        Ok(())
    }

    /// Steps 5 and 6. Where 5 fails the change is published all the same, and the order follows.
    #[inline(always)]
    pub(crate) fn settle<'a>(&'a self, pending: Pending<'_, 'a>) -> Result<(), MediumError> {
        let Pending { written, published, ticket, mut hidden, .. } = pending;
        self.settle_parts(written, published, ticket, &mut hidden)
    }

    /// As [`HiKv::settle`], of parts that were put nowhere together.
    #[inline(always)]
    pub(crate) fn settle_parts<'a, 'k>(
        &'a self,
        written: Written<'k>,
        published: Published,
        ticket: order::Ticket<'a>,
        hidden: &mut Hidden<'a, 'k>,
    ) -> Result<(), MediumError> {
        let settled = published.settle(&self.medium);
        if self.medium.breaks(canary::PLAIN_ZERO_DELETE)
            && let Written { old: Some(old), new: None, .. } = written
        {
            old.place().into_iter().for_each(|place| self.heap.free(&self.medium, place));
            return Ok(());
        }
        if hidden.is_some() && settled.is_ok() {
            self.reveal(hidden.take(), written.new);
        }
        self.enqueue(ticket, written);
        settled
    }

    /// What an item of this expiry was to the write that took it away just now.
    #[inline(always)]
    pub(crate) fn before(&self, old_expiry: Option<Expiry>) -> PriorState {
        match old_expiry {
            None => PriorState::Absent,
            Some(expiry) if self.clock.is_past(expiry) => PriorState::Expired,
            Some(_) => PriorState::Present,
        }
    }

    /// A copy of an item that had expired when it was taken out, for the callback, if there is one. The caller has been pinned since before.
    #[cold]
    pub(crate) fn copy_expired(&self, position: Option<Position>) -> Option<ExpiredItem> {
        // SAFETY: the caller's pin keeps the item, which was found in the index.
        let item = unsafe { item::read(&self.medium, position?) }.ok()?;
        // A time that has rotted is none, and neither is a value.
        if item.is_intact() { self.expired_hook.copy(item.key, item.value, item.expiry) } else { None }
    }

    /// Step 6.
    #[inline(always)]
    pub(crate) fn enqueue<'a>(&'a self, ticket: order::Ticket<'a>, written: Written<'_>) {
        self.order.enqueue(self.disposal(), ticket, written);
    }

    /// Steps 3 to 6, and a copy of the item that had expired before. The caller is pinned.
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

    /// Steps 3 to 6, also where queues are full: the caller is not pinned while it waits. So `target` expects nothing that a pin
    /// keeps. The callback has been told if the key had expired.
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
                WriteResult::Unexpected => unreachable!("a write that may wait expects nothing"),
            }
            drop(pin.take());
            Ordered::make_space(self, self.index.partition(target.signature), &mut backoff)?;
            pin = Some(epoch::pin());
        }
    }
}
