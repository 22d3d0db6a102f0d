//! x86-64: CLWB, CLFLUSHOPT or CLFLUSH; SFENCE; MOVNTDQ; SSE4.2's CRC32; AVX's compare.

use core::arch::asm;
use core::arch::x86_64::{
    __cpuid, __cpuid_count, __m128i, _MM_HINT_T0, _mm_clflush, _mm_crc32_u8, _mm_crc32_u64, _mm_lfence,
    _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128, _rdtsc, _xgetbv,
};
use core::sync::atomic::{AtomicU32, Ordering};

use super::match4_scalar;
use crate::checksum::crc32c_by_table;

const DETECTED: u32 = 1;
const CLWB: u32 = 2;
const CLFLUSHOPT: u32 = 4;
const CRC32: u32 = 8;
const AVX: u32 = 16;

/// The processor's features, once they have been detected.
static FEATURES: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
fn has(feature: u32) -> bool {
    let known = FEATURES.load(Ordering::Relaxed);
    (if known == 0 { detect() } else { known }) & feature != 0
}

#[cold]
fn detect() -> u32 {
    const OSXSAVE: u32 = 1 << 27;
    const XMM_AND_YMM: u64 = 0b110;
    let basic = __cpuid(1).ecx;
    let extended = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    // SAFETY: XGETBV exists where OSXSAVE is reported.
    let keeps_ymm = basic & OSXSAVE != 0 && unsafe { _xgetbv(0) } & XMM_AND_YMM == XMM_AND_YMM;
    let mut found = DETECTED;
    for (present, feature) in [
        (extended >> 24 & 1 == 1, CLWB),
        (extended >> 23 & 1 == 1, CLFLUSHOPT),
        (basic >> 20 & 1 == 1, CRC32),
        (basic >> 28 & 1 == 1 && keeps_ymm, AVX),
    ] {
        if present {
            found |= feature;
        }
    }
    FEATURES.store(found, Ordering::Relaxed);
    found
}

/// The write-back instruction that this processor offers, for stats.
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

/// What was written back, or stored past the cache, is durable before any later store.
#[inline(always)]
pub fn fence() {
    // SAFETY: SFENCE is part of the baseline and touches no memory.
    unsafe { _mm_sfence() }
}

/// Writes the concatenation of `parts` past the cache, padded with zeros to a multiple of 16 bytes.
///
/// # Safety
/// `target` is 16-byte aligned and writable for the padded length, and nobody else uses those bytes. They are visible
/// to other threads only after [`fence`].
#[inline]
pub unsafe fn stream(target: *mut u8, parts: &[&[u8]]) {
    let mut out = target.cast::<__m128i>();
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
            // SAFETY: the caller's target reaches as far as the padded length, of which these are the next 16 bytes.
            out = unsafe { put16(out, carry.as_ptr()) };
        }
        let mut chunks = rest.chunks_exact(16);
        for chunk in &mut chunks {
            // SAFETY: as above.
            out = unsafe { put16(out, chunk.as_ptr()) };
        }
        let tail = chunks.remainder();
        carry[..tail.len()].copy_from_slice(tail);
        carried = tail.len();
    }
    if carried > 0 {
        carry[carried..].fill(0);
        // SAFETY: as above; this is the padding.
        unsafe { put16(out, carry.as_ptr()) };
    }
}

/// # Safety
/// `out` is an aligned, writable 16 bytes and `from` a readable 16 bytes.
#[inline(always)]
unsafe fn put16(out: *mut __m128i, from: *const u8) -> *mut __m128i {
    // SAFETY: the caller's promise.
    unsafe {
        _mm_stream_si128(out, _mm_loadu_si128(from.cast()));
        out.add(1)
    }
}

/// Asks the cache for the line of `byte`, which may be any address at all.
#[inline(always)]
pub fn prefetch(byte: *const u8) {
    // SAFETY: a prefetch never faults and changes no value.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(byte.cast()) }
}

/// Which of four adjacent words equal `word`: bit i for word i. Each word is loaded atomically, in no given order.
///
/// # Safety
/// `words` points at four readable words, aligned to 32 bytes.
#[inline(always)]
pub unsafe fn match4(words: *const u64, word: u64) -> u32 {
    if !has(AVX) {
        // SAFETY: the caller's promise.
        return unsafe { match4_scalar(words, word) };
    }
    let mask: u32;
    // SAFETY: AVX exists (just checked) and the 32 bytes are readable and aligned. Other threads may store to them
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

/// The processor's time-stamp counter: constant rate, not serialising.
#[inline(always)]
pub fn timestamp() -> u64 {
    // SAFETY: RDTSC is part of the baseline.
    unsafe { _rdtsc() }
}

/// [`timestamp`], read when everything before it is done and before anything after it starts: for timing one operation.
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

/// Continues an inverted CRC-32C remainder over `bytes`.
#[inline(always)]
pub fn crc32c(remainder: u32, bytes: &[u8]) -> u32 {
    if has(CRC32) {
        // SAFETY: SSE4.2 exists (just checked).
        unsafe { crc32c_by_instruction(remainder, bytes) }
    } else {
        crc32c_by_table(remainder, bytes)
    }
}

#[target_feature(enable = "sse4.2")]
fn crc32c_by_instruction(remainder: u32, bytes: &[u8]) -> u32 {
    let (words, tail) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(u64::from(remainder), |crc, word| _mm_crc32_u64(crc, u64::from_le_bytes(*word)));
    tail.iter().fold(crc as u32, |crc, &byte| _mm_crc32_u8(crc, byte))
}
