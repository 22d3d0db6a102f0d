//! Reconstructs a superblock of which both copies are damaged.
//!
//! The result must fit the checksum, so that nothing is invented.

use pmem::{Medium, Offset};

use crate::HeapError;
use crate::layout::SUPERBLOCK_COPIES;
use crate::superblock::{Bytes, CHECKED_BYTES, Superblock, Unusable, choose, decode, read};

/// A callback that receives the offset and the description of each damage.
pub type OnDamage<'a> = dyn FnMut(Offset, &'static str) + 'a;

/// The most differences between two copies for which all combinations are tried.
const DIFFERENCE_COUNT_MAX: usize = 12;

/// Returns the better copy, or a reconstruction from two damaged copies; `None` if there is neither. An intact copy
/// that this program does not support is an error.
pub(crate) fn salvage<M: Medium>(medium: &M, on_damage: &mut OnDamage<'_>) -> Result<Option<Superblock>, HeapError> {
    let copies = SUPERBLOCK_COPIES.map(|at| read(medium, at));
    let decoded = [0, 1].map(|i| decode(&copies[i], SUPERBLOCK_COPIES[i]));
    for (copy, at) in decoded.iter().zip(SUPERBLOCK_COPIES) {
        match copy {
            Ok(_) => {}
            Err(Unusable::Refused(HeapError::Damaged { offset, what })) => on_damage(Offset(*offset), what),
            Err(Unusable::Refused(error)) => return Err(*error),
            Err(_) => on_damage(at, "this copy of the superblock is damaged"),
        }
    }
    match choose(decoded) {
        Ok(chosen) => Ok(Some(chosen.superblock)),
        Err(error) => match (mended(&copies), error) {
            (None, HeapError::Newer { .. }) => Err(error),
            (mended, _) => Ok(mended),
        },
    }
}

/// Finds a copy that fits its checksum after flipping one bit, or after mixing the bytes of both copies.
fn mended(copies: &[Bytes; 2]) -> Option<Superblock> {
    let flipped = copies.iter().flat_map(|copy| {
        (0..(CHECKED_BYTES + 4) * 8).map(move |bit| {
            let mut bytes = *copy;
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        })
    });
    flipped.chain(mixed(copies)).find_map(|bytes| decode(&bytes, SUPERBLOCK_COPIES[0]).ok())
}

/// Iterates over all mixtures of two copies that differ in few bytes.
fn mixed([a, b]: &[Bytes; 2]) -> impl Iterator<Item = Bytes> {
    let mut differences = [0; DIFFERENCE_COUNT_MAX];
    let mut count = 0;
    for at in (0..CHECKED_BYTES + 4).filter(|&at| a[at] != b[at]) {
        if let Some(difference) = differences.get_mut(count) {
            *difference = at;
        }
        count += 1;
    }
    let mixture_count = if count <= DIFFERENCE_COUNT_MAX { 1u32 << count } else { 0 };
    (0..mixture_count).map(move |mixture| {
        let mut bytes = *a;
        let chosen = differences.iter().enumerate().take(count).filter(|(i, _)| mixture >> i & 1 == 1);
        chosen.for_each(|(_, &at)| bytes[at] = b[at]);
        bytes
    })
}
