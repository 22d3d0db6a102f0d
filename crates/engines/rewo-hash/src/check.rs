//! Checks of a store: the region's head, every slot and item against its checksum, every key by a lookup, and free
//! space against the named places. Stores nothing. The caller stops writers; the check stops the background.

use std::collections::HashSet;
use std::sync::Arc;

use engine::{Check, Damage, Depth, Error};
use heap::Heap;
use heap::salvage::Head;
use index::block_hash::Slot;
use index::segmented::Cursor;
use pmem::{Dram, Medium, MediumError, Offset};

use crate::keys::Keys;

/// The state of a running check.
pub(crate) struct CheckState {
    cursor: Cursor,
    /// Items that slots have named so far.
    named: HashSet<Offset>,
    /// Keeps compaction from moving items that were checked or are about to be.
    _rest: Arc<()>,
}

impl CheckState {
    /// Checks the region's head. The store was swept, and `rest` pauses compaction.
    pub(crate) fn begin<M: Medium>(
        medium: &M,
        rest: Arc<()>,
        damaged: &mut dyn FnMut(Damage),
    ) -> Result<CheckState, Error> {
        let mut on_damage = |at: Offset, what: &'static str| damaged(Damage { offset: at.0, what: what.into() });
        Head::read(medium, &mut on_damage)?.chunks(medium, &mut on_damage, &mut |_| {});
        Ok(CheckState { cursor: Cursor::default(), named: HashSet::new(), _rest: rest })
    }

    /// Checks one segment. Returns true if it was the last one. The caller keeps the background away.
    pub(crate) fn step<M: Medium, D: Dram>(
        &mut self,
        keys: &Keys<M>,
        heap: &Heap<D>,
        check: &mut Check,
        damaged: &mut dyn FnMut(Damage),
    ) -> bool {
        let _pin = epoch::pin();
        let (mut slots, mut wrong) = (Vec::new(), |found: index::block_hash::Damage| {
            damaged(Damage { offset: found.at.0, what: found.what.into() });
        });
        let note = &mut |at, slot: &Slot| slots.push((at, *slot));
        self.cursor = keys.table().check_segment(keys.medium(), self.cursor, &mut wrong, note);
        let mut met = HashSet::new();
        // In a read-only store, a crash during a move may have left two equal slots.
        for (at, slot) in slots.into_iter().filter(|(_, slot)| met.insert(*slot)) {
            check.count_item();
            let checked = self.check_place(heap, at, &slot);
            checked.and_then(|()| check_item(keys, at, &slot, check.depth())).unwrap_or_else(&mut *damaged);
        }
        if !self.cursor.is_done() {
            return false;
        }
        if let Err(MediumError::Unreadable { offset, .. }) = keys.medium().check_lost_ranges() {
            damaged(Damage { offset, what: "a part of the region could not be read".into() });
        }
        true
    }

    /// Checks that the item's place is valid, named only once, and not free.
    fn check_place<D: Dram>(&mut self, heap: &Heap<D>, at: Offset, slot: &Slot) -> Result<(), Damage> {
        let damage = |what: String| Damage { offset: at.0, what };
        let Some(position) = slot.position() else { return Ok(()) };
        let place = position.place().ok_or_else(|| damage("a slot names an item of no size class".into()))?;
        heap.table().check_place(place).map_err(|wrong| damage(format!("a slot names an invalid place: {wrong}")))?;
        if !self.named.insert(place.offset) {
            return Err(damage(format!("two slots name the item at {:#x}", place.offset.0)));
        }
        if heap.table().is_free(place) {
            return Err(damage(format!("a slot names the item at {:#x}, whose place is free", place.offset.0)));
        }
        Ok(())
    }
}

fn check_item<M: Medium>(keys: &Keys<M>, at: Offset, slot: &Slot, depth: Depth) -> Result<(), Damage> {
    let damage = |what: &str| Damage { offset: at.0, what: what.into() };
    let from_error = |error: Error| Damage { offset: at.0, what: error.to_string() };
    if depth == Depth::Quick {
        return keys.contents(slot).map(drop).map_err(from_error);
    }
    let seen = keys.intact_contents(slot).map_err(from_error)?;
    match keys.key(seen.key).and_then(|key| keys.find(key)).map_err(from_error)? {
        Some(found) if found == *slot => Ok(()),
        Some(_) => Err(damage("a key is in two different slots")),
        None => Err(damage("a lookup of the slot's key does not find it")),
    }
}
