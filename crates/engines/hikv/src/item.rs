//! Items, by the position words that name them.

use heap::PlaceKind;
use index::Position;
use items::{Item, Plain};
use pmem::{Medium, Span};

use engine::{Error, Expiry, Witness};

/// Reads the item that `position` names.
///
/// # Errors
/// [`Error::Corrupt`] or [`Error::Medium`] if no item can lie there.
///
/// # Safety
/// `position` was found in the index while the caller was pinned, or under its bucket's lock, and the item is used no longer
/// than the pin or lock is held: so no thread stores to it.
#[inline(always)]
pub(super) unsafe fn read<M: Medium>(medium: &M, position: Position) -> Result<Item<'_>, Error> {
    // SAFETY: the caller's promise.
    Ok(unsafe { Item::read(medium, position.offset(), capacity_bytes(medium, position)) }?)
}

/// Reads the item that `position` names, if it lies in a slot and has no expiry. `None` says
/// nothing: [`read`] tells what is there.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
pub(super) unsafe fn read_plain<M: Medium>(medium: &M, position: Position) -> Option<Plain<'_>> {
    // SAFETY: the caller's promise; nobody stores to what a slot has behind its item.
    Plain::in_slot(unsafe { medium.bytes(slot(position)?) }.ok()?)
}

/// As [`read_plain`], of the item in `slot` if it is the key's.
///
/// # Safety
/// As for [`read`], of the position whose slot that is.
#[inline(always)]
pub(super) unsafe fn read_plain_of<'a, M: Medium>(medium: &'a M, slot: Span, key: &[u8]) -> Option<Plain<'a>> {
    // SAFETY: as for `read_plain`.
    Plain::of_key(unsafe { medium.bytes(slot) }.ok()?, key)
}

/// The slot that is named; `None` for an extent.
#[inline(always)]
pub(super) fn slot(position: Position) -> Option<Span> {
    Some(position.offset().span(position.slot_bytes()?))
}

/// The witness of an item.
#[inline(always)]
pub(super) fn witness(checksum: u32, position: Position, expiry: Expiry) -> Witness {
    Witness::of_item(position.item().word(), checksum, expiry)
}

/// The most an item at `position` can have.
#[inline(always)]
fn capacity_bytes<M: Medium>(medium: &M, position: Position) -> u64 {
    match position.place().map(|place| place.kind) {
        Some(PlaceKind::Slot(class)) => class.bytes(),
        Some(PlaceKind::Extent) => medium.len_bytes() - position.offset().0,
        _ => 0,
    }
}

/// Asks the cache for all lines of a small item: its length is known from the size class long before its header arrives.
#[inline(always)]
pub(super) fn prefetch<M: Medium>(medium: &M, position: Position) {
    items::prefetch(medium, position.offset(), position.slot_bytes());
}
