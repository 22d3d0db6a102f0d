//! Slots for a batch's items, reserved in groups, and the items in them.

use std::mem;

use heap::{Class, HeapError, Place, PlaceKind};
use index::Position;
use pmem::{Dram, Medium, Offset};

use super::plan::Plan;
use crate::item;
use crate::space::Space;
use engine::{BatchOp, Error, Expiry};
use items::NewItem;

/// The most slots that are reserved under one lock: a lane has this many available.
const TOGETHER_COUNT: usize = 64;

/// The prefetched bytes of the next item's slot while one item is written.
const PREFETCHED_BYTES_MAX: u64 = 1024;

/// The places of a batch's items, which no reader sees yet. Dropping it frees them.
pub(super) struct Reservations<'a, M: Medium, D: Dram> {
    medium: &'a M,
    space: &'a Space<D>,
    /// By operation; empty for a delete.
    positions: Vec<Position>,
    /// The snapshot epoch of all items.
    stamp: u32,
    /// Signatures and expiries of the items that expire.
    due: Vec<(u64, Expiry)>,
}

impl<M: Medium, D: Dram> Drop for Reservations<'_, M, D> {
    fn drop(&mut self) {
        let reserved = self.positions.iter().filter(|position| !position.is_empty());
        reserved.filter_map(|position| position.place()).for_each(|place| self.space.heap().cancel(place));
    }
}

impl<'a, M: Medium, D: Dram> Reservations<'a, M, D> {
    /// Does step 1: reserves space for all items, and writes and flushes them.
    pub(super) fn write_items(
        medium: &'a M,
        space: &'a Space<D>,
        stamp: u32,
        plan: &Plan<'_>,
    ) -> Result<Reservations<'a, M, D>, Error> {
        let positions = Vec::with_capacity(plan.ops.len());
        let mut reservations = Reservations { medium, space, positions, stamp, due: Vec::new() };
        while let Some((signature, first)) = plan.ops.get(reservations.positions.len()) {
            let start = reservations.positions.len();
            match new_item(first) {
                None => reservations.positions.push(Position::EMPTY),
                Some(item) => match Class::for_bytes(item.item_bytes()) {
                    Some(class) => reservations.write_alike(class, &plan.ops[start..])?,
                    None => reservations.write_long(*signature, &item)?,
                },
            }
        }
        Ok(reservations)
    }

    /// Returns the position of the operation's item; empty for a delete.
    #[inline(always)]
    pub(super) fn position(&self, number: usize) -> Position {
        self.positions[number]
    }

    /// Returns the snapshot epoch of the items.
    pub(super) fn stamp(&self) -> u32 {
        self.stamp
    }

    /// Stamps all items again.
    #[cold]
    pub(super) fn stamp_as(&mut self, stamp: u32) -> Result<(), Error> {
        self.stamp = stamp;
        let mut written = self.positions.iter().filter(|position| !position.is_empty());
        // SAFETY: the items were completely written to reserved slots, and no reader sees them yet.
        written.try_for_each(|position| unsafe { item::restamp(self.medium, *position, stamp) })
    }

    /// Ends the reservation of all places, because entries will name them. Returns signatures and expiries of the items
    /// that expire.
    pub(super) fn publish(mut self) -> Vec<(u64, Expiry)> {
        self.positions.clear();
        mem::take(&mut self.due)
    }

    /// Writes an item to its place.
    ///
    /// # Safety
    /// `at` was just reserved for it.
    #[inline(always)]
    unsafe fn write(&mut self, at: Offset, signature: u64, item: &NewItem<'_>) {
        if !item.expiry.is_never() {
            self.space.announce(self.medium);
            self.due.push((signature, item.expiry));
        }
        // SAFETY: the caller's promise.
        unsafe { item.write(self.medium, at, self.stamp) };
    }

    /// Writes the next items of this size class, as many as get slots.
    fn write_alike(&mut self, class: Class, ops: &[(u64, &BatchOp<'_>)]) -> Result<(), Error> {
        let Some((first_signature, first)) = ops.first().and_then(|(signature, op)| Some((*signature, new_item(op)?)))
        else {
            return Ok(());
        };
        let first_bytes = first.item_bytes();
        let is_of_class = |(_, op): &&(u64, &BatchOp<'_>)| {
            new_item(op).is_some_and(|item| {
                item.item_bytes() == first_bytes || Class::for_bytes(item.item_bytes()) == Some(class)
            })
        };
        let count = ops.iter().take(TOGETHER_COUNT).take_while(is_of_class).count();
        let mut offsets = [Offset::NULL; TOGETHER_COUNT];
        let reserved =
            self.space.heap().reserve_slots(self.medium, class, epoch::thread_index(), &mut offsets[..count]);
        if reserved.as_ref().is_err_and(HeapError::is_full) {
            // The class has no slot left: the first item gets the space that a single put would get.
            return self.write_long(first_signature, &first);
        }
        let count = reserved?;
        let items = ops[..count].iter().filter_map(|(signature, op)| Some((*signature, new_item(op)?)));
        let position = |&offset: &Offset| Position::of(Place { offset, kind: PlaceKind::Slot(class) });
        self.positions.extend(offsets[..count].iter().map(position));
        let prefetched_bytes = class.bytes().min(PREFETCHED_BYTES_MAX);
        for (number, (signature, item)) in items.enumerate() {
            if let Some(next) = offsets[..count].get(number + 1) {
                self.medium.prefetch_for_stream(next.span(prefetched_bytes));
            }
            // SAFETY: the space was just reserved.
            unsafe { self.write(offsets[number], signature, &item) };
        }
        Ok(())
    }

    fn write_long(&mut self, signature: u64, item: &NewItem<'_>) -> Result<(), Error> {
        let place = self.space.reserve(self.medium, item.item_bytes())?.publish();
        self.positions.push(Position::of(place));
        // SAFETY: as above.
        unsafe { self.write(place.offset, signature, item) };
        Ok(())
    }
}

/// Returns the item that the operation puts; `None` for a delete.
#[inline(always)]
fn new_item<'a>(op: &BatchOp<'a>) -> Option<NewItem<'a>> {
    Some(NewItem { key: op.key(), value: op.value()?, expiry: op.expiry() })
}
