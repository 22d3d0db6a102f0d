//! x86-64: CLWB, CLFLUSHOPT or CLFLUSH; SFENCE; MOVNTDQ; SSE4.2's CRC32, VPCLMULQDQ for long parts; AVX's compare.

#[path = "x86_64_checksum.rs"]
mod checksum;
// Kernels and firmware are built without vector registers.
#[cfg(target_feature = "sse2")]
#[path = "x86_64_vectors.rs"]
mod registers;
#[cfg(not(target_feature = "sse2"))]
#[path = "x86_64_words.rs"]
mod registers;
#[cfg(all(test, target_feature = "sse2"))]
#[path = "x86_64_words.rs"]
mod words;

use core::arch::asm;
use core::arch::x86_64::{
    __cpuid, __cpuid_count, _MM_HINT_T0, _mm_clflush, _mm_lfence, _mm_prefetch, _mm_sfence, _rdtsc, _xgetbv,
};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{count_below_scalar, match4_scalar};
pub use checksum::{crc32c, crc32c_in_line, crc32c_of_many};
use registers::{
    count_below_8, count_below_32, count_fours_below, equal_halves_at_once, match4_at_once, put_lines, put16,
    take_pairs_at_once,
};

const DETECTED: u32 = 1;
const CLWB: u32 = 2;
const CLFLUSHOPT: u32 = 4;
const CRC32: u32 = 8;
const AVX: u32 = 16;
const AVX2: u32 = 32;
/// The features for folding lines (`x86_64_folds.rs`).
const FOLDS: u32 = 64;
/// The features for comparing eight words with one instruction.
const EIGHTS: u32 = 128;

/// The processor's features, once they have been detected.
static FEATURES: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
fn has(feature: u32) -> bool {
    let known = FEATURES.load(Ordering::Relaxed);
    (if known == 0 { detect() } else { known }) & feature != 0
}

/// Returns true if the feature is known to exist, with one test instead of the two of [`has`].
#[inline(always)]
fn is_known(feature: u32) -> bool {
    FEATURES.load(Ordering::Relaxed) & feature != 0
}

#[cold]
fn detect() -> u32 {
    const OSXSAVE: u32 = 1 << 27;
    const XMM_AND_YMM: u64 = 0b110;
    const ZMM: u64 = 0b1110_0110;
    const AVX512_F_DQ_AND_VL: u32 = 1 << 16 | 1 << 17 | 1 << 31;
    const AVX512_F_AND_BW: u32 = 1 << 16 | 1 << 30;
    const VPCLMULQDQ: u32 = 1 << 10;
    const POPCNT: u32 = 1 << 23;
    let basic = __cpuid(1).ecx;
    let seventh = (__cpuid(0).eax >= 7).then(|| __cpuid_count(7, 0));
    let (extended, further) = seventh.map_or((0, 0), |leaf| (leaf.ebx, leaf.ecx));
    // SAFETY: XGETBV exists where OSXSAVE is reported.
    let kept = if basic & OSXSAVE != 0 { unsafe { _xgetbv(0) } } else { 0 };
    let keeps_ymm = kept & XMM_AND_YMM == XMM_AND_YMM;
    let folds = extended & AVX512_F_DQ_AND_VL == AVX512_F_DQ_AND_VL && further & VPCLMULQDQ != 0 && kept & ZMM == ZMM;
    let eights = extended & AVX512_F_AND_BW == AVX512_F_AND_BW && basic & POPCNT != 0 && kept & ZMM == ZMM;
    let mut found = DETECTED;
    for (present, feature) in [
        (extended >> 24 & 1 == 1, CLWB),
        (extended >> 23 & 1 == 1, CLFLUSHOPT),
        (basic >> 20 & 1 == 1, CRC32),
        (basic >> 28 & 1 == 1 && keeps_ymm, AVX),
        (extended >> 5 & 1 == 1 && keeps_ymm, AVX2),
        (cfg!(target_feature = "sse2") && folds && basic >> 20 & 1 == 1, FOLDS),
        (cfg!(target_feature = "sse2") && eights, EIGHTS),
    ] {
        if present {
            found |= feature;
        }
    }
    FEATURES.store(found, Ordering::Relaxed);
    found
}

