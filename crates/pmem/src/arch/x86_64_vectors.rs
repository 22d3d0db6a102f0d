//! x86-64 with vector registers: what any process has.

use core::arch::asm;
use core::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64, _mm_loadu_si128, _mm_stream_si128};

/// Copies 16 bytes past the cache; returns where the next ones go.
///
/// # Safety
/// `out` is an aligned, writable 16 bytes and `from` a readable 16 bytes.
#[inline(always)]
pub(super) unsafe fn put16(out: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        _mm_stream_si128(out.cast(), _mm_loadu_si128(from.cast()));
        out.add(16)
    }
}

/// [`super::match4`] by two vector compares.
///
/// # Safety
/// As for [`super::match4`]; and AVX exists.
#[inline(always)]
pub(super) unsafe fn match4_at_once(words: *const u64, word: u64) -> u32 {
    let mask: u32;
    // SAFETY: the caller vouches for AVX, and the 32 bytes are readable and aligned. Other threads may store to them
    // meanwhile, which a Rust load of that width would not allow; the instruction loads each aligned word atomically.
    unsafe {
        asm!(
            "vmovq {wanted}, {word}",
            "vmovddup {wanted}, {wanted}",
            "vpcmpeqq {low}, {wanted}, [{words}]",
            "vpcmpeqq {wanted}, {wanted}, [{words} + 16]",
            "vshufps {low}, {low}, {wanted}, 0x88",
            "vmovmskps {mask:e}, {low}",
            word = in(reg) word,
            words = in(reg) words,
            wanted = out(xmm_reg) _,
            low = out(xmm_reg) _,
            mask = out(reg) mask,
            options(nostack, readonly, preserves_flags),
        );
    }
    mask
}

/// Continues an inverted CRC-32C remainder over `bytes`.
#[target_feature(enable = "sse4.2")]
pub(super) fn crc32c_by_instruction(remainder: u32, bytes: &[u8]) -> u32 {
    let (words, tail) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(u64::from(remainder), |crc, word| _mm_crc32_u64(crc, u64::from_le_bytes(*word)));
    tail.iter().fold(crc as u32, |crc, &byte| _mm_crc32_u8(crc, byte))
}
