//! The move of an item by compaction: the copy is published by a write that checks again, under the locks, that the
//! slot is unchanged.

use engine::{Error, Moved, WriteResult, canary};
use heap::{Class, PlaceKind, Reservation};
use index::block_hash::Slot;
use pmem::{Dram, Medium};

use super::{Prepared, Writer};

/// Reserves a slot of a size class elsewhere; `None` if there is none.
pub(crate) type Reserve<'r, 'a, D> = dyn FnMut(Class) -> Result<Option<Reservation<'a, D>>, Error> + 'r;

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Moves the item of a slot. The caller is pinned.
    pub(crate) fn move_item<'a>(&'a self, slot: &Slot, reserve: &mut Reserve<'_, 'a, D>) -> Result<Moved, Error> {
        let offset = slot.position().map_or(0, |position| position.offset().0);
        match self.try_move(slot, reserve) {
            Err(Error::Corrupt { .. }) => Ok(Moved::Damaged { offset }),
            Err(error) if error.is_full() => Ok(Moved::NoSpace),
            moved => moved,
        }
    }

    fn try_move<'a>(&'a self, slot: &Slot, reserve: &mut Reserve<'_, 'a, D>) -> Result<Moved, Error> {
        let Some((position, item)) = self.keys().intact_contents(slot)?.item else { return Ok(Moved::Unexpected) };
        let Some(PlaceKind::Slot(class)) = position.place().map(|place| place.kind) else {
            return Ok(Moved::Unexpected);
        };
        let Some(reservation) = reserve(class)? else { return Ok(Moved::NoSpace) };
        // SAFETY: the slot was just reserved, and the item, which is read under the pin, is elsewhere.
        unsafe { items::copy(self.medium(), reservation.place().offset, position.offset(), &item) }?;
        let key = self.keys().key(item.key)?;
        let mut new = Some(Prepared::in_reserved(key, reservation, item.expiry));
        if self.medium().breaks(canary::MOVE_FREES_EARLY) {
            position.place().into_iter().for_each(|place| self.space.heap().free(self.medium(), place));
        }
        let is_same = &mut |found: Option<&Slot>| found == Some(slot) || self.medium().breaks(canary::MOVE_UNCHECKED);
        // An expired item stays expired: the reaper reports it, not its move.
        Ok(match self.write(key, &mut new, is_same)?.answer {
            WriteResult::Done(_) => Moved::Done { item_bytes: item.header.item_bytes() },
            _ => Moved::Unexpected,
        })
    }
}
