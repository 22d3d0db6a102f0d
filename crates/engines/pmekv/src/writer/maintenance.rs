//! Writes of the background: deletes of expired keys (`engine::Reaper`), and moves of records (`engine::Compacts`).
//!
//! A step of the reaper visits one leaf of the tree, and deletes an expired key if it still has the record that was
//! seen.

use engine::{Error, Moved, Outcome, Progress, WriteResult};
use heap::{Class, PlaceKind, Reservation};
use index::Position;
use pmem::{Dram, Medium};

use super::{Expected, Writer};
use crate::prepared::Prepared;
use crate::record::check_intact;

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Reaps one leaf.
    pub(crate) fn reap(&self) -> Result<Progress, Error> {
        self.reaper.reap(
            &|expiry| self.reader().contents().is_past(expiry),
            &mut |cursor, each| Ok(self.reader().contents().walk_readable(cursor, each)),
            &mut |key| self.reap_key(key),
        )
    }

    fn reap_key(&self, key: &[u8]) -> Result<bool, Error> {
        self.checkpointer.bound_log()?;
        let Some(removal) = self.key_changes.removal(key) else { return Ok(false) };
        let outcome = self.checkpointer.with_space_to_delete(|| self.reap_due(key))?;
        // The callback may count keys.
        drop(removal);
        Ok(self.reaper.hook().report(outcome) != WriteResult::Unexpected)
    }

    fn reap_due(&self, key: &[u8]) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let due = self.reader().find(key)?.filter(|(_, item)| self.reader().contents().is_past(item.expiry));
        let Some((position, item)) = due else { return Ok(Outcome::UNEXPECTED) };
        // A damaged expiry must not delete a key.
        check_intact(position, &item)?;
        self.change(key, &mut None, Expected::Record(Some(position)))
    }

    /// Moves the key's record `old`, if the key still has it, to the slot that `reserve` returns for its class.
    pub(crate) fn move_record<'a>(
        &'a self,
        key: &[u8],
        old: Position,
        reserve: impl FnOnce(Class) -> Result<Option<Reservation<'a, D>>, Error>,
    ) -> Result<Moved, Error> {
        let medium = self.reader().region().medium();
        self.checkpointer.bound_log()?;
        let _pin = epoch::pin();
        let Some((position, item)) = self.reader().find(key)?.filter(|(position, _)| *position == old) else {
            return Ok(Moved::Unexpected);
        };
        check_intact(position, &item)?;
        let Some(PlaceKind::Slot(class)) = position.place().map(|place| place.kind) else {
            return Ok(Moved::Unexpected);
        };
        let Some(reservation) = reserve(class)? else { return Ok(Moved::NoSpace) };
        // SAFETY: the slot was just reserved, and the record, which is read under the pin, is elsewhere.
        unsafe { items::copy(medium, reservation.place().offset, position.offset(), &item) }?;
        let mut new = Some(Prepared::of_written(reservation, item.header.checksum, !item.expiry.is_never()));
        if medium.breaks(engine::canary::MOVE_FREES_EARLY) {
            self.reader().region().free(position);
        }
        let is_unchecked = medium.breaks(engine::canary::MOVE_UNCHECKED);
        let expected = if is_unchecked { Expected::Anything } else { Expected::Record(Some(position)) };
        // An expired item stays expired: the reaper reports it, not its move.
        Ok(match self.change(key, &mut new, expected)?.answer {
            WriteResult::Done(_) => Moved::Done { item_bytes: item.header.item_bytes() },
            _ => Moved::Unexpected,
        })
    }
}
