//! Puts, deletes, and conditional updates.

use std::io::Read;

use engine::{CurrentItem, Decide, Decision, Error, Expiry, PriorState, Streamed, WriteResult};
use index::Position;
use items::NewItem;
use pmem::{Dram, Medium};

use super::{Expected, Outcome, Writer, check_key, check_value};
use crate::prepared::Prepared;
use crate::record::check_intact;

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Puts or replaces a key. Returns true if it was present.
    pub(crate) fn put_item(&self, item: &NewItem<'_>) -> Result<bool, Error> {
        self.write_to(item.key)?;
        check_value(item.value.len() as u64)?;
        let outcome = self.checkpointer.with_space(false, || self.try_put(item))?;
        Ok(self.report_expired(outcome).was_there())
    }

    #[inline(always)]
    fn try_put(&self, item: &NewItem<'_>) -> Result<Outcome, Error> {
        let pin = epoch::pin();
        let prefetched = self.reader().tree().prefetch(pin.pinned(), &self.reader().records(), item.key);
        let mut new = Some(self.prepare(item)?);
        let changed = self.change_at(pin.pinned(), &prefetched, &mut new, Expected::Anything)?;
        drop(pin);
        self.conclude(changed)
    }

    /// Puts a value from a source, which may be slow: the thread is not pinned while it reads, so others can free
    /// memory.
    pub(crate) fn put_streamed(
        &self,
        key: &[u8],
        len_bytes: u64,
        source: &mut dyn Read,
        expiry: Expiry,
    ) -> Result<(), Error> {
        self.write_to(key)?;
        let item = Streamed::start(key, expiry, len_bytes, 0, source)?;
        let reservation = self.checkpointer.with_space(false, || self.reader().region().reserve(item.item_bytes()))?;
        // SAFETY: the slot was just reserved.
        unsafe { item.write(self.reader().region().medium(), reservation.place().offset) }?;
        let checksum = self.reader().records().read(Position::of(reservation.place()))?.header.checksum;
        let mut new = Some(Prepared::of_written(reservation, checksum, !expiry.is_never()));
        let outcome = self.checkpointer.with_space(false, || self.change(key, &mut new, Expected::Anything))?;
        self.report_expired(outcome);
        Ok(())
    }

    /// Deletes a key. Returns true if it was present.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        self.write_to(key)?;
        let outcome = self.checkpointer.with_space_to_delete(|| self.change(key, &mut None, Expected::Anything))?;
        Ok(self.report_expired(outcome).was_there())
    }

    /// Calls `decide` and applies its decision if the key still has the record that `decide` saw; otherwise repeats.
    /// The record's checksum is always verified, whatever reads verify: a value made from a damaged one would get a
    /// valid checksum.
    pub(crate) fn update_by<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        loop {
            self.write_to(key)?;
            let (changed, outcome) = self.checkpointer.with_space(false, || self.try_update(key, decide))?;
            if outcome.answer != WriteResult::Unexpected {
                self.report_expired(outcome);
                return Ok(changed);
            }
        }
    }

    /// Returns true if the decision changes the key, and the outcome.
    fn try_update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<(bool, Outcome), Error> {
        let _pin = epoch::pin();
        let found = self.reader().find(key)?;
        let live = found.filter(|(_, item)| !self.reader().contents().is_past(item.expiry));
        if let Some((position, item)) = &live {
            check_intact(*position, item)?;
        }
        let expiry = live.map_or(Expiry::NEVER, |(_, item)| item.expiry);
        let held = live.map(|(_, item)| CurrentItem { value: item.value, expiry });
        let new = match decide(held) {
            Decision::Keep => return Ok((false, Outcome::found(PriorState::Present))),
            Decision::Put(value) => Some((value, expiry)),
            Decision::PutUntil(value, expiry) => Some((value, expiry)),
            Decision::Delete => None,
        };
        let expected = Expected::Record(found.map(|(position, _)| position));
        let changes = new.is_some() || live.is_some();
        let mut prepared = match &new {
            Some((value, expiry)) => {
                check_value(value.len() as u64)?;
                Some(self.prepare(&NewItem { key, value, expiry: *expiry })?)
            }
            None => None,
        };
        let outcome = self.change(key, &mut prepared, expected)?;
        Ok((changes, outcome.shown(live.is_some())))
    }

    /// Reports an item that had expired before a write; returns the outcome without it. The caller is not pinned.
    pub(super) fn report_expired(&self, mut outcome: Outcome) -> Outcome {
        outcome.expired.take().into_iter().for_each(|item| self.reaper.hook().notify(item));
        outcome
    }

    /// Changes the key's expiry; false if the key is absent.
    pub(crate) fn expire_at(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        self.update_by(key, &mut |held| match held {
            Some(held) => Decision::PutUntil(held.value.to_vec().into(), expiry),
            None => Decision::Keep,
        })
    }

    /// Runs the checks and waits that come before every write to a key.
    fn write_to(&self, key: &[u8]) -> Result<(), Error> {
        check_key(key)?;
        self.reader().region().may_write()?;
        self.bound()
    }
}
