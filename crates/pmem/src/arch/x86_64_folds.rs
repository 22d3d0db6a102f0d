//! CRC-32C of complete lines by carry-less multiplication, four lanes of 16 bytes at a time.
//!
//! A lane is a polynomial of 128 bits. Moving a lane `n` bits ahead in the message multiplies it by x^n. Each of
//! its two halves is multiplied by a remainder of 33 bits; the sum is a lane with the same remainder, which is
//! added to the lane at that position. So each line folds onto the next, and three lanes of the last line onto the
//! fourth, whose remainder the CRC32 instruction computes. The result is the same as with that instruction only,
//! which takes three cycles per eight bytes.

use core::arch::asm;
use core::mem::offset_of;

use crate::checksum::POLYNOMIAL;

/// Returns x^(n + 32) and x^(n - 32), modulo the polynomial: the factors that move a lane's first and second half
/// `n` bits ahead. Bits are mirrored, like the message's.
const fn ahead(n: i32) -> [u64; 2] {
    [power(n + 32), power(n - 32)]
}

/// Returns x^n modulo the polynomial, mirrored, and shifted by the bit that a product of mirrored words lacks. A
/// negative power exists too, because the polynomial has the term 1.
const fn power(n: i32) -> u64 {
    const X_TO_0: u32 = 1 << 31;
    let mut remainder = X_TO_0;
    let mut i = n;
    while i > 0 {
        remainder = if remainder & 1 == 1 { remainder >> 1 ^ POLYNOMIAL } else { remainder >> 1 };
        i -= 1;
    }
    while i < 0 {
        remainder = if remainder & X_TO_0 != 0 { (remainder ^ POLYNOMIAL) << 1 | 1 } else { remainder << 1 };
        i += 1;
    }
    (remainder as u64) << 1
}

#[repr(C, align(64))]
struct Factors {
    /// Moves a line's lanes onto its last lane, which stays.
    together: [[u64; 2]; 4],
    by_one_line: [u64; 2],
    by_four_lines: [u64; 2],
    /// Moves each lane of four lines onto the last lane.
    onto_last: [[u64; 2]; 16],
}

static FACTORS: Factors = Factors {
    together: [ahead(384), ahead(256), ahead(128), [0, 0]],
    by_one_line: ahead(512),
    by_four_lines: ahead(2048),
    onto_last: {
        let mut factors = [[0; 2]; 16];
        let mut lane = 0;
        while lane < factors.len() {
            factors[lane] = ahead(128 * (factors.len() - 1 - lane) as i32);
            lane += 1;
        }
        factors
    },
};

/// Lines are folded four abreast, at least once. For only four lines, computing the remainder takes as many
/// instructions as summing word after word.
pub(super) const LINES_MIN: usize = 8;

/// Continues an inverted CRC-32C remainder over `lines`.
///
/// Uses only registers above the fifteenth. So the upper halves of the other registers stay clean, and code with
/// older instructions around it does not stall.
///
/// # Safety
/// There are at least [`LINES_MIN`] lines; the processor has AVX-512 (F, DQ, VL), VPCLMULQDQ and CRC32, and the
/// operating system saves the registers.
#[inline(always)]
pub(super) unsafe fn fold_lines(remainder: u32, lines: &[[u8; 64]]) -> u32 {
    let past = lines.as_ptr_range().end;
    let mut crc = u64::from(remainder);
    // SAFETY: the caller guarantees the instructions. The index runs from minus the lines' length up to 0, relative
    // to their end, and only bytes in that range are read: four lines at a time only while four are left, as at
    // first.
    unsafe {
        asm!(
            "vmovd xmm16, {crc:e}",
            "vpxorq zmm16, zmm16, [{past} + {i}]",
            "vbroadcasti32x4 zmm17, [{factors} + 64]",
            // Four lines abreast: none waits for the product of the line before it.
            "vmovdqu64 zmm20, [{past} + {i} + 64]",
            "vmovdqu64 zmm21, [{past} + {i} + 128]",
            "vmovdqu64 zmm22, [{past} + {i} + 192]",
            "vbroadcasti32x4 zmm23, [{factors} + 80]",
            "add {i}, 256",
            "2:",
            "vpclmulqdq zmm18, zmm16, zmm23, 0x00",
            "vpclmulqdq zmm16, zmm16, zmm23, 0x11",
            "vpternlogq zmm16, zmm18, [{past} + {i}], 0x96",
            "vpclmulqdq zmm19, zmm20, zmm23, 0x00",
            "vpclmulqdq zmm20, zmm20, zmm23, 0x11",
            "vpternlogq zmm20, zmm19, [{past} + {i} + 64], 0x96",
            "vpclmulqdq zmm18, zmm21, zmm23, 0x00",
            "vpclmulqdq zmm21, zmm21, zmm23, 0x11",
            "vpternlogq zmm21, zmm18, [{past} + {i} + 128], 0x96",
            "vpclmulqdq zmm19, zmm22, zmm23, 0x00",
            "vpclmulqdq zmm22, zmm22, zmm23, 0x11",
            "vpternlogq zmm22, zmm19, [{past} + {i} + 192], 0x96",
            "add {i}, 256",
            "cmp {i}, -256",
            "jle 2b",
            "vpclmulqdq zmm18, zmm16, zmm17, 0x00",
            "vpclmulqdq zmm16, zmm16, zmm17, 0x11",
            "vpternlogq zmm16, zmm18, zmm20, 0x96",
            "vpclmulqdq zmm18, zmm16, zmm17, 0x00",
            "vpclmulqdq zmm16, zmm16, zmm17, 0x11",
            "vpternlogq zmm16, zmm18, zmm21, 0x96",
            "vpclmulqdq zmm18, zmm16, zmm17, 0x00",
            "vpclmulqdq zmm16, zmm16, zmm17, 0x11",
            "vpternlogq zmm16, zmm18, zmm22, 0x96",
            "test {i}, {i}",
            "jz 5f",
            "3:",
            "vpclmulqdq zmm18, zmm16, zmm17, 0x00",
            "vpclmulqdq zmm16, zmm16, zmm17, 0x11",
            "vpternlogq zmm16, zmm18, [{past} + {i}], 0x96",
            "add {i}, 64",
            "jnz 3b",
            "5:",
            "vmovdqa64 zmm17, [{factors}]",
            "vpclmulqdq zmm18, zmm16, zmm17, 0x00",
            "vpclmulqdq zmm19, zmm16, zmm17, 0x11",
            "vpxorq zmm18, zmm18, zmm19",
            "vextracti32x4 xmm16, zmm16, 3",
            "vextracti64x4 ymm19, zmm18, 1",
            "vextracti32x4 xmm17, ymm18, 1",
            "vpternlogq xmm16, xmm18, xmm19, 0x96",
            "vpxorq xmm16, xmm16, xmm17",
            "vpunpckhqdq xmm17, xmm16, xmm16",
            "vmovq {i}, xmm16",
            "xor {crc:e}, {crc:e}",
            "crc32 {crc}, {i}",
            "vmovq {i}, xmm17",
            "crc32 {crc}, {i}",
            past = in(reg) past,
            factors = in(reg) &raw const FACTORS,
            i = inout(reg) (size_of_val(lines) as u64).wrapping_neg() => _,
            crc = inout(reg) crc,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
            out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
            options(readonly, nostack),
        );
    }
    crc as u32
}

