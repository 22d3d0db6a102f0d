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

use pmem::{Backoff, Dram, Medium};

use super::Writer;
use super::target::{Tried, Was, WriteTarget};
use crate::memory::Memory;
use crate::read::check_intact;
use engine::{Condition, CurrentItem, Decide, Decision, Error, ExpiredItem, Expiry, Limits, WriteResult};
use items::{Item, NewItem};

/// The change that a decision makes to a key.
enum Change<'v> {
    Keep,
    Delete,
    Put { value: Cow<'v, [u8]>, expiry: Expiry },
}

/// A write of one key that depends on its item.
pub(crate) struct Update<'a, 'k, M, D: Dram> {
    writer: &'a Writer<M, D>,
    signature: u64,
    key: &'k [u8],
}

impl<'a, 'k, M: Medium, D: Memory> Update<'a, 'k, M, D> {
    pub(crate) fn of(writer: &'a Writer<M, D>, key: &'k [u8]) -> Update<'a, 'k, M, D> {
        Update { writer, signature: writer.reader.signature(key), key }
    }

    /// As [`Self::change`], for a caller outside the engine, which does not handle items.
    pub(crate) fn by<'v>(&self, decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.change(&mut |item| match decide(item.map(|item| CurrentItem { value: item.value, expiry: item.expiry })) {
            Decision::Keep => Change::Keep,
            Decision::Delete => Change::Delete,
            Decision::Put(value) => Change::Put { value, expiry: item.map_or(Expiry::NEVER, |item| item.expiry) },
            Decision::PutUntil(value, expiry) => Change::Put { value, expiry },
        })
    }

    /// Changes the key's expiry; returns false if the key is absent. An expiry that has passed deletes the key.
    pub(crate) fn expire(&self, expiry: Expiry) -> Result<bool, Error> {
        let mut was_there = false;
        self.change(&mut |item| {
            was_there = item.is_some();
            match item {
                None => Change::Keep,
                Some(item) if item.expiry == expiry => Change::Keep,
                Some(_) if self.writer.reader.clock().is_past(expiry) => Change::Delete,
                Some(item) => Change::Put { value: item.value.into(), expiry },
            }
        })?;
        Ok(was_there)
    }

    /// Changes the key as `decide` returns for its item; returns true if anything changed. Calls `decide` again if
    /// another thread wrote the key first.
    fn change<'v>(&self, decide: &mut dyn FnMut(Option<Item<'a>>) -> Change<'v>) -> Result<bool, Error> {
        self.repeat(|| self.writer.with_space(|| self.try_change(decide)))
    }

    /// Deletes the key if all of these conditions, which concern the same key, hold.
    pub(crate) fn delete_if(&self, conditions: &[Condition<'_>]) -> Result<(), Error> {
        self.repeat(|| self.try_delete_if(conditions)).map(drop)
    }

    /// Repeats the attempt until the key did not change during it, and its queue had space. Then calls the callback for
    /// an item that had expired.
    fn repeat<T>(
        &self,
        mut attempt: impl FnMut() -> Result<Tried<'a, D, (T, Option<ExpiredItem>)>, Error>,
    ) -> Result<T, Error> {
        let mut backoff = Backoff::long();
        loop {
            match attempt()? {
                WriteResult::Done((done, expired)) => {
                    expired.into_iter().for_each(|item| self.writer.reaper.hook().notify(item));
                    return Ok(done);
                }
                WriteResult::Unexpected => {}
                WriteResult::QueueFull(_) => {
                    let partition = self.writer.reader.index().partition(self.signature);
                    self.writer.order.make_space(self.writer.source(), partition, &mut backoff)?;
                }
            }
        }
    }

    /// Does steps 1 and 4; step 1 only compares versions.
    fn try_delete_if(&self, conditions: &[Condition<'_>]) -> Result<Tried<'a, D, Was>, Error> {
        let _pin = epoch::pin();
        let reader = &self.writer.reader;
        let found = reader.find(self.signature, self.key)?;
        let live = found.map_or(Ok(None), |(position, item)| reader.live_witness(position, item))?;
        if let Some(condition) = conditions.iter().position(|condition| !condition.holds(live)) {
            return Err(Error::ConditionFailed { condition });
        }
        let target = WriteTarget::holding(self.signature, self.key, found.map(|(position, _)| position));
        self.writer.publish(target, None)
    }

    /// Returns true if the decision changes the key, and a copy of the item that had expired before. An item that was
    /// passed to the decision had not expired.
    fn try_change<'v>(
        &self,
        decide: &mut dyn FnMut(Option<Item<'a>>) -> Change<'v>,
    ) -> Result<Tried<'a, D, (bool, Option<ExpiredItem>)>, Error> {
        let _pin = epoch::pin();
        let found = self.writer.reader.find(self.signature, self.key)?;
        let target = WriteTarget::holding(self.signature, self.key, found.map(|(position, _)| position));
        let item = match found {
            Some((position, item)) => {
                check_intact(&item, position)?;
                self.writer.reader.unexpired(item, position)?
            }
            None => None,
        };
        let new = match decide(item) {
            Change::Keep => return Ok(WriteResult::Done((false, None))),
            Change::Delete => None,
            Change::Put { value, expiry } => {
                Limits::check_value(value.len() as u64)?;
                self.writer.check_writable()?;
                Some(self.writer.prepare(&NewItem { key: self.key, value: &value, expiry })?)
            }
        };
        let changed = item.is_some() || new.is_some();
        Ok(self.writer.publish(target, new)?.map(|(_, expired)| (changed, expired.filter(|_| item.is_none()))))
    }
}
