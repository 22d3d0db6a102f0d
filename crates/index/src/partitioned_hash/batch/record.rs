//! The bytes of a batch's record.
//!
//! ```text
//! +0  number of operations, u32
//! +4  checksum, u32            CRC-32C of bytes 0..4 and of all operations
//! +8  operations, 24 bytes each:
//!     +0  offset of the entry's position word
//!     +8  the item's position before, 0 if the entry was free
//!     +16 the item's position after, 0 if the key is deleted
//! ```
//!
//! A record occupies a place like that of an item of its length. The positions have no marks. The overflow bit
//! belongs to the line and stays.

use pmem::{Checksum, Medium, Offset};
use smallvec::SmallVec;

use super::Change;
use crate::Position;
use crate::partitioned_hash::Slot;
use crate::partitioned_hash::layout::slot_of;
use heap::HeapError;

/// The number of bytes before the operations.
pub const HEADER_BYTES: u64 = 8;
/// The number of bytes of an operation.
pub const OPERATION_BYTES: u64 = 24;

/// Operations that are written without an allocation.
const FEW_COUNT: usize = 8;

/// Returns the length of a record of so many operations.
#[must_use]
pub const fn record_bytes(operation_count: usize) -> u64 {
    HEADER_BYTES + operation_count as u64 * OPERATION_BYTES
}

/// Writes a record of `changes` and flushes it.
///
/// # Safety
/// The caller has reserved space for it at `at`.
pub(super) unsafe fn write<M: Medium>(medium: &M, at: Offset, changes: &[Change]) {
    let count = (changes.len() as u32).to_le_bytes();
    let words = |change: &Change| [change.at.0, change.old.word(), change.new.word()];
    let operations: SmallVec<[[[u8; 8]; 3]; FEW_COUNT]> =
        changes.iter().map(|change| words(change).map(u64::to_le_bytes)).collect();
    let body = operations.as_flattened().as_flattened();
    let checksum = Checksum::default().update(&count).update(body).value();
    // SAFETY: the caller's promise; places are multiples of 16 bytes, so their space includes the padding.
    unsafe { medium.stream(at, &[&count, &checksum.to_le_bytes(), body]) }
}

/// Returns the changes in the record at `at`.
///
/// # Errors
/// [`HeapError::Damaged`] if there is no record, or if it names something that cannot be an entry.
pub(in crate::partitioned_hash) fn read<M: Medium>(medium: &M, at: Offset) -> Result<Vec<Change>, HeapError> {
    let damaged = |what| HeapError::Damaged { offset: at.0, what };
    // SAFETY: the store is being opened, so no thread stores to it.
    let header = unsafe { medium.bytes(at.span(HEADER_BYTES)) }
        .map_err(|_| damaged("a batch's record is outside the region"))?;
    let word = u64::from_le_bytes(*header.first_chunk().expect("a header is a word"));
    let (count, checksum) = (word as u32, (word >> 32) as u32);
    let body_bytes = record_bytes(count as usize) - HEADER_BYTES;
    // SAFETY: as above.
    let body = unsafe { medium.bytes(at.plus(HEADER_BYTES).span(body_bytes)) }
        .map_err(|_| damaged("a batch's record extends beyond the region"))?;
    if Checksum::default().update(&count.to_le_bytes()).update(body).value() != checksum {
        return Err(damaged("a batch's record does not match its checksum"));
    }
    let words: Vec<u64> = body.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    words
        .as_chunks::<3>()
        .0
        .iter()
        .map(|words| change(medium, *words))
        .collect::<Option<_>>()
        .ok_or_else(|| damaged("a batch's record names a place that is not an entry"))
}

fn change<M: Medium>(medium: &M, [entry, old, new]: [u64; 3]) -> Option<Change> {
    let Slot { position: at, .. } = slot_of(Offset(entry)).filter(|_| entry < medium.len_bytes())?;
    Some(Change { at, number: 0, by: 0, old: Position::from_word(old), new: Position::from_word(new) })
}

const _: () = assert!(HEADER_BYTES == 8 && OPERATION_BYTES == 3 * 8);
