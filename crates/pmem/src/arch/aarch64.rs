//! AArch64: DC CVAP where the operating system lets user code see it, else DC CVAC; DSB; the CRC32C instructions by
//! table, until a machine to measure on is at hand.

use core::arch::asm;

use super::match4_scalar;
use crate::checksum::crc32c_by_table;
use crate::{LINE_BYTES, Offset, lines};

/// The write-back instruction that is used, for stats.
#[must_use]
pub fn flush_instruction() -> &'static str {
    "dc cvac"
}

/// Starts the write-back of the line that holds `byte`.
///
/// DC CVAC cleans to the point of coherency, which is the point of persistence on machines whose memory controllers are
/// inside the persistence domain; DC CVAP traps on older processors and a core-only crate cannot ask.
///
/// # Safety
/// `byte` is a readable address.
#[inline(always)]
pub unsafe fn write_back(byte: *const u8) {
    // SAFETY: cleaning a line changes no value.
    unsafe { asm!("dc cvac, {}", in(reg) byte, options(nostack, preserves_flags)) }
}

/// What was written back is durable before any later store.
#[inline(always)]
pub fn fence() {
    // SAFETY: a barrier touches no memory.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) }
}

/// Writes the concatenation of `parts`, padded with zeros to a multiple of 16 bytes, and starts its write-back.
///
/// # Safety
/// `target` is 16-byte aligned and writable for the padded length, and nobody else uses those bytes.
pub unsafe fn stream(target: *mut u8, parts: &[&[u8]]) {
    let mut len_bytes = 0;
    for part in parts {
        // SAFETY: the caller's target is long enough for all parts.
        unsafe { target.add(len_bytes).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
        len_bytes += part.len();
    }
    let padded = len_bytes.next_multiple_of(16);
    // SAFETY: the caller's target is long enough for the padded length.
    unsafe { target.add(len_bytes).write_bytes(0, padded - len_bytes) };
    let start = target as u64;
    for line in lines(Offset(start).span(padded as u64)) {
        // SAFETY: a byte of the caller's target.
        unsafe { write_back(target.add((line.0.max(start) - start) as usize)) };
    }
    const { assert!(LINE_BYTES == 64) }
}

/// Asks the cache for the line of `byte`, which may be any address at all.
#[inline(always)]
pub fn prefetch(byte: *const u8) {
    // SAFETY: a prefetch never faults and changes no value.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) byte, options(nostack, preserves_flags, readonly)) }
}

/// Which of four adjacent words equal `word`: bit i for word i. Each word is loaded atomically, in no given order.
///
/// # Safety
/// `words` points at four readable words, aligned to 32 bytes.
#[inline(always)]
pub unsafe fn match4(words: *const u64, word: u64) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { match4_scalar(words, word) }
}

/// The virtual counter: constant rate, not serialising.
#[inline(always)]
pub fn timestamp() -> u64 {
    let ticks: u64;
    // SAFETY: reading the counter has no effect.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, nomem, preserves_flags)) }
    ticks
}

/// Continues an inverted CRC-32C remainder over `bytes`.
#[inline(always)]
pub fn crc32c(remainder: u32, bytes: &[u8]) -> u32 {
    crc32c_by_table(remainder, bytes)
}
