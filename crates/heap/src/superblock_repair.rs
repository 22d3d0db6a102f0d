//! A superblock of which both copies are damaged: what they still say together.
//!
//! Whatever is made of them must fit the checksum, so that nothing is made up.

use pmem::{Medium, Offset};

use crate::HeapError;
use crate::layout::SUPERBLOCK_COPIES;
use crate::salvage::OnDamage;
use crate::superblock::{Bytes, CHECKED_BYTES, Superblock, Unusable, choose, decode, read};

/// Differences between two copies that are tried one by one and together.
const DIFFERENCE_COUNT_MAX: usize = 12;

/// The better copy, or what both of them, damaged, agree to; `None` where nothing can be made of them. Errors are those
/// of an intact copy that is not for this program.
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

/// A copy that is whole but for one bit, or made of bytes of both, by its checksum.
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

/// Every mixture of two copies that differ in few bytes.
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
