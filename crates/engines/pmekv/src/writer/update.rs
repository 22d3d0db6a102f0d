//! Puts, deletes, and conditional updates.

use std::io::Read;

use engine::{CurrentItem, Decide, Error, Expiry, Limits, Outcome, PriorState, Streamed, WriteResult, write_decided};
use index::Position;
use items::NewItem;
use pmem::{Dram, Medium};

use super::{Expected, Writer};
use crate::prepared::Prepared;
use crate::record::check_intact;

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Puts or replaces a key. Returns true if it was present.
    pub(crate) fn put_item(&self, item: &NewItem<'_>) -> Result<bool, Error> {
        self.write_to(item.key)?;
        Limits::check_value(item.value.len() as u64)?;
        let outcome = self.checkpointer.with_space(false, || self.try_put(item))?;
        Ok(self.reaper.hook().report(outcome) == WriteResult::Done(PriorState::Present))
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
        Limits::check_value(len_bytes)?;
        let item = Streamed::start(key, expiry, len_bytes, 0, source)?;
        let reservation = self.checkpointer.with_space(false, || self.reader().region().reserve(item.item_bytes()))?;
        // SAFETY: the slot was just reserved.
        unsafe { item.write(self.reader().region().medium(), reservation.place().offset) }?;
        let checksum = self.reader().records().read(Position::of(reservation.place()))?.header.checksum;
        let mut new = Some(Prepared::of_written(reservation, checksum, !expiry.is_never()));
        let outcome = self.checkpointer.with_space(false, || self.change(key, &mut new, Expected::Anything))?;
        self.reaper.hook().report(outcome);
        Ok(())
    }

    /// Deletes a key. Returns true if it was present.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        self.write_to(key)?;
        let outcome = self.checkpointer.with_space_to_delete(|| self.change(key, &mut None, Expected::Anything))?;
        Ok(self.reaper.hook().report(outcome) == WriteResult::Done(PriorState::Present))
    }

    /// Calls `decide` and applies its decision if the key still has the record that `decide` saw; otherwise repeats.
    /// The record's checksum is always verified, whatever reads verify: a value made from a damaged one would get a
    /// valid checksum.
    pub(crate) fn update_by<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        loop {
            self.write_to(key)?;
            let written = self.checkpointer.with_space(false, || self.try_update(key, decide))?;
            let Some((changed, outcome)) = written else { return Ok(false) };
            if self.reaper.hook().report(outcome) != WriteResult::Unexpected {
                return Ok(changed);
            }
        }
    }

    /// Returns true if the decision changes the key, and the outcome; `None` if the key stays as it is.
    fn try_update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<Option<(bool, Outcome)>, Error> {
        let _pin = epoch::pin();
        let found = self.reader().find(key)?;
        let live = found.filter(|(_, item)| !self.reader().contents().is_past(item.expiry));
        if let Some((position, item)) = &live {
            check_intact(*position, item)?;
        }
        let held = live.map(|(_, item)| CurrentItem { value: item.value, expiry: item.expiry });
        write_decided(held, decide, |new| {
            let prepare = |(value, expiry)| self.prepare(&NewItem { key, value, expiry });
            let expected = Expected::Record(found.map(|(position, _)| position));
            Ok(self.change(key, &mut new.map(prepare).transpose()?, expected)?.shown(held.is_some()))
        })
    }

    /// Runs the checks and waits that come before every write to a key.
    fn write_to(&self, key: &[u8]) -> Result<(), Error> {
        Limits::check_key(key)?;
        self.reader().region().may_write()?;
        self.bound()
    }
}
