//! Words that refer to places.

use heap::{Class, Place, PlaceKind};
use pmem::{LINE_BYTES, Medium, Offset, crc32c};

use crate::Error;

const OFFSET_BITS: u32 = 48;
const CHECK_BITS: u32 = 56;
const EXTENT: u8 = 255;
/// Any value for which the check of a word of zeros is not 0.
const CHECK_SEED: u32 = 0x1A4;

/// The word of a node or a value.
pub(crate) fn pointer(place: Place) -> u64 {
    let word = unchecked(place);
    word | u64::from(check(word)) << CHECK_BITS
}

/// The word of a key with this checksum.
pub(crate) fn key_word(place: Place, checksum: u32) -> u64 {
    unchecked(place) | u64::from(checksum as u8) << CHECK_BITS
}

/// What a key word knows of its key's checksum.
#[inline(always)]
pub(crate) const fn check_of(word: u64) -> u8 {
    (word >> CHECK_BITS) as u8
}

/// The place that a pointer word in the word at `at` names.
pub(crate) fn place(at: Offset, word: u64) -> Result<Place, Error> {
    if check(word) != check_of(word) {
        return Err(Error::damaged(at, "a pointer's check does not fit"));
    }
    key_place(at, word)
}

/// The place that a key word at `at` names.
#[inline]
pub(crate) fn key_place(at: Offset, word: u64) -> Result<Place, Error> {
    let offset = Offset(word & ((1 << OFFSET_BITS) - 1));
    let kind = match (word >> OFFSET_BITS) as u8 {
        EXTENT => Some(PlaceKind::Extent),
        class => Class::from_index(class).map(PlaceKind::Slot),
    };
    kind.map(|kind| Place { offset, kind }).ok_or_else(|| Error::damaged(at, "a word names no size class"))
}

/// Asks the cache for the lines of what a word names, so many at most. Any word will do.
#[inline]
pub(crate) fn prefetch<M: Medium>(medium: &M, word: u64, lines_max: u64) {
    let at = word & ((1 << OFFSET_BITS) - 1);
    let bytes = Class::from_index((word >> OFFSET_BITS) as u8).map_or(u64::MAX, Class::bytes);
    let line_count = (at % LINE_BYTES).saturating_add(bytes).div_ceil(LINE_BYTES).min(lines_max);
    (0..line_count).for_each(|line| medium.prefetch_line(Offset(at + line * LINE_BYTES)));
}

/// The most that what lies at a place can have.
#[inline]
pub(crate) fn room_bytes<M: Medium>(medium: &M, place: Place) -> u64 {
    match place.kind {
        PlaceKind::Slot(class) => class.bytes(),
        _ => medium.len_bytes().saturating_sub(place.offset.0),
    }
}

fn unchecked(place: Place) -> u64 {
    let class = match place.kind {
        PlaceKind::Slot(class) => class.index(),
        _ => EXTENT,
    };
    place.offset.0 | u64::from(class) << OFFSET_BITS
}

fn check(word: u64) -> u8 {
    crc32c(CHECK_SEED, &word.to_le_bytes()[..7]) as u8
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
