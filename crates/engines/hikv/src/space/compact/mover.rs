//! Moving one item: steps 1 to 4.

use heap::{PlaceKind, Reservation};
use index::Position;
use index::partitioned_hash::Cursor;
use pmem::{Backoff, Medium, MediumError};

use super::Pass;
use crate::canary;
use crate::item;
use crate::order::Ordered;
use crate::write::publish::{Expected, Prepared, Target, Tried};
use crate::{HiKv, Memory};
use engine::{Answer, Error};

/// What came of a move that no other thread's write came before.
enum Moved {
    /// The entry names the copy.
    Done { item_bytes: u64 },
    /// Its checksum does not fit: it stays.
    Damaged,
    /// There is no slot to copy it to.
    NoRoom,
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Moves what the segment at `cursor` has in chunks that are evacuated; where to go on.
    pub(super) fn move_segment(&self, pass: &mut Pass, cursor: Cursor) -> Result<Cursor, Error> {
        let mut found = Vec::new();
        let next = {
            let _pin = epoch::pin();
            self.index.visit(&self.medium, cursor, |signature, position| {
                if position.place().is_some_and(|place| self.heap.is_evacuating(place)) {
                    found.push((signature, position.item()));
                }
                Ok::<_, Error>(())
            })?
        };
        found.into_iter().try_for_each(|(signature, item)| self.move_away(pass, signature, item))?;
        Ok(next)
    }

    fn move_away(&self, pass: &mut Pass, signature: u64, item: Position) -> Result<(), Error> {
        let mut backoff = Backoff::long();
        loop {
            match self.try_move(pass, signature, item) {
                Ok(Answer::Done(Moved::Done { item_bytes })) => {
                    pass.report.moved_items += 1;
                    pass.report.moved_bytes += item_bytes;
                    self.compaction.note_moved(item_bytes);
                }
                Ok(Answer::Unexpected) => {}
                Ok(Answer::Done(Moved::Damaged)) | Err(Error::Corrupt { .. }) => {
                    pass.report.damaged.push(item.offset().0)
                }
                Ok(Answer::Done(Moved::NoRoom)) => pass.report.left_items += 1,
                Ok(Answer::QueueFull(_)) => {
                    Ordered::make_room(self, self.index.partition(signature), &mut backoff)?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Steps 1 to 4. `old` may name another item by now, if the room was reused: then the chunk is evacuated no more, or
    /// that item is the one to move.
    fn try_move(&self, pass: &mut Pass, signature: u64, old: Position) -> Result<Tried<'_, D, Moved>, Error> {
        let _pin = epoch::pin();
        let named = |position: Position| Ok::<_, MediumError>((position.item() == old).then_some(position));
        let Some(position) = self.index.find(&self.medium, signature, named)? else { return Ok(Answer::Unexpected) };
        // SAFETY: pinned since before the position was found.
        let item = unsafe { item::read(&self.medium, position) }?;
        if !item.is_whole() {
            return Ok(Answer::Done(Moved::Damaged));
        }
        let Some(new) = self.room_to_move(pass, position)? else { return Ok(Answer::Done(Moved::NoRoom)) };
        // SAFETY: the room was just reserved, and the item, which is read under the pin, lies elsewhere.
        unsafe { items::copy(&self.medium, new.place().offset, position.offset(), &item) }?;
        if self.medium.breaks(canary::MOVE_FREES_EARLY) {
            position.place().into_iter().for_each(|place| self.heap.free(&self.medium, place));
        }
        let new = Prepared { room: new, expiry: item.expiry, stamp: item.header.epoch };
        let target = match self.medium.breaks(canary::MOVE_UNCHECKED) {
            false => Target { expected: Expected::Original(position), ..Target::any(signature, item.key) },
            true => Target::any(signature, item.key),
        };
        Ok(self.publish(target, Some(new))?.map(|_| Moved::Done { item_bytes: item.header.item_bytes() }))
    }

    /// A slot of the item's class: in the gaps of fuller chunks, or, where others have filled them meanwhile, any.
    fn room_to_move(&self, pass: &mut Pass, position: Position) -> Result<Option<Reservation<'_, D>>, Error> {
        let Some(PlaceKind::Slot(class)) = position.place().map(|place| place.kind) else { return Ok(None) };
        loop {
            if let Some(room) = self.heap.reserve_to_move(class) {
                return Ok(Some(room));
            }
            let Some(chunk) = pass.plan.next_to_fill(class) else { break };
            // If somebody else has taken it meanwhile, the next one is as good.
            let _ = self.heap.fill(&self.medium, chunk);
        }
        match self.heap.reserve(&self.medium, class.bytes(), epoch::thread_index()) {
            Err(error) if error.is_full() => Ok(None),
            reserved => Ok(Some(reserved?)),
        }
    }
}
