//! Checks of a store: the region's head, every slot and item against its checksum, every key by a lookup, and free
//! space against the named places. Stores nothing. The caller stops writers; the check stops the background.

use std::collections::HashSet;
use std::sync::Arc;

use engine::{Check, Damage, Depth, Error};
use heap::salvage::Head;
use index::block_hash::Slot;
use index::segmented::Cursor;
use pmem::{Dram, Medium, MediumError, Offset};

use crate::RewoHash;

/// The state of a running check.
struct CheckState {
    cursor: Cursor,
    /// Items that slots have named so far.
    named: HashSet<Offset>,
    /// Keeps compaction from moving items that were checked or are about to be.
    _rest: Arc<()>,
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Checks one segment; before the first one, also the region's head.
    pub(crate) fn check_step(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let mut state = match check.take_state::<CheckState>() {
            Some(state) => state,
            None => self.begin_check(damaged)?,
        };
        let _background = self.keep_background_away();
        let _pin = epoch::pin();
        let (mut slots, mut wrong) = (Vec::new(), |found: index::block_hash::Damage| {
            damaged(Damage { offset: found.at.0, what: found.what.into() });
        });
        state.cursor =
            self.table.check_segment(&self.medium, state.cursor, &mut wrong, &mut |at, slot| slots.push((at, *slot)));
        let mut met = HashSet::new();
        // In a read-only store, a crash during a move may have left two equal slots.
        for (at, slot) in slots.into_iter().filter(|(_, slot)| met.insert(*slot)) {
            check.count_item();
            let checked = self.check_place(at, &slot, &mut state.named);
            checked.and_then(|()| self.check_item(at, &slot, check.depth())).unwrap_or_else(&mut *damaged);
        }
        if !state.cursor.is_done() {
            check.set_state(Some(state));
            return Ok(());
        }
        if let Err(MediumError::Unreadable { offset, .. }) = self.medium.check_lost_ranges() {
            damaged(Damage { offset, what: "a part of the region could not be read".into() });
        }
        check.set_state::<CheckState>(None);
        Ok(())
    }

    fn begin_check(&self, damaged: &mut dyn FnMut(Damage)) -> Result<Box<CheckState>, Error> {
        self.finish_sweep()?;
        let rest = self.compaction.pause();
        let mut on_damage = |at: Offset, what: &'static str| damaged(Damage { offset: at.0, what: what.into() });
        Head::read(&self.medium, &mut on_damage)?.chunks(&self.medium, &mut on_damage, &mut |_| {});
        Ok(Box::new(CheckState { cursor: Cursor::default(), named: HashSet::new(), _rest: rest }))
    }

    /// Checks that the item's place is valid, named only once, and not free.
    fn check_place(&self, at: Offset, slot: &Slot, named: &mut HashSet<Offset>) -> Result<(), Damage> {
        let damage = |what: String| Damage { offset: at.0, what };
        let Some(position) = slot.position() else { return Ok(()) };
        let place = position.place().ok_or_else(|| damage("a slot names an item of no size class".into()))?;
        self.heap
            .table()
            .check_place(place)
            .map_err(|wrong| damage(format!("a slot names an invalid place: {wrong}")))?;
        if !named.insert(place.offset) {
            return Err(damage(format!("two slots name the item at {:#x}", place.offset.0)));
        }
        if self.heap.table().is_free(place) {
            return Err(damage(format!("a slot names the item at {:#x}, whose place is free", place.offset.0)));
        }
        Ok(())
    }

    fn check_item(&self, at: Offset, slot: &Slot, depth: Depth) -> Result<(), Damage> {
        let damage = |what: &str| Damage { offset: at.0, what: what.into() };
        let from_error = |error: Error| Damage { offset: at.0, what: error.to_string() };
        if depth == Depth::Quick {
            return self.contents(slot).map(drop).map_err(from_error);
        }
        let seen = self.intact_contents(slot).map_err(from_error)?;
        match self.key(seen.key).and_then(|key| self.find(key)).map_err(from_error)? {
            Some(found) if found == *slot => Ok(()),
            Some(_) => Err(damage("a key is in two different slots")),
            None => Err(damage("a lookup of the slot's key does not find it")),
        }
    }
}
