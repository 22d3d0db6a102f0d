//! Steps 1 to 4 of a move (`engine::Compacts`): the entry of the item is found under a pin. The copy, which differs
//! only in its place, is published if the entry still names the same item.

use engine::{Compaction, Compacts, Error, Moved, Pass, WriteResult};
use heap::{Heap, PlaceKind, Reservation};
use index::Position;
use index::partitioned_hash::Cursor;
use pmem::{Backoff, Medium, MediumError};

use crate::canary;
use crate::item;
use crate::order::Ordered;
use crate::write::publish::{Expected, Prepared, Tried, WriteTarget};
use crate::{HiKv, Memory};

impl<M: Medium, D: Memory> Compacts for HiKv<M, D> {
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

    /// A part is a segment.
    fn move_part(&self, pass: &mut Pass<Cursor>, cursor: Cursor) -> Result<Option<Cursor>, Error> {
        let mut found = Vec::new();
        let next = {
            let _pin = epoch::pin();
            self.index.visit(&self.medium, cursor, |signature, position| {
                if position.place().is_some_and(|place| self.heap.table().is_evacuating(place)) {
                    found.push((signature, position.item()));
                }
                Ok::<_, Error>(())
            })?
        };
        found.into_iter().try_for_each(|(signature, item)| self.move_away(pass, signature, item))?;
        Ok((!next.is_done()).then_some(next))
    }

    /// Also applies queued changes, which keep the items that they replaced.
    fn settle(&self) -> Result<bool, Error> {
        let is_queued = Ordered::step(self)? == engine::Progress::More;
        self.collect();
        Ok(is_queued || !self.limbo.is_empty())
    }

    fn prepare_to_compact(&self) -> Result<(), Error> {
        self.check_writable()?;
        self.finish_sweep()?;
        if !self.heap.is_swept() {
            let offset = self.misplaced().map_or(0, |entry| entry.0);
            return Err(Error::Corrupt { offset, what: "an entry names an invalid place, so free space is unknown" });
        }
        Ok(())
    }
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    fn move_away(&self, pass: &mut Pass<Cursor>, signature: u64, item: Position) -> Result<(), Error> {
        let mut backoff = Backoff::long();
        loop {
            match self.try_move(pass, signature, item) {
                Ok(WriteResult::Done(moved)) => pass.note(self, moved),
                Ok(WriteResult::Unexpected) => pass.note(self, Moved::Unexpected),
                Err(Error::Corrupt { .. }) => pass.note(self, Moved::Damaged { offset: item.offset().0 }),
                Ok(WriteResult::QueueFull(_)) => {
                    Ordered::make_space(self, self.index.partition(signature), &mut backoff)?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Does steps 1 to 4. By now `old` may name another item, if the slot was reused: then the chunk is no longer
    /// evacuated, or that item is the one to move.
    fn try_move(&self, pass: &mut Pass<Cursor>, signature: u64, old: Position) -> Result<Tried<'_, D, Moved>, Error> {
        let _pin = epoch::pin();
        let named = |position: Position| Ok::<_, MediumError>((position.item() == old).then_some(position));
        let Some(position) = self.index.find(&self.medium, signature, named)? else {
            return Ok(WriteResult::Unexpected);
        };
        // SAFETY: pinned since before the position was found.
        let item = unsafe { item::read(&self.medium, position) }?;
        if !item.is_intact() {
            return Ok(WriteResult::Done(Moved::Damaged { offset: old.offset().0 }));
        }
        let Some(new) = self.slot_to_move_to(pass, position)? else { return Ok(WriteResult::Done(Moved::NoSpace)) };
        // SAFETY: the slot was just reserved, and the item, which is read under the pin, is elsewhere.
        unsafe { items::copy(&self.medium, new.place().offset, position.offset(), &item) }?;
        if self.medium.breaks(canary::MOVE_FREES_EARLY) {
            position.place().into_iter().for_each(|place| self.heap.free(&self.medium, place));
        }
        let new = Prepared { reservation: new, expiry: item.expiry, stamp: item.header.epoch };
        let target = match self.medium.breaks(canary::MOVE_UNCHECKED) {
            false => WriteTarget { expected: Expected::Original(position), ..WriteTarget::any(signature, item.key) },
            true => WriteTarget::any(signature, item.key),
        };
        Ok(self.publish(target, Some(new))?.map(|_| Moved::Done { item_bytes: item.header.item_bytes() }))
    }

    /// Reserves a slot of the item's class.
    fn slot_to_move_to(
        &self,
        pass: &mut Pass<Cursor>,
        position: Position,
    ) -> Result<Option<Reservation<'_, D>>, Error> {
        match position.place().map(|place| place.kind) {
            Some(PlaceKind::Slot(class)) => pass.slot(self, class),
            _ => Ok(None),
        }
    }
}
