//! The array, and the undo log of one slot: steps 1 to 4.

use std::sync::atomic::Ordering;

use heap::layout::ENGINE_AREA;
use heap::{HeapError, Place, PlaceKind};
use items::{Item, ItemError, NewItem};
use pmem::{LINE_BYTES, Level, Medium, MediumError, Offset, Ticket, seal, unseal};

use crate::{SLOT_BYTES, SLOT_COUNT, canary};

const PLACE: Offset = ENGINE_AREA;
const UNDO_WORD: Offset = ENGINE_AREA.plus(LINE_BYTES);
const UNDO_IMAGE: Offset = ENGINE_AREA.plus(2 * LINE_BYTES);

/// An item, if there is one.
type Found<'a> = Result<Option<Item<'a>>, ItemError>;

/// The offset of the array.
pub(crate) struct Slots(Offset);

impl Slots {
    /// Creates an empty array. The caller makes it durable.
    pub(crate) fn make<M: Medium>(medium: &M, place: Place) -> Slots {
        let slots = Slots(place.offset);
        (0..SLOT_COUNT).for_each(|slot| slots.write_header(medium, slot));
        store(medium, PLACE, seal(place.offset.0));
        store(medium, UNDO_WORD, seal(0));
        slots
    }

    pub(crate) fn find<M: Medium>(medium: &M) -> Result<Slots, HeapError> {
        let place = load(medium, PLACE, "the place of the array is damaged")?;
        Ok(Slots(Offset(place)))
    }

    pub(crate) fn place(&self) -> Place {
        Place { offset: self.0, kind: PlaceKind::Extent }
    }

    fn at(&self, slot: u64) -> Offset {
        self.0.plus(slot * SLOT_BYTES)
    }

    /// Reads the item in a slot; `None` if there is none with this stamp.
    pub(crate) fn item<'a, M: Medium>(&self, medium: &'a M, slot: u64, stamp: u32) -> Found<'a> {
        // SAFETY: slots change only under the writers' lock, which the caller holds while it uses the item.
        let item = unsafe { Item::read(medium, self.at(slot), SLOT_BYTES) }?;
        match item.header.epoch == stamp {
            true if !item.is_intact() => {
                Err(ItemError::Damaged { offset: self.at(slot).0, what: "an item's checksum does not fit" })
            }
            is_there => Ok(is_there.then_some(item)),
        }
    }

    /// Takes steps 1 to 4 and returns the ticket to wait for: the slot then holds `new` with this stamp, or nothing.
    /// The caller holds the writers' lock.
    pub(crate) fn change<M: Medium>(
        &self,
        medium: &M,
        slot: u64,
        new: Option<(NewItem<'_>, u32)>,
    ) -> Result<Ticket, MediumError> {
        copy(medium, UNDO_IMAGE, self.at(slot))?;
        medium.order_unless(canary::IMAGE_NOT_ORDERED);
        store(medium, UNDO_WORD, seal(slot + 1));
        medium.order_unless(canary::LOG_NOT_ORDERED);
        match new {
            // SAFETY: the item fits the slot (the caller has checked), and no reader reads the slot.
            Some((item, stamp)) => _ = unsafe { item.write(medium, self.at(slot), stamp) },
            None => self.write_header(medium, slot),
        }
        medium.order();
        store(medium, UNDO_WORD, seal(0));
        Ok(medium.commit(Level::default()))
    }

    /// Empties a slot.
    fn write_header<M: Medium>(&self, medium: &M, slot: u64) {
        // SAFETY: as in `change`, or no other thread uses the slot yet.
        unsafe { medium.stream(self.at(slot), &[&[0; items::layout::HEADER_BYTES]]) };
    }

    /// Undoes a write in progress. For a read-only store this happens in a private overlay. Repeating it changes
    /// nothing.
    pub(crate) fn undo<M: Medium>(&self, medium: &M) -> Result<(), HeapError> {
        let number = load(medium, UNDO_WORD, "the undo word is damaged")?;
        let Some(slot) = number.checked_sub(1) else { return Ok(()) };
        if slot >= SLOT_COUNT {
            return Err(HeapError::Damaged { offset: UNDO_WORD.0, what: "the undo word holds no slot's number" });
        }
        if !medium.is_writable() {
            // SAFETY: no thread stores to a read-only region, and only its opener uses it yet.
            return Ok(unsafe { medium.overlay(self.at(slot), medium.bytes(UNDO_IMAGE.span(SLOT_BYTES))?) }?);
        }
        copy(medium, self.at(slot), UNDO_IMAGE)?;
        medium.order();
        store(medium, UNDO_WORD, seal(0));
        Ok(medium.wait(medium.commit(Level::default()))?)
    }
}

/// Copies a slot's bytes and flushes them.
fn copy<M: Medium>(medium: &M, to: Offset, from: Offset) -> Result<(), MediumError> {
    // SAFETY: both change only under the writers' lock, or while the store is opened.
    let bytes = unsafe { medium.bytes(from.span(SLOT_BYTES)) }?;
    // SAFETY: as above, and they do not overlap.
    unsafe { medium.stream(to, &[bytes]) };
    Ok(())
}

fn store<M: Medium>(medium: &M, at: Offset, word: u64) {
    medium.store(at, word, Ordering::Release);
    medium.flush(at.span(8));
}

fn load<M: Medium>(medium: &M, at: Offset, what: &'static str) -> Result<u64, HeapError> {
    unseal(medium.load(at, Ordering::Acquire)).ok_or(HeapError::Damaged { offset: at.0, what })
}