/// Continues an inverted CRC-32C remainder over four lines. Inlined: it needs one general register more than the CRC32
/// instruction.
///
/// Every lane is multiplied by a factor of its own, so that no product waits for another. The products wait for the
/// lines in the vector unit. The 32 CRC32 instructions for these bytes wait for each other, and fill the scheduler that
/// the next operation needs to begin.
///
/// # Safety
/// `from` has four lines; the processor has the features for [`fold_lines`].
#[inline(always)]
pub(super) unsafe fn fold_four_lines(crc: u64, from: *const u8) -> u64 {
    let mut remainder = crc;
    // SAFETY: the caller guarantees the instructions, which read the four lines and the factors.
    unsafe {
        asm!(
            "vmovd xmm16, {crc:e}",
            "vpxorq zmm16, zmm16, [{from}]",
            "vmovdqu64 zmm17, [{from} + 64]",
            "vmovdqu64 zmm18, [{from} + 128]",
            "vmovdqu64 zmm19, [{from} + 192]",
            "vpclmulqdq zmm20, zmm16, [rip + {factors} + {at}], 0x00",
            "vpclmulqdq zmm16, zmm16, [rip + {factors} + {at}], 0x11",
            "vpclmulqdq zmm21, zmm17, [rip + {factors} + {at} + 64], 0x00",
            "vpclmulqdq zmm17, zmm17, [rip + {factors} + {at} + 64], 0x11",
            "vpclmulqdq zmm22, zmm18, [rip + {factors} + {at} + 128], 0x00",
            "vpclmulqdq zmm18, zmm18, [rip + {factors} + {at} + 128], 0x11",
            "vpclmulqdq zmm23, zmm19, [rip + {factors} + {at} + 192], 0x00",
            "vpclmulqdq zmm19, zmm19, [rip + {factors} + {at} + 192], 0x11",
            "vpternlogq zmm17, zmm21, zmm22, 0x96",
            "vpternlogq zmm18, zmm23, zmm19, 0x96",
            "vpternlogq zmm16, zmm20, zmm17, 0x96",
            "vpxorq zmm16, zmm16, zmm18",
            "vextracti64x4 ymm17, zmm16, 1",
            "vpxorq ymm16, ymm16, ymm17",
            "vextracti32x4 xmm17, ymm16, 1",
            "vpxorq xmm16, xmm16, xmm17",
            "vmovq {half}, xmm16",
            "xor {crc:e}, {crc:e}",
            "crc32 {crc}, {half}",
            "vpextrq {half}, xmm16, 1",
            "crc32 {crc}, {half}",
            from = in(reg) from,
            factors = sym FACTORS,
            at = const offset_of!(Factors, onto_last),
            crc = inout(reg) remainder,
            half = out(reg) _,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
            out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
            options(pure, readonly, nostack),
        );
    }
    remainder
}

const _: () = assert!(offset_of!(Factors, by_one_line) == 64);
const _: () = assert!(offset_of!(Factors, by_four_lines) == 80);
