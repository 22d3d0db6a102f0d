//! x86-64 with general registers only: for kernels and firmware, where the vector registers hold the interrupted
//! program's values.

use core::arch::asm;
use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::AtomicU64;

/// Copies 16 bytes with non-temporal stores; returns the target of the next bytes.
///
/// # Safety
/// `out` is an aligned, writable 16 bytes and `from` a readable 16 bytes.
#[inline(always)]
pub(super) unsafe fn put16(out: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: the caller's promise; MOVNTI is part of the baseline.
    unsafe {
        let [low, high] = from.cast::<[u64; 2]>().read_unaligned();
        asm!(
            "movnti [{out}], {low}",
            "movnti [{out} + 8], {high}",
            out = in(reg) out,
            low = in(reg) low,
            high = in(reg) high,
            options(nostack, preserves_flags),
        );
        out.add(16)
    }
}

/// Copies complete lines with non-temporal stores.
///
/// # Safety
/// `len_bytes` is a multiple of 64; `out` is aligned to 16 bytes and writable for that length; `from` is readable.
#[inline(always)]
pub(super) unsafe fn put_lines(out: *mut u8, from: *const u8, len_bytes: usize) {
    for sixteen in (0..len_bytes).step_by(16) {
        // SAFETY: the caller's promise.
        unsafe { put16(out.add(sixteen), from.add(sixteen)) };
    }
}

/// Implements [`super::match4`], a word at a time.
///
/// # Safety
/// As for [`super::match4`].
#[inline(always)]
pub(super) unsafe fn match4_at_once(words: *const u64, word: u64) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { super::match4_scalar(words, word) }
}

/// Implements [`super::count_below`] for groups of four, a word at a time.
///
/// # Safety
/// None: it is unsafe only because the vector variant is.
#[inline(always)]
pub(super) unsafe fn count_fours_below(fours: &[[AtomicU64; 4]], word: u64) -> usize {
    super::count_below_scalar(fours.as_flattened(), word)
}

/// Implements [`super::take_pairs`], a word at a time.
///
/// # Safety
/// `count` pairs are readable at `from`, and writable at `into`, which only the caller uses.
#[inline(always)]
pub(super) unsafe fn take_pairs_at_once(from: *const [AtomicU64; 2], into: *mut [MaybeUninit<u64>; 2], count: usize) {
    // SAFETY: the caller's promise.
    let (from, into) = unsafe { (slice::from_raw_parts(from, count), slice::from_raw_parts_mut(into, count)) };
    super::super::take_pairs_scalar(from, into);
}

/// Implements [`super::count_below`] for 32 words.
///
/// # Safety
/// As for [`count_fours_below`].
#[inline(always)]
pub(super) unsafe fn count_below_32(words: &[AtomicU64; 32], word: u64) -> usize {
    super::count_below_scalar(words, word)
}

/// Implements [`super::count_below`] for eight words.
///
/// # Safety
/// As for [`count_fours_below`].
#[inline(always)]
pub(super) unsafe fn count_below_8(words: &[AtomicU64; 8], word: u64) -> usize {
    super::count_below_scalar(words, word)
}

/// Implements [`super::equal_halves`], half by half.
#[inline(always)]
pub(super) fn equal_halves_at_once(words: [u64; 8], wanted: [u32; 4]) -> u32 {
    super::super::equal_halves_scalar(words, wanted)
}
