//! Items, by the position words that name them.

use heap::PlaceKind;
use index::Position;
use items::{Item, Plain};
use pmem::{Medium, Span};

use engine::{Error, Expiry, Witness};

/// Reads the item that `position` names.
///
/// # Errors
/// [`Error::Corrupt`] or [`Error::Medium`] if there can be no item at this position.
///
/// # Safety
/// `position` was found in the index while the caller was pinned, or under its bucket's lock. The caller uses the item
/// only while it holds the pin or lock. So no thread stores to the item.
#[inline(always)]
pub(super) unsafe fn read<M: Medium>(medium: &M, position: Position) -> Result<Item<'_>, Error> {
    // SAFETY: the caller's promise.
    Ok(unsafe { Item::read(medium, position.offset(), capacity_bytes(medium, position)) }?)
}

/// Reads the item that `position` names, if it is in a slot and has no expiry. After `None` the caller uses [`read`].
///
/// # Safety
/// As for [`read`].
#[inline(always)]
pub(super) unsafe fn read_plain<M: Medium>(medium: &M, position: Position) -> Option<Plain<'_>> {
    // SAFETY: the caller's promise; no thread stores to the bytes of the slot behind the item.
    Plain::in_slot(unsafe { medium.bytes(slot(position)?) }.ok()?)
}

/// As [`read_plain`], for the item in `slot` if it belongs to the key.
///
/// # Safety
/// As for [`read`], for the position of this slot.
#[inline(always)]
pub(super) unsafe fn read_plain_of<'a, M: Medium>(medium: &'a M, slot: Span, key: &[u8]) -> Option<Plain<'a>> {
    // SAFETY: as for `read_plain`.
    Plain::of_key(unsafe { medium.bytes(slot) }.ok()?, key)
}

/// Returns the slot of the position; `None` for an extent.
#[inline(always)]
pub(super) fn slot(position: Position) -> Option<Span> {
    Some(position.offset().span(position.slot_bytes()?))
}

/// Returns the witness of an item.
#[inline(always)]
pub(super) fn witness(checksum: u32, position: Position, expiry: Expiry) -> Witness {
    Witness::of_item(position.item().word(), checksum, expiry)
}

/// Returns the largest size of an item at `position`.
#[inline(always)]
fn capacity_bytes<M: Medium>(medium: &M, position: Position) -> u64 {
    match position.place().map(|place| place.kind) {
        Some(PlaceKind::Slot(class)) => class.bytes(),
        Some(PlaceKind::Extent) => medium.len_bytes() - position.offset().0,
        _ => 0,
    }
}

/// Prefetches all lines of a small item: the size class gives its length long before its header arrives.
#[inline(always)]
pub(super) fn prefetch<M: Medium>(medium: &M, position: Position) {
    items::prefetch(medium, position.offset(), position.slot_bytes());
}

/// As [`prefetch`], for one of several items that are read after each other.
#[inline(always)]
pub(super) fn request<M: Medium>(medium: &M, position: Position) {
    items::request(medium, position.offset(), position.slot_bytes());
}

/// Stamps an item again that was written before a snapshot was taken. Reads the whole item for that. The item is then
/// flushed, and ordered before later stores.
///
/// # Errors
/// As for [`read`].
///
/// # Safety
/// The item was completely written to space that belongs to the caller, and no other thread has its position.
#[cold]
pub(super) unsafe fn restamp<M: Medium>(medium: &M, position: Position, stamp: u32) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let written = unsafe { read(medium, position) }?;
    // SAFETY: the caller's promise.
    unsafe { items::restamp(medium, position.offset(), &written, stamp) };
    medium.order();
    Ok(())
}
