//! Little-endian integers in arrays of bytes, and the checksum at a line's end.

use pmem::Checksum;

use crate::layout::ENTRY_BYTES;

/// A line of the log or of a record.
pub(crate) type Line = [u8; ENTRY_BYTES];

/// The offset of a line's checksum.
const CHECK_AT: usize = ENTRY_BYTES - 4;

#[inline(always)]
pub(crate) fn put_u64(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

#[inline(always)]
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Returns a line without its checksum.
#[inline(always)]
pub(crate) fn before_check(line: &Line) -> &[u8; CHECK_AT] {
    line.first_chunk().expect("a line is longer")
}

/// Ends a line with the checksum of `salt`, its other bytes and `more`.
#[inline(always)]
pub(crate) fn seal_line(line: &mut Line, salt: Checksum, more: &[u8]) {
    let own = salt.update_with(before_check(line));
    let check = if more.is_empty() { own } else { own.update(more) };
    put_u32(line, CHECK_AT, check.value());
}

/// Returns true if the line ends with that checksum. A line of zeros never does: see [`salt`].
pub(crate) fn is_sealed(line: &Line, salt: Checksum, more: &[u8]) -> bool {
    salt.update(before_check(line)).update(more).value() == u32_at(line, CHECK_AT)
}

/// Returns the checksum that all checksums of the store's lines begin with. Lines of another store, and empty lines, do
/// not match it.
pub(crate) fn salt(uuid: &[u8; 16]) -> Checksum {
    Checksum::default().update(b"pmekv").update(uuid)
}
