//! A batch's record, which holds the new contents of its buckets, and the word that names the record.

use std::collections::BTreeMap;

use heap::layout::batch_word;
use heap::{BatchState, BatchWord, HeapError};
use pmem::{Level, Medium, Offset, Taken, Ticket, crc32c};

use super::super::canary;
use super::super::image::Image;
use super::super::layout::BUCKET_BYTES;

/// The number of the batch word that names the record, among those of the region.
pub(super) const WORD: usize = 0;
/// The place of that word.
pub(super) const WORD_AT: Offset = batch_word(WORD);
/// The bytes of a record before its first bucket: number of buckets, 4; CRC-32C of the number and the buckets, 4;
/// zero.
const HEADER_BYTES: usize = 16;
/// The bytes of one bucket in the record: its place, 8; zero; its contents.
const ENTRY_BYTES: usize = 16 + BUCKET_BYTES as usize;

/// Returns the length of the record of so many buckets.
pub(super) fn bytes(bucket_count: usize) -> u64 {
    (HEADER_BYTES + bucket_count * ENTRY_BYTES) as u64
}

/// Clears the word, so that it names no record. Not ordered.
pub(super) fn clear<M: Medium>(medium: &M) {
    BatchWord::clear(medium, WORD);
}

/// Carries out step 5. Returns `None` if the medium has failed, so that the word names no record.
pub(super) fn publish<M: Medium>(medium: &M, record: Offset) -> Option<Ticket> {
    let (at, word) = (WORD_AT, BatchWord { record, state: BatchState::Committed });
    match medium.publish(&[(at, word.word())], at.0) {
        Taken::No if !medium.breaks(canary::REFUSED_BATCH_CARRIED_OUT) => None,
        _ => Some(medium.commit(Level::Strongest)),
    }
}

pub(super) fn write<M: Medium>(medium: &M, at: Offset, images: &BTreeMap<u64, Image>) {
    let mut bytes = vec![0; HEADER_BYTES + images.len() * ENTRY_BYTES];
    let (header, entries) = bytes.split_at_mut(HEADER_BYTES);
    for (entry, (at, image)) in entries.chunks_exact_mut(ENTRY_BYTES).zip(images) {
        entry[..8].copy_from_slice(&at.to_le_bytes());
        entry[16..].copy_from_slice(&image.unlocked().to_bytes());
    }
    header[..4].copy_from_slice(&(images.len() as u32).to_le_bytes());
    let checksum = crc32c(crc32c(0, &header[..4]), entries);
    header[4..8].copy_from_slice(&checksum.to_le_bytes());
    // SAFETY: the place was reserved for it, and nothing names it yet.
    unsafe { medium.stream(at, &[&bytes]) };
}

/// Returns the new contents of the buckets of a record.
pub(super) fn read<M: Medium>(medium: &M, at: Offset) -> Result<BTreeMap<u64, Image>, HeapError> {
    let damaged = HeapError::Damaged { offset: at.0, what: "a batch's record is damaged" };
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    // SAFETY: no thread stores to a record that a batch word names.
    let header = unsafe { medium.bytes(at.span(HEADER_BYTES as u64)) }.map_err(HeapError::from)?;
    let entries_bytes = u64::from(number(header)) * ENTRY_BYTES as u64;
    // SAFETY: as above.
    let entries = unsafe { medium.bytes(at.plus(HEADER_BYTES as u64).span(entries_bytes)) }.map_err(HeapError::from)?;
    if number(&header[4..]) != crc32c(crc32c(0, &header[..4]), entries) {
        return Err(damaged);
    }
    let entry = |entry: &[u8; ENTRY_BYTES]| {
        let at = u64::from_le_bytes(*entry.first_chunk().expect("an entry is longer"));
        (at, Image::from_bytes(entry.last_chunk().expect("an entry ends with a bucket")))
    };
    Ok(entries.as_chunks::<ENTRY_BYTES>().0.iter().map(entry).collect())
}
