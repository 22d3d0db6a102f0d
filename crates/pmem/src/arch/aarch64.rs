//! AArch64: DC CVAC and DSB. The checksum uses a table; the CRC32C instructions have not been measured.

use core::arch::asm;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU64;

use super::match4_scalar;
use crate::checksum::crc32c_by_table;

/// Returns the write-back instruction in use, for statistics.
#[must_use]
pub fn flush_instruction() -> &'static str {
    "dc cvac"
}

/// Starts the write-back of the line that holds `byte`.
///
/// DC CVAC cleans to the point of coherency, which is the point of persistence on machines whose memory controllers
/// are in the persistence domain. DC CVAP traps on older processors, and a core-only crate cannot detect it.
///
/// # Safety
/// `byte` is a readable address.
#[inline(always)]
pub unsafe fn write_back(byte: *const u8) {
    // SAFETY: cleaning a line changes no value.
    unsafe { asm!("dc cvac, {}", in(reg) byte, options(nostack, preserves_flags)) }
}

/// Starts the write-back of the line that holds `byte`, and removes it from every cache. For measurements.
///
/// # Safety
/// `byte` is a readable address.
#[inline]
pub unsafe fn evict(byte: *const u8) {
    // SAFETY: cleaning and invalidating a line changes no value.
    unsafe { asm!("dc civac, {}", in(reg) byte, options(nostack, preserves_flags)) }
}

/// Waits until every line written back before it is durable; later stores come after.
#[inline(always)]
pub fn fence() {
    // SAFETY: a barrier touches no memory.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) }
}

pub use super::write_through as stream;

/// Prefetches the line of `byte`, which may be any address.
#[inline(always)]
pub fn prefetch(byte: *const u8) {
    // SAFETY: a prefetch never faults and changes no value.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) byte, options(nostack, preserves_flags, readonly)) }
}

/// Like [`prefetch`], for a line that is about to be written.
#[inline(always)]
pub fn prefetch_to_write(byte: *const u8) {
    // SAFETY: a prefetch never faults and changes no value.
    unsafe { asm!("prfm pstl1keep, [{}]", in(reg) byte, options(nostack, preserves_flags, readonly)) }
}

/// Returns the mask of the words that equal `word`: bit i for word i. Each is loaded atomically, in no given order.
///
/// # Safety
/// `words` points to four words, aligned to 32 bytes, that may be accessed as [`AtomicU64`]s: its provenance allows
/// stores.
#[inline(always)]
pub unsafe fn match4(words: *const u64, word: u64) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { match4_scalar(words, word) }
}

/// Returns the number of `words` that are below `word`. Each is loaded atomically, in no given order.
#[inline(always)]
pub fn count_below(words: &[AtomicU64], word: u64) -> usize {
    super::count_below_scalar(words, word)
}

/// Returns a mask: bit i is set if the low half of word i (i < 4) or its high half (i >= 4) equals `wanted[i % 4]`.
#[inline(always)]
pub fn equal_halves(words: [u64; 8], wanted: [u32; 4]) -> u32 {
    super::equal_halves_scalar(words, wanted)
}

/// Loads words that other threads may store to, each atomically, in no given order, up to the shorter length.
#[inline(always)]
pub fn take_pairs(from: &[[AtomicU64; 2]], into: &mut [[MaybeUninit<u64>; 2]]) {
    super::take_pairs_scalar(from, into);
}

/// Returns the virtual counter: constant rate, not serialising.
#[inline(always)]
pub fn timestamp() -> u64 {
    let ticks: u64;
    // SAFETY: reading the counter has no effect.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, nomem, preserves_flags)) }
    ticks
}

/// Like [`timestamp`], but after everything before it is done and before anything after it starts. For timing.
#[inline(always)]
pub fn timestamp_in_order() -> u64 {
    let ticks: u64;
    // SAFETY: barriers and reading the counter have no effect on memory.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags)) }
    ticks
}

/// Like [`crc32c`], for one part, which may be long.
pub fn crc32c_of_many(remainder: u32, bytes: &[u8]) -> u32 {
    crc32c(remainder, [bytes])
}

/// Like [`crc32c`], for three parts.
#[inline(always)]
pub fn crc32c_in_line(remainder: u32, first: &[u8; 8], second: &[u8; 4], rest: &[u8]) -> u32 {
    crc32c(remainder, [first, second, rest])
}

/// Continues an inverted CRC-32C remainder over `parts`.
#[inline(always)]
pub fn crc32c<const COUNT: usize>(remainder: u32, parts: [&[u8]; COUNT]) -> u32 {
    parts.into_iter().fold(remainder, crc32c_by_table)
}
