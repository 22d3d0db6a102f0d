//! CRC-32C of complete lines by carry-less multiplication, four lanes of 16 bytes at a time.
//!
//! A lane is a polynomial of 128 bits. Moving a lane `n` bits ahead in the message multiplies it by x^n. Each of
//! its two halves is multiplied by a remainder of 33 bits; the sum is a lane with the same remainder, which is
//! added to the lane at that position. So each line folds onto the next, and three lanes of the last line onto the
//! fourth, whose remainder the CRC32 instruction computes. The result is the same as with that instruction only,
//! which takes three cycles per eight bytes.

use core::arch::asm;

/// Returns x^(n + 32) and x^(n - 32), modulo the polynomial: the factors that move a lane's first and second half
/// `n` bits ahead. Bits are mirrored, like the message's.
const fn ahead(n: u32) -> [u64; 2] {
    [power(n + 32), power(n - 32)]
}

/// Returns x^n modulo the polynomial, mirrored, and shifted by the bit that a product of mirrored words lacks.
const fn power(n: u32) -> u64 {
    let mut remainder = 1u32 << 31;
    let mut i = 0;
    while i < n {
        remainder = if remainder & 1 == 1 { remainder >> 1 ^ crate::checksum::POLYNOMIAL } else { remainder >> 1 };
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
}

static FACTORS: Factors = Factors {
    together: [ahead(384), ahead(256), ahead(128), [0, 0]],
    by_one_line: ahead(512),
    by_four_lines: ahead(2048),
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
/// There are at least [`LINES_MIN`] lines; the processor has AVX-512 (F, VL), VPCLMULQDQ and CRC32, and the
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

const _: () = assert!(core::mem::offset_of!(Factors, by_one_line) == 64);
const _: () = assert!(core::mem::offset_of!(Factors, by_four_lines) == 80);
