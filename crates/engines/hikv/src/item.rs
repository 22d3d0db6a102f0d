//! Items, by the position words that name them.

use heap::PlaceKind;
use index::Position;
use items::{Item, Plain};
use pmem::{LINE_BYTES, Medium, Offset};

use engine::{Error, Version};

/// So much of an item is asked for before its header has told how long it is.
const PREFETCHED_BYTES_MAX: u64 = 1024;

/// Lines behind an item's first that are asked for one by one: those of the usual item, whose key and value have 304 bytes at the most.
const STEP_LINE_COUNT: u64 = 4;

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

/// Reads the item that `position` names, if it lies in a slot and has no expiry. `None` says
/// nothing: [`read`] tells what is there.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
pub(super) unsafe fn read_plain<M: Medium>(medium: &M, position: Position) -> Option<Plain<'_>> {
    let room = position.offset().span(position.slot_bytes()?);
    // SAFETY: the caller's promise; nobody stores to what a slot has behind its item.
    Plain::in_room(unsafe { medium.bytes(room) }.ok()?)
}

/// Which item it is, and of what checksum.
#[inline(always)]
pub(super) fn version(checksum: u32, position: Position) -> Version {
    Version::new([position.item().word(), checksum.into()])
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
    let at = position.offset();
    medium.prefetch_line(at);
    let Some(len_bytes) = position.slot_bytes() else { return };
    // Its last line may be one more than its length has lines. Each step is three instructions: a loop takes more.
    medium.prefetch_line(Offset(at.0.wrapping_add(len_bytes).wrapping_sub(1)));
    for line in 1..=STEP_LINE_COUNT {
        if len_bytes <= line * LINE_BYTES {
            return;
        }
        medium.prefetch_line(at.plus(line * LINE_BYTES));
    }
    if len_bytes > (STEP_LINE_COUNT + 1) * LINE_BYTES {
        prefetch_further(medium, at, len_bytes.min(PREFETCHED_BYTES_MAX));
    }
}

#[inline(never)]
fn prefetch_further<M: Medium>(medium: &M, at: Offset, len_bytes: u64) {
    for line in STEP_LINE_COUNT + 1..len_bytes.div_ceil(LINE_BYTES) {
        medium.prefetch_line(at.plus(line * LINE_BYTES));
    }
}
