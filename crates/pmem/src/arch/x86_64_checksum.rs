//! CRC-32C: by the CRC32 instruction, word after word; for long parts, by folding their lines.

#[cfg(target_feature = "sse2")]
#[path = "x86_64_folds.rs"]
mod folds;

use core::arch::asm;

use super::{CRC32, FOLDS, has, is_known};
use crate::checksum::{MANY_BYTES, crc32c_by_table};
#[cfg(target_feature = "sse2")]
use folds::{LINES_MIN, fold_four_lines, fold_lines};

/// Without vector registers, lines are not folded.
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

/// Like [`crc32c`], for one part, which may be long: its lines are folded if the processor supports that.
pub fn crc32c_of_many(remainder: u32, bytes: &[u8]) -> u32 {
    let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
    if lines.len() >= LINES_MIN && has(FOLDS) {
        // SAFETY: the features for folding exist (just checked), including the CRC32 instruction, and there are
        // enough lines.
        unsafe { crc32c_by_instruction(fold_lines(remainder, lines), rest) }
    } else {
        crc32c(remainder, [bytes])
    }
}

/// Continues an inverted CRC-32C remainder over `bytes`. Written in assembly, so that it is inlined in builds that
/// do not assume the instruction: a call per part costs more than the parts of an item.
///
/// # Safety
/// The CRC32 instruction exists.
#[inline(always)]
unsafe fn crc32c_by_instruction(remainder: u32, bytes: &[u8]) -> u32 {
    let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
    // SAFETY: the caller guarantees the instruction.
    unsafe { crc32c_of_rest(crc32c_of_lines(remainder, lines), rest) }
}

/// # Safety
/// The CRC32 instruction exists.
#[inline(always)]
unsafe fn crc32c_of_lines(remainder: u32, lines: &[[u8; LINE_BYTES]]) -> u32 {
    let mut crc = u64::from(remainder);
    for block in lines {
        // SAFETY: the caller guarantees the instruction.
        crc = unsafe { line::<0>(crc, block.as_ptr()) };
    }
    crc as u32
}