/// Returns the best write-back instruction of this processor, for statistics.
#[must_use]
pub fn flush_instruction() -> &'static str {
    if has(CLWB) {
        "clwb"
    } else if has(CLFLUSHOPT) {
        "clflushopt"
    } else {
        "clflush"
    }
}

/// Starts the write-back of the line that holds `byte`.
///
/// # Safety
/// `byte` is a readable address.
#[inline(always)]
pub unsafe fn write_back(byte: *const u8) {
    if is_known(CLWB) {
        // SAFETY: a write-back changes no value, and CLWB exists.
        unsafe { asm!("clwb [{}]", in(reg) byte, options(nostack, preserves_flags)) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { write_back_otherwise(byte) }
    }
}

/// Like [`write_back`], for a processor without CLWB, or before detection.
///
/// # Safety
/// As for [`write_back`].
#[cold]
#[inline(never)]
unsafe fn write_back_otherwise(byte: *const u8) {
    // SAFETY: a write-back changes no value; CLWB and CLFLUSHOPT are executed only where they exist.
    unsafe {
        if has(CLWB) {
            asm!("clwb [{}]", in(reg) byte, options(nostack, preserves_flags));
        } else if has(CLFLUSHOPT) {
            asm!("clflushopt [{}]", in(reg) byte, options(nostack, preserves_flags));
        } else {
            _mm_clflush(byte);
        }
    }
}

/// Starts the write-back of the line that holds `byte`, and removes it from every cache. For measurements.
///
/// # Safety
/// `byte` is a readable address.
#[inline]
pub unsafe fn evict(byte: *const u8) {
    // SAFETY: CLFLUSH is part of the baseline and changes no value.
    unsafe { _mm_clflush(byte) }
}

/// Orders lines that were written back, and non-temporal stores: they are durable before any later store.
#[inline(always)]
pub fn fence() {
    // SAFETY: SFENCE is part of the baseline and touches no memory.
    unsafe { _mm_sfence() }
}

/// Writes the concatenation of `parts` with non-temporal stores, padded with zeros to a multiple of 16 bytes.
///
/// # Safety
/// `target` is 16-byte aligned and writable for the padded length, and no other thread uses those bytes. Other
/// threads see them only after [`fence`].
#[inline(always)]
pub unsafe fn stream(target: *mut u8, parts: &[&[u8]]) {
    match parts {
        // SAFETY: the caller's promise.
        [whole] | [whole, []] => unsafe { put_padded(target, whole) },
        // SAFETY: the caller's promise.
        [head, rest] if head.len() & 15 == 0 => unsafe { put_padded(put_all(target, head.as_ptr(), head.len()), rest) },
        // SAFETY: the caller's promise.
        [head, key, rest] if (head.len() | key.len()) & 15 == 0 => unsafe {
            let behind_head = put_all(target, head.as_ptr(), head.len());
            put_padded(put_all(behind_head, key.as_ptr(), key.len()), rest);
        },
        // SAFETY: the caller's promise.
        _ => unsafe { stream_any(target, parts) },
    }
}

/// Copies `len_bytes`, a multiple of 16, with non-temporal stores; returns the target of the next bytes.
///
/// # Safety
/// `out` is aligned to 16 bytes and writable for that length, and `from` readable.
#[inline(always)]
unsafe fn put_all(mut out: *mut u8, mut from: *const u8, len_bytes: usize) -> *mut u8 {
    // SAFETY: neither pointer goes beyond the length, which the caller guarantees.
    unsafe {
        let past = from.add(len_bytes);
        let lines_bytes = len_bytes & !63;
        if lines_bytes > 0 {
            put_lines(out, from, lines_bytes);
            (out, from) = (out.add(lines_bytes), from.add(lines_bytes));
        }
        while from < past {
            out = put16(out, from);
            from = from.add(16);
        }
    }
    out
}

/// Copies `bytes` with non-temporal stores, padded with zeros to a multiple of 16.
///
/// # Safety
/// `out` is aligned to 16 bytes and writable for the padded length.
#[inline(always)]
unsafe fn put_padded(out: *mut u8, bytes: &[u8]) {
    let tail_bytes = bytes.len() & 15;
    // SAFETY: the caller's promise.
    let out = unsafe { put_all(out, bytes.as_ptr(), bytes.len() - tail_bytes) };
    if tail_bytes == 0 {
        return;
    }
    let padded = match bytes.last_chunk::<16>() {
        // The tail is at the end of the last sixteen bytes, behind bytes that were already copied.
        Some(last) => (u128::from_le_bytes(*last) >> (8 * (16 - tail_bytes))).to_le_bytes(),
        None => {
            let mut padded = [0; 16];
            padded[..tail_bytes].copy_from_slice(bytes);
            padded
        }
    };
    // SAFETY: as above; these are the last sixteen of the padded length.
    unsafe { put16(out, padded.as_ptr()) };
}

/// Like [`stream`], for parts that begin and end anywhere.
///
/// # Safety
/// As for [`stream`].
#[inline(never)]
unsafe fn stream_any(target: *mut u8, parts: &[&[u8]]) {
    let mut out = target;
    let mut carry = [0u8; 16];
    let mut carried = 0;
    for part in parts {
        let mut rest = *part;
        if carried > 0 {
            let taken = rest.len().min(16 - carried);
            carry[carried..carried + taken].copy_from_slice(&rest[..taken]);
            carried += taken;
            rest = &rest[taken..];
            if carried < 16 {
                continue;
            }
            // SAFETY: the caller's target is as long as the padded length, of which these are the next 16 bytes.
            out = unsafe { put16(out, carry.as_ptr()) };
        }
        let (whole, tail) = rest.split_at(rest.len() & !15);
        // SAFETY: as above, for the next blocks of sixteen.
        out = unsafe { put_all(out, whole.as_ptr(), whole.len()) };
        carry[..tail.len()].copy_from_slice(tail);
        carried = tail.len();
    }
    if carried > 0 {
        carry[carried..].fill(0);
        // SAFETY: as above; this is the padding.
        unsafe { put16(out, carry.as_ptr()) };
    }
}

/// Prefetches the line of `byte`, which may be any address.
#[inline(always)]
pub fn prefetch(byte: *const u8) {
    // SAFETY: a prefetch never faults and changes no value.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(byte.cast()) }
}

/// Like [`prefetch`], for a line that is about to be written.
#[inline(always)]
pub fn prefetch_to_write(byte: *const u8) {
    // SAFETY: a prefetch never faults and changes no value; processors without this instruction ignore it.
    unsafe { asm!("prefetchw [{}]", in(reg) byte, options(nostack, preserves_flags, readonly)) }
}

/// Returns the mask of the words that equal `word`: bit i for word i. Each is loaded atomically, in no given order.
///
/// # Safety
/// `words` points to four words, aligned to 32 bytes, accessible as [`AtomicU64`]s: its provenance allows stores.
#[inline(always)]
pub unsafe fn match4(words: *const u64, word: u64) -> u32 {
    if !is_known(AVX) {
        // SAFETY: the caller's promise.
        return unsafe { match4_otherwise(words, word) };
    }
    // SAFETY: AVX exists (just checked), and the caller's promise.
    unsafe { match4_at_once(words, word) }
}

/// Like [`match4`], for a processor without AVX, or before detection.
///
/// # Safety
/// As for [`match4`].
#[cold]
#[inline(never)]
unsafe fn match4_otherwise(words: *const u64, word: u64) -> u32 {
    // SAFETY: the caller's promise; AVX is used only if it exists.
    unsafe { if has(AVX) { match4_at_once(words, word) } else { match4_scalar(words, word) } }
}

/// Returns a mask: bit i is set if the low half of word i (i < 4) or its high half (i >= 4) equals `wanted[i % 4]`.
#[inline(always)]
pub fn equal_halves(words: [u64; 8], wanted: [u32; 4]) -> u32 {
    equal_halves_at_once(words, wanted)
}

/// Returns the number of `words` that are below `word`. Each is loaded atomically, in no given order.
#[inline(always)]
pub fn count_below(words: &[AtomicU64], word: u64) -> usize {
    if has(EIGHTS) {
        let (many, rest) = words.as_chunks();
        let (eights, rest) = rest.as_chunks();
        // SAFETY: the required features exist (just checked).
        let many = many.iter().map(|many| unsafe { count_below_32(many, word) }).sum::<usize>();
        // SAFETY: as above.
        let eights = eights.iter().map(|eight| unsafe { count_below_8(eight, word) }).sum::<usize>();
        return many + eights + count_below_scalar(rest, word);
    }
    let (fours, rest) = words.as_chunks::<4>();
    if fours.is_empty() || !has(AVX2) {
        return count_below_scalar(words, word);
    }
    // SAFETY: AVX2 exists (just checked), and there is at least one group of four.
    unsafe { count_fours_below(fours, word) + count_below_scalar(rest, word) }
}

/// Loads words that other threads may store to, each atomically, in no given order, up to the shorter length.
#[inline(always)]
pub fn take_pairs(from: &[[AtomicU64; 2]], into: &mut [[MaybeUninit<u64>; 2]]) {
    let count = from.len().min(into.len());
    // SAFETY: `count` pairs are readable, and `count` pairs writable, which only the caller uses.
    unsafe { take_pairs_at_once(from.as_ptr(), into.as_mut_ptr(), count) };
}

/// Returns the processor's time-stamp counter: constant rate, not serialising.
#[inline(always)]
pub fn timestamp() -> u64 {
    // SAFETY: RDTSC is part of the baseline.
    unsafe { _rdtsc() }
}

/// Like [`timestamp`], but after everything before it is done and before anything after it starts. For timing.
#[inline(always)]
pub fn timestamp_in_order() -> u64 {
    // SAFETY: LFENCE and RDTSC are part of the baseline.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

#[cfg(all(test, target_feature = "sse2"))]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Aligned([u8; 16]);

    /// Runs the code for kernels and firmware here, because it can also run in user space.
    #[test]
    fn general_registers_do_what_vector_registers_do() {
        let source: [u8; 101] = core::array::from_fn(|i| (i * 7) as u8);
        for start in 0..source.len() - 16 {
            let mut lines = [Aligned([0; 16]), Aligned([0; 16]), Aligned([0; 16]), Aligned([0; 16])];
            if let Some(line) = source[start..].first_chunk::<64>() {
                // SAFETY: 64 aligned bytes of this thread, and as many of the source.
                unsafe { words::put_lines(lines.as_mut_ptr().cast(), line.as_ptr(), 64) };
                fence();
                assert!(lines.iter().flat_map(|sixteen| sixteen.0).eq(*line));
            }
            let mut target = Aligned([0; 16]);
            // SAFETY: 16 aligned bytes of this thread, and 16 bytes of the source.
            let next = unsafe { words::put16(target.0.as_mut_ptr(), source[start..].as_ptr()) };
            fence();
            assert_eq!(
                (target.0.as_slice(), next.cast_const()),
                (&source[start..start + 16], target.0.as_ptr_range().end)
            );
        }
        let mut words = [7u64, 8, 7, 9];
        // SAFETY: four aligned words of this thread.
        assert_eq!(unsafe { words::match4_at_once(words.as_mut_ptr(), 7) }, 0b0101);
        assert_eq!(words::equal_halves_at_once([7, 8, 9, 7, 1, 8 << 32, 3, 4], [7, 8, 5, 5]), 0b10_0011);
        let fours = [7u64, 8, 7, 9].map(AtomicU64::new);
        // SAFETY: this variant needs no feature.
        assert_eq!(unsafe { words::count_fours_below(&[fours], 8) }, 2);
        let many: [_; 32] = core::array::from_fn(|number| AtomicU64::new(number as u64));
        let eight: &[_; 8] = many.first_chunk().expect("there are more");
        // SAFETY: as above.
        assert_eq!(unsafe { (words::count_below_32(&many, 20), words::count_below_8(eight, 3)) }, (20, 3));
        let pairs: [[AtomicU64; 2]; 5] =
            core::array::from_fn(|i| [0, 1].map(|half| AtomicU64::new(2 * i as u64 + half)));
        let mut taken = [[MaybeUninit::new(0); 2]; 5];
        // SAFETY: both have five pairs.
        unsafe { words::take_pairs_at_once(pairs.as_ptr(), taken.as_mut_ptr(), pairs.len()) };
        // SAFETY: they were initialised from the beginning.
        assert!(taken.as_flattened().iter().map(|word| unsafe { word.assume_init() }).eq(0..10));
    }
}
