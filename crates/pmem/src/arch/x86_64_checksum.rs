//! CRC-32C: by the instruction, a word after the other; of long ones, by folding their lines.

#[cfg(target_feature = "sse2")]
#[path = "x86_64_folds.rs"]
mod folds;

use core::arch::asm;

use super::{CRC32, FOLDS, has};
use crate::checksum::crc32c_by_table;
#[cfg(target_feature = "sse2")]
use folds::{LINES_MIN, fold_lines};

/// Without vector registers nothing is folded.
#[cfg(not(target_feature = "sse2"))]
const LINES_MIN: usize = usize::MAX;
#[cfg(not(target_feature = "sse2"))]
use crc32c_of_lines as fold_lines;

const LINE_BYTES: usize = crate::LINE_BYTES as usize;

/// Continues an inverted CRC-32C remainder over the concatenation of `parts`.
#[inline(always)]
pub fn crc32c<const COUNT: usize>(remainder: u32, parts: [&[u8]; COUNT]) -> u32 {
    if has(CRC32) {
        // SAFETY: SSE4.2 exists (just checked).
        parts.into_iter().fold(remainder, |crc, part| unsafe { crc32c_by_instruction(crc, part) })
    } else {
        parts.into_iter().fold(remainder, crc32c_by_table)
    }
}

/// As [`crc32c`], of bytes that may be many: their lines are folded, if the processor can.
pub fn crc32c_of_many(remainder: u32, bytes: &[u8]) -> u32 {
    let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
    if lines.len() >= LINES_MIN && has(FOLDS) {
        // SAFETY: what folding needs exists (just checked), the CRC32 instruction with it, and there are lines enough.
        unsafe { crc32c_by_instruction(fold_lines(remainder, lines), rest) }
    } else {
        crc32c(remainder, [bytes])
    }
}

/// Continues an inverted CRC-32C remainder over `bytes`. In assembly, so that it is inlined where the build does not assume the
/// instruction: a call for every part costs more than the parts of an item do.
///
/// # Safety
/// The CRC32 instruction exists.
#[inline(always)]
unsafe fn crc32c_by_instruction(remainder: u32, bytes: &[u8]) -> u32 {
    let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
    // SAFETY: the caller vouches for it.
    unsafe { crc32c_of_rest(crc32c_of_lines(remainder, lines), rest) }
}

/// # Safety
/// The CRC32 instruction exists.
#[inline(always)]
unsafe fn crc32c_of_lines(remainder: u32, lines: &[[u8; LINE_BYTES]]) -> u32 {
    let mut crc = u64::from(remainder);
    for block in lines {
        // SAFETY: the caller vouches for the instruction, which reads eight of the block's bytes at a time.
        unsafe {
            asm!(
                "crc32 {crc}, qword ptr [{block}]",
                "crc32 {crc}, qword ptr [{block} + 8]",
                "crc32 {crc}, qword ptr [{block} + 16]",
                "crc32 {crc}, qword ptr [{block} + 24]",
                "crc32 {crc}, qword ptr [{block} + 32]",
                "crc32 {crc}, qword ptr [{block} + 40]",
                "crc32 {crc}, qword ptr [{block} + 48]",
                "crc32 {crc}, qword ptr [{block} + 56]",
                crc = inout(reg) crc,
                block = in(reg) block,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
    }
    crc as u32
}

/// # Safety
/// The CRC32 instruction exists.
#[inline(always)]
unsafe fn crc32c_of_rest(remainder: u32, bytes: &[u8]) -> u32 {
    let mut crc = u64::from(remainder);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        // SAFETY: as above; it reads the word.
        unsafe {
            asm!("crc32 {crc}, qword ptr [{word}]", crc = inout(reg) crc, word = in(reg) word,
                options(pure, readonly, nostack, preserves_flags));
        }
    }
    if rest.is_empty() {
        return crc as u32;
    }
    let (halves, tail) = rest.as_chunks::<4>();
    for half in halves {
        // SAFETY: as above.
        unsafe {
            asm!("crc32 {crc:e}, {half:e}", crc = inout(reg) crc, half = in(reg) u32::from_le_bytes(*half),
                options(pure, nomem, nostack, preserves_flags));
        }
    }
    for &byte in tail {
        // SAFETY: as above.
        unsafe {
            asm!("crc32 {crc:e}, {byte}", crc = inout(reg) crc, byte = in(reg_byte) byte,
                options(pure, nomem, nostack, preserves_flags));
        }
    }
    crc as u32
}