/// # Safety
/// The CRC32 instruction exists.
#[inline(always)]
unsafe fn crc32c_of_rest(remainder: u32, bytes: &[u8]) -> u32 {
    let mut crc = u64::from(remainder);
    let (words, rest) = bytes.as_chunks::<8>();
    for eight in words {
        // SAFETY: as above.
        crc = unsafe { word::<0>(crc, eight.as_ptr()) };
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

/// Like [`crc32c`], for two parts of fixed length and a third part. A third part below [`MANY_BYTES`] is summed
/// without a loop.
#[inline(always)]
pub fn crc32c_in_line(remainder: u32, first: &[u8; 8], second: &[u8; 4], rest: &[u8]) -> u32 {
    if rest.len() >= MANY_BYTES || !is_known(CRC32) {
        return crc32c_of_parts(remainder, first, second, rest);
    }
    // SAFETY: SSE4.2 exists (just checked).
    unsafe { crc32c_in_pieces(half(word::<0>(remainder.into(), first.as_ptr()), second.as_ptr()), rest) }
}

/// Not inlined: the code for short parts needs the registers.
#[cold]
#[inline(never)]
fn crc32c_of_parts(remainder: u32, first: &[u8; 8], second: &[u8; 4], rest: &[u8]) -> u32 {
    crc32c_of_many(crc32c(remainder, [first, second]), rest)
}

/// Sums up `bytes` without a counting loop: each bit of the length stands for a piece.
///
/// # Safety
/// The CRC32 instruction exists, and there are less than [`MANY_BYTES`].
#[inline(always)]
unsafe fn crc32c_in_pieces(mut crc: u64, bytes: &[u8]) -> u32 {
    let mut from = bytes.as_ptr();
    // SAFETY: the caller guarantees the instruction; the pieces follow each other, and together are as long as the
    // bytes.
    unsafe {
        if bytes.len() & 256 != 0 {
            crc = four_lines(crc, from);
            from = from.add(256);
        }
        // A usual key and a value of 256 bytes end here.
        if bytes.len() & !(256 | 16) == 0 {
            return if bytes.len() & 16 != 0 { word::<8>(word::<0>(crc, from), from) } else { crc } as u32;
        }
        if bytes.len() & 128 != 0 {
            crc = line::<64>(line::<0>(crc, from), from);
            from = from.add(128);
        }
        if bytes.len() & 64 != 0 {
            crc = line::<0>(crc, from);
            from = from.add(64);
        }
        if bytes.len() & 32 != 0 {
            crc = word::<24>(word::<16>(word::<8>(word::<0>(crc, from), from), from), from);
            from = from.add(32);
        }
        if bytes.len() & 16 != 0 {
            crc = word::<8>(word::<0>(crc, from), from);
            from = from.add(16);
        }
        // Keys and values of usual lengths end here.
        if bytes.len() & 15 == 0 {
            return crc as u32;
        }
        if bytes.len() & 8 != 0 {
            crc = word::<0>(crc, from);
        }
        let tail = &bytes[bytes.len() & !7..];
        if tail.is_empty() { crc as u32 } else { crc32c_of_rest(crc as u32, tail) }
    }
}

/// # Safety
/// The CRC32 instruction exists, and `from` has four lines.
#[inline(always)]
unsafe fn four_lines(crc: u64, from: *const u8) -> u64 {
    // SAFETY: the caller's promise; the lines are folded only if the processor has the features.
    unsafe {
        #[cfg(target_feature = "sse2")]
        if is_known(FOLDS) {
            return fold_four_lines(crc, from);
        }
        four_lines_by_instruction(crc, from)
    }
}

/// # Safety
/// As for [`four_lines`].
#[inline(always)]
unsafe fn four_lines_by_instruction(crc: u64, from: *const u8) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { line::<192>(line::<128>(line::<64>(line::<0>(crc, from), from), from), from) }
}

/// # Safety
/// The CRC32 instruction exists, and `from` has a line at `AT`.
#[inline(always)]
unsafe fn line<const AT: usize>(mut crc: u64, from: *const u8) -> u64 {
    // SAFETY: the caller guarantees the instruction, which reads eight of the line's bytes at a time.
    unsafe {
        asm!(
            "crc32 {crc}, qword ptr [{from} + {at}]",
            "crc32 {crc}, qword ptr [{from} + {at} + 8]",
            "crc32 {crc}, qword ptr [{from} + {at} + 16]",
            "crc32 {crc}, qword ptr [{from} + {at} + 24]",
            "crc32 {crc}, qword ptr [{from} + {at} + 32]",
            "crc32 {crc}, qword ptr [{from} + {at} + 40]",
            "crc32 {crc}, qword ptr [{from} + {at} + 48]",
            "crc32 {crc}, qword ptr [{from} + {at} + 56]",
            crc = inout(reg) crc,
            from = in(reg) from,
            at = const AT,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    crc
}

/// # Safety
/// The CRC32 instruction exists, and `from` has four bytes.
#[inline(always)]
unsafe fn half(mut crc: u64, from: *const u8) -> u64 {
    // SAFETY: the caller guarantees the instruction, which reads the four bytes; the upper half of the remainder
    // becomes 0.
    unsafe {
        asm!("crc32 {crc:e}, dword ptr [{from}]", crc = inout(reg) crc, from = in(reg) from,
            options(pure, readonly, nostack, preserves_flags));
    }
    crc
}

/// # Safety
/// The CRC32 instruction exists, and `from` has a word at `AT`.
#[inline(always)]
unsafe fn word<const AT: usize>(mut crc: u64, from: *const u8) -> u64 {
    // SAFETY: as above; it reads the word.
    unsafe {
        asm!("crc32 {crc}, qword ptr [{from} + {at}]", crc = inout(reg) crc, from = in(reg) from, at = const AT,
            options(pure, readonly, nostack, preserves_flags));
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processors with the features for folding run only one of the two in the other tests.
    #[test]
    fn four_line_checksums_agree_with_definition() {
        let bytes: [u8; 320] = core::array::from_fn(|i| (i * i + 31 * i) as u8);
        for (start, seed) in (0..64).flat_map(|start| [0, 1, !0, 0x8765_4321].map(|seed| (start, seed))) {
            let piece = &bytes[start..start + 256];
            let wanted = u64::from(crc32c_by_table(seed, piece));
            if has(CRC32) {
                // SAFETY: the instruction exists (just checked), and the piece has four lines.
                let (either, instruction) = unsafe {
                    (four_lines(seed.into(), piece.as_ptr()), four_lines_by_instruction(seed.into(), piece.as_ptr()))
                };
                assert_eq!((either, instruction), (wanted, wanted), "{seed:#x} at {start}");
            }
        }
    }
}
