//! Writes that depend on the key's present item.
//!
//! The steps are those of `engine/src/conditional.rs`. Step 3 writes and flushes the new item; step 4 is a put or
//! delete if the entry still names the item of step 1.
//!
//! The pin lasts from 1 to 4. So the item's space is not reused, and an equal position names the same item (no ABA). If
//! the key's queue is full, the pin is released and the item is read again.
//!
//! An expired key is absent to the decision, and the expired item is replaced. If an item expires between the decision
//! and 4, the key counts as present, as the decision saw, and the callback is not called. An item's checksum must
//! match, whatever checks reads make: a value derived from a damaged one would get a valid checksum.

use pmem::{Backoff, Dram, Medium};

use super::Writer;
use super::target::{Attempt, WriteTarget};
use crate::memory::Memory;
use crate::read::check_intact;
use engine::{Condition, CurrentItem, Decision, Error, Expiry, WriteResult, write_decided};
use items::NewItem;

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

    /// Changes the key as `decide` returns for its item; returns true if anything changed. Calls `decide` again if
    /// another thread wrote the key first.
    pub(crate) fn by<'v>(
        &self,
        mut decide: impl FnMut(Option<CurrentItem<'a>>) -> Decision<'v>,
    ) -> Result<bool, Error> {
        self.repeat(|| self.writer.with_space(|| self.try_by(&mut decide)))
    }

    /// Changes the key's expiry; returns false if the key is absent. An expiry that has passed deletes the key.
    pub(crate) fn expire(&self, expiry: Expiry) -> Result<bool, Error> {
        let mut was_there = false;
        self.by(|item| {
            was_there = item.is_some();
            match item {
                None => Decision::Keep,
                Some(item) if item.expiry == expiry => Decision::Keep,
                Some(_) if self.writer.reader.clock().is_past(expiry) => Decision::Delete,
                Some(item) => Decision::PutUntil(item.value.into(), expiry),
            }
        })?;
        Ok(was_there)
    }

    /// Deletes the key if all of these conditions, which concern the same key, hold.
    pub(crate) fn delete_if(&self, conditions: &[Condition<'_>]) -> Result<(), Error> {
        self.repeat(|| Ok(Some((true, self.try_delete_if(conditions)?)))).map(drop)
    }

    /// Repeats the attempt until the key did not change during it, and its queue had space. Then calls the callback for
    /// an item that had expired. An attempt returns true if it changes the key, and `None` if the key stays as it is.
    fn repeat(
        &self,
        mut attempt: impl FnMut() -> Result<Option<(bool, Attempt<'a, D>)>, Error>,
    ) -> Result<bool, Error> {
        let mut backoff = Backoff::long();
        loop {
            let Some((changed, outcome)) = attempt()? else { return Ok(false) };
            match self.writer.reaper.hook().report(outcome) {
                WriteResult::Done(_) => return Ok(changed),
                WriteResult::Unexpected => {}
                WriteResult::QueueFull(_) => {
                    let partition = self.writer.reader.index().partition(self.signature);
                    self.writer.order.make_space(self.writer.source(), partition, &mut backoff)?;
                }
            }
        }
    }

    /// Does steps 1 and 4; step 1 only compares versions.
    fn try_delete_if(&self, conditions: &[Condition<'_>]) -> Result<Attempt<'a, D>, Error> {
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

    /// Returns true if the decision changes the key, and the outcome; `None` if the key stays as it is.
    fn try_by<'v>(
        &self,
        decide: &mut impl FnMut(Option<CurrentItem<'a>>) -> Decision<'v>,
    ) -> Result<Option<(bool, Attempt<'a, D>)>, Error> {
        let _pin = epoch::pin();
        let found = self.writer.reader.find(self.signature, self.key)?;
        let target = WriteTarget::holding(self.signature, self.key, found.map(|(position, _)| position));
        let live = match found {
            Some((position, item)) => {
                check_intact(&item, position)?;
                self.writer.reader.unexpired(item, position)?
            }
            None => None,
        };
        let held = live.map(|item| CurrentItem { value: item.value, expiry: item.expiry });
        write_decided(held, decide, |new| {
            let prepare = |(value, expiry)| {
                self.writer.check_writable()?;
                self.writer.prepare(&NewItem { key: self.key, value, expiry })
            };
            Ok(self.writer.publish(target, new.map(prepare).transpose()?)?.shown(held.is_some()))
        })
    }
}
