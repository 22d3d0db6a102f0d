//! Steps 1 to 4 of a move (`engine::Compacts`): the entry of the item is found under a pin. The copy, which differs
//! only in its place, is published if the entry still names the same item.

use engine::{Compaction, Compacts, Error, Moved, Pass, WriteResult};
use heap::{Heap, PlaceKind, Reservation};
use index::Position;
use index::partitioned_hash::Cursor;
use pmem::{Backoff, Dram, Medium, MediumError};

use super::HiKv;
use crate::canary;
use crate::item;
use crate::memory::Memory;
use crate::write::{Expected, Prepared, Tried, WriteTarget, Writer};

impl<M: Medium, D: Memory> Compacts for HiKv<M, D> {
    type Medium = M;
    type Dram = D;
    type Cursor = Cursor;

    fn medium(&self) -> &M {
        HiKv::medium(self)
    }

    fn heap(&self) -> &Heap<D> {
        self.writer.space().heap()
    }

    fn compaction(&self) -> &Compaction<Cursor> {
        &self.compaction
    }

    /// A part is a segment.
    fn move_part(&self, pass: &mut Pass<Cursor>, cursor: Cursor) -> Result<Option<Cursor>, Error> {
        let mut found = Vec::new();
        let next = {
            let _pin = epoch::pin();
            self.writer.reader().index().visit(HiKv::medium(self), cursor, |signature, position| {
                if position.place().is_some_and(|place| self.writer.space().heap().table().is_evacuating(place)) {
                    found.push((signature, position.item()));
                }
                Ok::<_, Error>(())
            })?
        };
        let mut mover = Mover { store: self, writer: &self.writer, pass };
        found.into_iter().try_for_each(|(signature, item)| mover.move_away(signature, item))?;
        Ok((!next.is_done()).then_some(next))
    }

    /// Also applies queued changes, which keep the items that they replaced.
    fn settle(&self) -> Result<bool, Error> {
        let is_queued = self.writer.order().step(self.writer.source())? == engine::Progress::More;
        self.writer.space().collect(HiKv::medium(self));
        Ok(is_queued || self.writer.space().has_retired())
    }

    fn prepare_to_compact(&self) -> Result<(), Error> {
        let space = self.writer.space();
        self.writer.check_writable()?;
        space.finish_sweep(self.writer.reader())?;
        if !space.heap().is_swept() {
            let offset = space.misplaced().map_or(0, |entry| entry.0);
            return Err(Error::Corrupt { offset, what: "an entry names an invalid place, so free space is unknown" });
        }
        Ok(())
    }
}

/// Moves items during a pass.
struct Mover<'a, 'p, M, D: Dram> {
    store: &'a HiKv<M, D>,
    writer: &'a Writer<M, D>,
    pass: &'p mut Pass<Cursor>,
}

impl<'a, M: Medium, D: Memory> Mover<'a, '_, M, D> {
    fn move_away(&mut self, signature: u64, item: Position) -> Result<(), Error> {
        let mut backoff = Backoff::long();
        loop {
            match self.try_move(signature, item) {
                Ok(WriteResult::Done(moved)) => self.pass.note(self.store, moved),
                Ok(WriteResult::Unexpected) => self.pass.note(self.store, Moved::Unexpected),
                Err(Error::Corrupt { .. }) => self.pass.note(self.store, Moved::Damaged { offset: item.offset().0 }),
                Ok(WriteResult::QueueFull(_)) => {
                    self.writer.order().make_space(
                        self.writer.source(),
                        self.writer.reader().index().partition(signature),
                        &mut backoff,
                    )?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Does steps 1 to 4. By now `old` may name another item, if the slot was reused: then the chunk is no longer
    /// evacuated, or that item is the one to move.
    fn try_move(&mut self, signature: u64, old: Position) -> Result<Tried<'a, D, Moved>, Error> {
        let _pin = epoch::pin();
        let (writer, medium) = (self.writer, self.writer.reader().medium());
        let named = |position: Position| Ok::<_, MediumError>((position.item() == old).then_some(position));
        let Some(position) = writer.reader().index().find(medium, signature, named)? else {
            return Ok(WriteResult::Unexpected);
        };
        // SAFETY: pinned since before the position was found.
        let item = unsafe { item::read(medium, position) }?;
        if !item.is_intact() {
            return Ok(WriteResult::Done(Moved::Damaged { offset: old.offset().0 }));
        }
        let Some(new) = self.slot_to_move_to(position)? else { return Ok(WriteResult::Done(Moved::NoSpace)) };
        // SAFETY: the slot was just reserved, and the item, which is read under the pin, is elsewhere.
        unsafe { items::copy(medium, new.place().offset, position.offset(), &item) }?;
        if medium.breaks(canary::MOVE_FREES_EARLY) {
            position.place().into_iter().for_each(|place| writer.space().heap().free(medium, place));
        }
        let new = Prepared { reservation: new, expiry: item.expiry, stamp: item.header.epoch };
        let is_unchecked = medium.breaks(canary::MOVE_UNCHECKED);
        let expected = if is_unchecked { Expected::Anything } else { Expected::Original(position) };
        let target = WriteTarget { signature, key: item.key, expected };
        Ok(writer.publish(target, Some(new))?.answer.map(|_| Moved::Done { item_bytes: item.header.item_bytes() }))
    }

    /// Reserves a slot of the item's class.
    fn slot_to_move_to(&mut self, position: Position) -> Result<Option<Reservation<'a, D>>, Error> {
        match position.place().map(|place| place.kind) {
            Some(PlaceKind::Slot(class)) => self.pass.slot(self.store, class),
            _ => Ok(None),
        }
    }
}
