//! Writes that depend on the key's present item.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 pin; the key's item is read | nothing |
//! | 2 the decision, without any lock | nothing |
//! | 3 the new item, if there is one, is written and flushed | free space |
//! | 4 as a put or delete, if the entry still names that item; otherwise from 1 | the old item or the new one |
//!
//! The pin lasts from 1 to 4. So the item's space is not reused, and an equal position names the same item (no ABA). If
//! the key's queue is full, the pin is released and the item is read again.
//!
//! An expired key is absent to the decision, and the expired item is replaced. If an item expires between the decision
//! and 4, the key counts as present, as the decision saw, and the callback is not called. An item's checksum must
//! match, whatever checks reads make: a value derived from a damaged one would get a valid checksum.

use std::borrow::Cow;

use pmem::{Backoff, Medium};

use crate::order::Ordered;
use crate::read::check_intact;
use crate::write::publish::{Tried, Was, WriteTarget};
use crate::{HiKv, Memory};
use engine::{Condition, CurrentItem, Decide, Decision, Error, ExpiredItem, Expiry, WriteResult};
use items::{Item, NewItem};

/// The change that a decision makes to a key.
pub(crate) enum Change<'v> {
    Keep,
    Delete,
    Put { value: Cow<'v, [u8]>, expiry: Expiry },
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// As [`Self::change`], for a caller outside the engine, which does not handle items.
    pub(crate) fn update_by<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.change(key, &mut |item| match decide(
            item.map(|item| CurrentItem { value: item.value, expiry: item.expiry }),
        ) {
            Decision::Keep => Change::Keep,
            Decision::Delete => Change::Delete,
            Decision::Put(value) => Change::Put { value, expiry: item.map_or(Expiry::NEVER, |item| item.expiry) },
            Decision::PutUntil(value, expiry) => Change::Put { value, expiry },
        })
    }

    /// Changes the key as `decide` returns for its item; returns true if anything changed. Calls `decide` again if
    /// another thread wrote the key first.
    pub(crate) fn change<'a, 'v>(
        &'a self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<Item<'a>>) -> Change<'v>,
    ) -> Result<bool, Error> {
        let (signature, mut backoff) = (self.reader.signature(key), Backoff::long());
        loop {
            match self.with_space(|| self.try_change(signature, key, decide))? {
                WriteResult::Done((changed, expired)) => {
                    expired.into_iter().for_each(|item| self.expired_hook.notify(item));
                    return Ok(changed);
                }
                WriteResult::Unexpected => {}
                WriteResult::QueueFull(_) => {
                    Ordered::make_space(self, self.reader.index().partition(signature), &mut backoff)?
                }
            }
        }
    }

    /// Deletes the key if all of these conditions, which concern the same key, hold.
    pub(crate) fn delete_if(&self, key: &[u8], conditions: &[Condition<'_>]) -> Result<(), Error> {
        let (signature, mut backoff) = (self.reader.signature(key), Backoff::long());
        loop {
            match self.try_delete_if(signature, key, conditions)? {
                WriteResult::Done((_, expired)) => {
                    expired.into_iter().for_each(|item| self.expired_hook.notify(item));
                    return Ok(());
                }
                WriteResult::Unexpected => {}
                WriteResult::QueueFull(_) => {
                    Ordered::make_space(self, self.reader.index().partition(signature), &mut backoff)?
                }
            }
        }
    }

    /// Does steps 1 and 4; step 1 only compares versions.
    fn try_delete_if<'a>(
        &'a self,
        signature: u64,
        key: &[u8],
        conditions: &[Condition<'_>],
    ) -> Result<Tried<'a, D, Was>, Error> {
        let _pin = epoch::pin();
        let found = self.reader.find(signature, key)?;
        let live = found.map_or(Ok(None), |(position, item)| self.reader.live_witness(position, item))?;
        if let Some(condition) = conditions.iter().position(|condition| !condition.holds(live)) {
            return Err(Error::ConditionFailed { condition });
        }
        let target = WriteTarget::holding(signature, key, found.map(|(position, _)| position));
        self.publish(target, None)
    }

    /// Returns true if the decision changes the key, and a copy of the item that had expired before. An item that was
    /// passed to the decision had not expired.
    fn try_change<'a, 'v>(
        &'a self,
        signature: u64,
        key: &[u8],
        decide: &mut dyn FnMut(Option<Item<'a>>) -> Change<'v>,
    ) -> Result<Tried<'a, D, (bool, Option<ExpiredItem>)>, Error> {
        let _pin = epoch::pin();
        let found = self.reader.find(signature, key)?;
        let target = WriteTarget::holding(signature, key, found.map(|(position, _)| position));
        let item = match found {
            Some((position, item)) => {
                check_intact(&item, position)?;
                self.reader.unexpired(item, position)?
            }
            None => None,
        };
        let new = match decide(item) {
            Change::Keep => return Ok(WriteResult::Done((false, None))),
            Change::Delete => None,
            Change::Put { value, expiry } => {
                self.check_put(key, value.len() as u64)?;
                Some(self.prepare(&NewItem { key, value: &value, expiry })?)
            }
        };
        let changed = item.is_some() || new.is_some();
        Ok(self.publish(target, new)?.map(|(_, expired)| (changed, expired.filter(|_| item.is_none()))))
    }
}
