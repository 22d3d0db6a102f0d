//! Moving items (`engine::Compacts`): a part is a segment of the table. The copy is published by a write that checks
//! again, under the locks, that the slot is unchanged. Items in slots of the table are not moved.

use engine::canary;
use engine::{Compaction, Compacts, Error, Moved, Pass, WriteResult};
use heap::{Heap, PlaceKind};
use index::Position;
use index::block_hash::Slot;
use index::segmented::Cursor;
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::write::Prepared;

impl<M: Medium, D: Dram> Compacts for RewoHash<M, D> {
    type Medium = M;
    type Dram = D;
    type Cursor = Cursor;

    fn medium(&self) -> &M {
        &self.medium
    }

    fn heap(&self) -> &Heap<D> {
        &self.heap
    }

    fn compaction(&self) -> &Compaction<Cursor> {
        &self.compaction
    }

    fn move_part(&self, pass: &mut Pass<Cursor>, cursor: Cursor) -> Result<Option<Cursor>, Error> {
        let _pin = epoch::pin();
        let (shown, next) = self.table.visit(&self.medium, cursor)?;
        for (_, slot) in &shown.slots {
            let place = slot.position().and_then(Position::place);
            if place.is_some_and(|place| self.heap.table().is_evacuating(place)) {
                let moved = self.move_item(pass, slot)?;
                pass.note(self, moved);
            }
        }
        Ok((!next.is_done()).then_some(next))
    }

    fn settle(&self) -> Result<bool, Error> {
        self.collect();
        Ok(self.has_garbage())
    }

    fn prepare_to_compact(&self) -> Result<(), Error> {
        self.may_write()?;
        self.finish_sweep()?;
        match self.heap.is_swept() {
            true => Ok(()),
            false => {
                Err(Error::Corrupt { offset: 0, what: "the table names an invalid place: free space is not known" })
            }
        }
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Moves the item of a slot. The caller is pinned.
    fn move_item(&self, pass: &mut Pass<Cursor>, slot: &Slot) -> Result<Moved, Error> {
        let offset = slot.position().map_or(0, |position| position.offset().0);
        match self.try_move(pass, slot) {
            Err(Error::Corrupt { .. }) => Ok(Moved::Damaged { offset }),
            Err(error) if error.is_full() => Ok(Moved::NoSpace),
            moved => moved,
        }
    }

    fn try_move(&self, pass: &mut Pass<Cursor>, slot: &Slot) -> Result<Moved, Error> {
        let Some((position, item)) = self.intact_contents(slot)?.item() else { return Ok(Moved::Unexpected) };
        let Some(PlaceKind::Slot(class)) = position.place().map(|place| place.kind) else {
            return Ok(Moved::Unexpected);
        };
        let Some(reservation) = pass.slot(self, class)? else { return Ok(Moved::NoSpace) };
        // SAFETY: the slot was just reserved, and the item, which is read under the pin, is elsewhere.
        unsafe { items::copy(&self.medium, reservation.place().offset, position.offset(), &item) }?;
        let key = self.key(item.key)?;
        let mut new = Some(Prepared::in_reserved(key, reservation, item.expiry));
        if self.medium.breaks(canary::MOVE_FREES_EARLY) {
            position.place().into_iter().for_each(|place| self.heap.free(&self.medium, place));
        }
        let is_same = &mut |found: Option<&Slot>| found == Some(slot) || self.medium.breaks(canary::MOVE_UNCHECKED);
        // An expired item stays expired: the reaper reports it, not its move.
        Ok(match self.write_pinned(key, &mut new, is_same)?.answer {
            WriteResult::Done(_) => Moved::Done { item_bytes: item.header.item_bytes() },
            _ => Moved::Unexpected,
        })
    }
}
