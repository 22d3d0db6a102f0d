//! x86-64 with vector registers, which every process has.

use core::arch::asm;
use core::arch::x86_64::{
    _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16,
    _mm_packs_epi32, _mm_set_epi32, _mm_set_epi64x, _mm_setzero_si128, _mm_shuffle_ps, _mm_stream_si128,
};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU64;

/// Copies 16 bytes with non-temporal stores; returns the target of the next bytes.
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

/// Copies complete lines with non-temporal stores.
///
/// # Safety
/// `len_bytes` is a multiple of 64, and not 0; `out` is aligned to 16 bytes and writable for that length; `from` is
/// readable.
#[inline(always)]
pub(super) unsafe fn put_lines(out: *mut u8, from: *const u8, len_bytes: usize) {
    // SAFETY: the index runs from minus the length up to 0, relative to both ends; the caller guarantees all bytes
    // in between.
    unsafe {
        asm!(
            "2:",
            "movups {a}, [{from} + {i}]",
            "movups {b}, [{from} + {i} + 16]",
            "movups {c}, [{from} + {i} + 32]",
            "movups {d}, [{from} + {i} + 48]",
            "movntdq [{out} + {i}], {a}",
            "movntdq [{out} + {i} + 16], {b}",
            "movntdq [{out} + {i} + 32], {c}",
            "movntdq [{out} + {i} + 48], {d}",
            "add {i}, 64",
            "jnz 2b",
            from = in(reg) from.add(len_bytes),
            out = in(reg) out.add(len_bytes),
            i = inout(reg) len_bytes.wrapping_neg() => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// Implements [`super::match4`] by two vector compares.
///
/// # Safety
/// As for [`super::match4`]; and AVX exists.
#[inline(always)]
pub(super) unsafe fn match4_at_once(words: *const u64, word: u64) -> u32 {
    let mask: u32;
    // SAFETY: the caller guarantees AVX, and the 32 bytes are readable and aligned. Other threads may store to them
    // at the same time, which a Rust load of that width would not allow; the instruction loads each aligned word
    // atomically.
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

/// Returns the number of words in `fours` that are below `word`.
///
/// # Safety
/// AVX2 exists, and there is at least one group of four.
#[inline(always)]
pub(super) unsafe fn count_fours_below(fours: &[[AtomicU64; 4]], word: u64) -> usize {
    let count: usize;
    // SAFETY: the caller guarantees AVX2 and the first round; the words are readable. Other threads may store to
    // them at the same time, which a Rust load of that width would not allow; the instruction loads each word
    // atomically, because it is aligned. Every vector register counts as changed, because the upper halves are
    // zeroed at the end.
    unsafe {
        asm!(
            // The compare is signed: both sides are shifted by half of the range.
            "vpcmpeqd xmm1, xmm1, xmm1",
            "vpsllq xmm1, xmm1, 63",
            "vmovq xmm0, {word}",
            "vpxor xmm0, xmm0, xmm1",
            "vpbroadcastq ymm0, xmm0",
            "vpbroadcastq ymm1, xmm1",
            "vpxor xmm3, xmm3, xmm3",
            "2:",
            "vpxor ymm2, ymm1, [{next}]",
            "vpcmpgtq ymm2, ymm0, ymm2",
            "vpsubq ymm3, ymm3, ymm2",
            "add {next}, 32",
            "cmp {next}, {past}",
            "jb 2b",
            "vextracti128 xmm2, ymm3, 1",
            "vpaddq xmm3, xmm3, xmm2",
            "vpshufd xmm2, xmm3, 0xEE",
            "vpaddq xmm3, xmm3, xmm2",
            "vmovq {count}, xmm3",
            "vzeroupper",
            word = in(reg) word,
            next = inout(reg) fours.as_ptr() => _,
            past = in(reg) fours.as_ptr_range().end,
            count = lateout(reg) count,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack, readonly),
        );
    }
    count
}

/// Implements [`super::take_pairs`] with one load per pair, and four pairs per round.
///
/// # Safety
/// `count` pairs are readable at `from`, and writable at `into`, which only the caller uses.
#[inline(always)]
pub(super) unsafe fn take_pairs_at_once(
    mut from: *const [AtomicU64; 2],
    mut into: *mut [MaybeUninit<u64>; 2],
    mut count: usize,
) {
    // SAFETY: the pointers stay within `count` pairs, which the caller guarantees. Other threads may store to the
    // words at the same time, which a Rust load of that width would not allow; each instruction loads both aligned
    // words atomically.
    unsafe {
        while count >= 4 {
            asm!(
                "movups {a}, [{from}]",
                "movups {b}, [{from} + 16]",
                "movups {c}, [{from} + 32]",
                "movups {d}, [{from} + 48]",
                "movups [{into}], {a}",
                "movups [{into} + 16], {b}",
                "movups [{into} + 32], {c}",
                "movups [{into} + 48], {d}",
                from = in(reg) from,
                into = in(reg) into,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
            (from, into, count) = (from.add(4), into.add(4), count - 4);
        }
        while count > 0 {
            asm!(
                "movups {pair}, [{from}]",
                "movups [{into}], {pair}",
                from = in(reg) from,
                into = in(reg) into,
                pair = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
            (from, into, count) = (from.add(1), into.add(1), count - 1);
        }
    }
}

/// Returns the number of the words that are below `word`.
///
/// Uses only registers above the fifteenth, like `fold_lines`.
///
/// # Safety
/// AVX-512 (F, BW) and POPCNT exist, and the operating system saves the registers.
#[inline(always)]
pub(super) unsafe fn count_below_32(words: &[AtomicU64; 32], word: u64) -> usize {
    let mut count: u64;
    // SAFETY: the caller guarantees the instructions; the words are readable. Other threads may store to them at
    // the same time: see `count_fours_below`.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {count}",
            "vpcmpnleuq k1, zmm16, [{words}]",
            "vpcmpnleuq k2, zmm16, [{words} + 64]",
            "vpcmpnleuq k3, zmm16, [{words} + 128]",
            "vpcmpnleuq k4, zmm16, [{words} + 192]",
            "kunpckbw k1, k1, k2",
            "kunpckbw k3, k3, k4",
            "kunpckwd k1, k1, k3",
            "kmovd {count:e}, k1",
            "popcnt {count:e}, {count:e}",
            words = in(reg) words.as_ptr(),
            count = inout(reg) word => count,
            out("xmm16") _, out("k1") _, out("k2") _, out("k3") _, out("k4") _,
            options(nostack, readonly),
        );
    }
    count as usize
}

/// Like [`count_below_32`], for eight words.
///
/// # Safety
/// As for [`count_below_32`].
#[inline(always)]
pub(super) unsafe fn count_below_8(words: &[AtomicU64; 8], word: u64) -> usize {
    let mut count: u64;
    // SAFETY: as above.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {count}",
            "vpcmpnleuq k1, zmm16, [{words}]",
            "kmovw {count:e}, k1",
            "popcnt {count:e}, {count:e}",
            words = in(reg) words.as_ptr(),
            count = inout(reg) word => count,
            out("xmm16") _, out("k1") _,
            options(nostack, readonly),
        );
    }
    count as usize
}

/// Implements [`super::equal_halves`] by two vector compares.
#[inline(always)]
pub(super) fn equal_halves_at_once(words: [u64; 8], wanted: [u32; 4]) -> u32 {
    const LOW: i32 = 0b10_00_10_00;
    const HIGH: i32 = 0b11_01_11_01;
    let wanted = wanted.map(|half| half as i32);
    // SAFETY: SSE2 exists: this file is only compiled for processors that have it.
    unsafe {
        let two = |i: usize| _mm_castsi128_ps(_mm_set_epi64x(words[i + 1] as i64, words[i] as i64));
        let wanted = _mm_set_epi32(wanted[3], wanted[2], wanted[1], wanted[0]);
        let low = _mm_castps_si128(_mm_shuffle_ps::<LOW>(two(0), two(2)));
        let high = _mm_castps_si128(_mm_shuffle_ps::<HIGH>(two(4), two(6)));
        let hits = _mm_packs_epi32(_mm_cmpeq_epi32(low, wanted), _mm_cmpeq_epi32(high, wanted));
        _mm_movemask_epi8(_mm_packs_epi16(hits, _mm_setzero_si128())) as u32
    }
}
