//! Items, by the position words that name them.

use heap::PlaceKind;
use index::Position;
use items::Item;
use pmem::Medium;

use engine::{Error, Version};

/// Lines of an item that are asked for before its header has told how long it is.
const PREFETCHED_LINE_COUNT_MAX: u64 = 16;

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
    Ok(unsafe { Item::read(medium, position.offset(), room_bytes(medium, position)) }?)
}

/// Which item it is, and of what checksum.
pub(super) fn version(item: &Item<'_>, position: Position) -> Version {
    Version::new([position.item().word(), item.header.checksum.into()])
}

/// The most an item at `position` can have.
#[inline(always)]
fn room_bytes<M: Medium>(medium: &M, position: Position) -> u64 {
    match position.place().map(|place| place.kind) {
        Some(PlaceKind::Slot(class)) => class.bytes(),
        Some(PlaceKind::Extent) => medium.len_bytes() - position.offset().0,
        _ => 0,
    }
}

/// Asks the cache for all lines of a small item: its length is known from the size class long before its header arrives.
#[inline(always)]
pub(super) fn prefetch<M: Medium>(medium: &M, position: Position) {
    let Some(place) = position.place() else { return };
    let PlaceKind::Slot(class) = place.kind else {
        medium.prefetch(place.offset);
        return;
    };
    for line in pmem::lines(place.offset.span(class.bytes())).take(PREFETCHED_LINE_COUNT_MAX as usize) {
        medium.prefetch(line);
    }
}
