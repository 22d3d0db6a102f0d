//! Words that refer to places.

use heap::{Class, Place, PlaceKind};
use pmem::{Checksum, LINE_BYTES, Medium, Offset};

use crate::Error;

const OFFSET_BITS: u32 = 48;
const CHECK_BITS: u32 = 56;
const EXTENT: u8 = 255;
/// An arbitrary value for which the check of a word of zeros is not 0.
const CHECK_SEED: u32 = 0x1A4;

/// Returns the word of a node or a value.
pub(crate) fn pointer(place: Place) -> u64 {
    let word = unchecked(place);
    word | u64::from(check(word)) << CHECK_BITS
}

/// Returns the word of a key with this checksum.
pub(crate) fn key_word(place: Place, checksum: u32) -> u64 {
    unchecked(place) | u64::from(checksum as u8) << CHECK_BITS
}

/// Returns the part of its key's checksum that a key word holds.
#[inline(always)]
pub(crate) const fn check_of(word: u64) -> u8 {
    (word >> CHECK_BITS) as u8
}

/// Returns true if a pointer word's check fits.
#[inline(always)]
pub(crate) fn is_pointer(word: u64) -> bool {
    check(word) == check_of(word)
}

/// Returns the place in a pointer word; the word is at `at`.
pub(crate) fn place(at: Offset, word: u64) -> Result<Place, Error> {
    if !is_pointer(word) {
        return Err(Error::damaged(at, "a pointer's check does not fit"));
    }
    key_place(at, word)
}

/// Returns the place in a key word; the word is at `at`.
#[inline]
pub(crate) fn key_place(at: Offset, word: u64) -> Result<Place, Error> {
    let offset = offset_of(word);
    let kind = match (word >> OFFSET_BITS) as u8 {
        EXTENT => Some(PlaceKind::Extent),
        class => Class::from_index(class).map(PlaceKind::Slot),
    };
    kind.map(|kind| Place { offset, kind }).ok_or_else(|| Error::damaged(at, "a word's size class is unknown"))
}

/// Returns the place in a word and the slot there, if the word refers to a slot within this region.
///
/// # Safety
/// No thread changes the used part of the slot, or frees it, while the slice lives.
#[inline(always)]
pub(crate) unsafe fn slot<M: Medium>(medium: &M, word: u64) -> Option<(Place, &[u8])> {
    let offset = offset_of(word);
    let class = Class::from_index((word >> OFFSET_BITS) as u8)?;
    // SAFETY: the caller's promise; no thread stores behind the used part of a slot.
    let slot = unsafe { medium.bytes(offset.span(class.bytes())) }.ok()?;
    Some((Place { offset, kind: PlaceKind::Slot(class) }, slot))
}

/// Prefetches the first lines of a word's chunk, possibly more than it has. Any word is allowed.
#[inline(always)]
pub(crate) fn prefetch_start<M: Medium>(medium: &M, word: u64, line_count: u64) {
    let at = offset_of(word);
    (0..line_count).for_each(|line| medium.prefetch_line(at.plus(line * LINE_BYTES)));
}

/// Prefetches the lines of a word's chunk, up to `lines_max`. Any word is allowed.
#[inline]
pub(crate) fn prefetch<M: Medium>(medium: &M, word: u64, lines_max: u64) {
    let at = offset_of(word).0;
    let bytes = Class::from_index((word >> OFFSET_BITS) as u8).map_or(u64::MAX, Class::bytes);
    let line_count = (at % LINE_BYTES).saturating_add(bytes).div_ceil(LINE_BYTES).min(lines_max);
    (0..line_count).for_each(|line| medium.prefetch_line(Offset(at + line * LINE_BYTES)));
}

/// Returns the capacity of a place.
#[inline]
pub(crate) fn capacity_bytes<M: Medium>(medium: &M, place: Place) -> u64 {
    match place.kind {
        PlaceKind::Slot(class) => class.bytes(),
        _ => medium.len_bytes().saturating_sub(place.offset.0),
    }
}

#[inline(always)]
const fn offset_of(word: u64) -> Offset {
    Offset(word & ((1 << OFFSET_BITS) - 1))
}

fn unchecked(place: Place) -> u64 {
    let class = match place.kind {
        PlaceKind::Slot(class) => class.index(),
        _ => EXTENT,
    };
    place.offset.0 | u64::from(class) << OFFSET_BITS
}

#[inline(always)]
fn check(word: u64) -> u8 {
    let bytes = word.to_le_bytes();
    let covered = bytes.first_chunk::<7>().expect("a word has eight bytes");
    Checksum::from_value(CHECK_SEED).update_with(covered).value() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_and_flips_are_noticed() {
        let slot = PlaceKind::Slot(Class::for_bytes(1024).unwrap());
        for kind in [slot, PlaceKind::Extent] {
            let wanted = Place { offset: Offset(0x7654_3210), kind };
            let word = pointer(wanted);
            assert_eq!(place(Offset(0), word), Ok(wanted));
            assert!((0..64).all(|bit| place(Offset(0), word ^ 1 << bit).is_err()));
            assert_eq!(key_place(Offset(0), key_word(wanted, 0x1234)), Ok(wanted));
            assert_eq!(check_of(key_word(wanted, 0x1234)), 0x34);
        }
        assert!(place(Offset(0), 0).is_err());
    }
}
