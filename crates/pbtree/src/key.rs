//! Key chunks. They are written completely into space that no other thread sees, and never changed.

use heap::{Heap, Reservation};
use pmem::{Checksum, Dram, Medium, Offset};

use crate::Error;
use crate::layout::{KEY_BYTES_MAX, KEY_HEADER_BYTES};
use crate::word;

/// Computes the checksum of a key's chunk.
#[inline(always)]
pub(crate) fn checksum(key: &[u8]) -> u32 {
    Checksum::of([&(key.len() as u32).to_le_bytes()[..], key]).value()
}

/// Reads and checks the key that the word at `at` refers to.
///
/// # Safety
/// Its chunk is not freed while the slice lives: the caller holds the lock of the node that contains the word.
#[inline(always)]
pub(crate) unsafe fn read<M: Medium>(medium: &M, at: Offset, word: u64) -> Result<&[u8], Error> {
    // SAFETY: the caller's promise.
    match unsafe { in_slot(medium, word) } {
        Some((key, _)) => Ok(key),
        // SAFETY: as above.
        None => unsafe { read_any(medium, at, word) },
    }
}

/// Reads an intact key in a slot, the usual case, and returns it with its checksum. `None` means that [`read`] must
/// decide.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
pub(crate) unsafe fn in_slot<M: Medium>(medium: &M, word: u64) -> Option<(&[u8], u32)> {
    // SAFETY: the caller's promise; chunks of keys are never changed.
    let (_, slot) = unsafe { word::slot(medium, word) }?;
    let (head, rest) = slot.split_first_chunk()?;
    let head = u64::from_le_bytes(*head);
    let key = rest.get(..head as u32 as usize)?;
    let found = checksum(key);
    (found == (head >> 32) as u32 && found as u8 == word::check_of(word)).then_some((key, found))
}

#[cold]
#[inline(never)]
unsafe fn read_any<M: Medium>(medium: &M, at: Offset, word: u64) -> Result<&[u8], Error> {
    let place = word::key_place(at, word)?;
    // SAFETY: the caller's promise; chunks of keys are never changed.
    let head = unsafe { medium.bytes(place.offset.span(KEY_HEADER_BYTES)) }?;
    let head = u64::from_le_bytes(*head.first_chunk().expect("the span has that length"));
    let len_bytes = head & u64::from(u32::MAX);
    if KEY_HEADER_BYTES + len_bytes > word::capacity_bytes(medium, place) {
        return Err(Error::damaged(place.offset, "a key is longer than its chunk"));
    }
    // SAFETY: as above.
    let key = unsafe { medium.bytes(place.offset.plus(KEY_HEADER_BYTES).span(len_bytes)) }?;
    let found = checksum(key);
    if u64::from(found) != head >> 32 || found as u8 != word::check_of(word) {
        return Err(Error::damaged(place.offset, "a key's checksum does not fit"));
    }
    Ok(key)
}

/// Writes a key and flushes it.
pub(crate) fn write<'a, M: Medium, D: Dram>(
    medium: &M,
    heap: &'a Heap<D>,
    agent: usize,
    key: &[u8],
) -> Result<Reservation<'a, D>, Error> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { len_bytes: key.len() });
    }
    let chunk = heap.reserve(medium, KEY_HEADER_BYTES + key.len() as u64, agent)?;
    let head = (key.len() as u64 | u64::from(checksum(key)) << 32).to_le_bytes();
    // SAFETY: the chunk was just reserved; chunks are of multiples of 16 bytes, and so reach as far as the padding.
    unsafe { medium.stream(chunk.place().offset, &[&head, key]) };
    Ok(chunk)
}

/// Returns a separator between `left` and `right`, which is greater: the shortest prefix of `right` greater than
/// `left`.
pub(crate) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    &right[..(common + 1).min(right.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_separate_and_are_short() {
        for (left, right, expected) in
            [("", "abc", "a"), ("abc", "abd", "abd"), ("ab", "abcd", "abc"), ("a", "b", "b"), ("azz", "bzz", "b")]
        {
            let found = separator(left.as_bytes(), right.as_bytes());
            assert_eq!(found, expected.as_bytes());
            assert!(left.as_bytes() < found && found <= right.as_bytes());
        }
    }
}
