//! No real processor: Miri, which supports no write-back, no non-temporal store and no assembly.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{match4_scalar, take_pairs_scalar, write_through};
use crate::checksum::crc32c_by_table;

/// Returns the name for statistics.
#[must_use]
pub fn flush_instruction() -> &'static str {
    "none"
}

/// Does nothing: there is no cache.
///
/// # Safety
/// `_byte` is a readable address.
pub unsafe fn write_back(_byte: *const u8) {}

/// Does nothing: there is no cache.
///
/// # Safety
/// `_byte` is a readable address.
pub unsafe fn evict(_byte: *const u8) {}

/// Orders stores, as after a write-back on real processors. Does not order loads.
pub fn fence() {
    core::sync::atomic::fence(Ordering::Release);
}

/// Writes the concatenation of `parts`, padded with zeros to a multiple of 16 bytes.
///
/// # Safety
/// `target` is 16-byte aligned and writable for the padded length, and no other thread uses those bytes.
pub unsafe fn stream(target: *mut u8, parts: &[&[u8]]) {
    // SAFETY: the caller's promise.
    unsafe { write_through(target, parts) }
}

/// Does nothing: there is no cache.
pub fn prefetch(_byte: *const u8) {}

/// Does nothing: there is no cache.
pub fn prefetch_to_write(_byte: *const u8) {}

/// Returns the mask of the words that equal `word`: bit i for word i. Each is loaded atomically.
///
/// # Safety
/// `words` points to four words, aligned to 32 bytes, that may be accessed as [`AtomicU64`]s: its provenance allows
/// stores.
pub unsafe fn match4(words: *const u64, word: u64) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { match4_scalar(words, word) }
}

/// Returns a mask: bit i is set if the low half of word i (i < 4) or its high half (i >= 4) equals `wanted[i % 4]`.
pub fn equal_halves(words: [u64; 8], wanted: [u32; 4]) -> u32 {
    super::equal_halves_scalar(words, wanted)
}

/// Loads words that other threads may store to, each atomically, in no given order, up to the shorter length.
pub fn take_pairs(from: &[[AtomicU64; 2]], into: &mut [[MaybeUninit<u64>; 2]]) {
    take_pairs_scalar(from, into);
}

/// Returns the number of earlier calls: the interpreter has no cheap clock.
pub fn timestamp() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed)
}

/// Same as [`timestamp`].
pub fn timestamp_in_order() -> u64 {
    timestamp()
}

/// Like [`crc32c`], for one part, which may be long.
pub fn crc32c_of_many(remainder: u32, bytes: &[u8]) -> u32 {
    crc32c_by_table(remainder, bytes)
}

/// Like [`crc32c`], for three parts.
pub fn crc32c_in_line(remainder: u32, first: &[u8; 8], second: &[u8; 4], rest: &[u8]) -> u32 {
    crc32c(remainder, [first, second, rest])
}

/// Continues an inverted CRC-32C remainder over `parts`.
pub fn crc32c<const COUNT: usize>(remainder: u32, parts: [&[u8]; COUNT]) -> u32 {
    parts.into_iter().fold(remainder, crc32c_by_table)
}
