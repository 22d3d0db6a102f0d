//! Processor-specific code: write-back, fences, non-temporal stores, and a few small helpers.
//!
//! Each file has the same functions. Features beyond the architecture's baseline are detected once, at run time; a
//! build for the baseline is as fast as a native one.

#[cfg(miri)]
#[path = "interpreted.rs"]
mod imp;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[path = "x86_64.rs"]
mod imp;

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[path = "aarch64.rs"]
mod imp;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("unsupported processor: hikv has write-back instructions for x86-64 and AArch64 only");

pub use imp::{
    count_below, crc32c, crc32c_in_line, crc32c_of_many, equal_halves, evict, fence, flush_instruction, match4,
    prefetch, prefetch_to_write, stream, take_pairs, timestamp, timestamp_in_order, write_back,
};

#[cfg(any(test, miri, not(target_feature = "sse2")))]
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::LINE_BYTES;

/// Writes the concatenation of `parts` through the cache, padded with zeros to a multiple of 16 bytes, and starts
/// its write-back.
///
/// # Safety
/// `target` is writable for the padded length, and no other thread uses those bytes.
#[inline]
pub unsafe fn write_through(target: *mut u8, parts: &[&[u8]]) {
    let mut len_bytes = 0;
    for part in parts {
        // SAFETY: the caller's target is long enough for all parts.
        unsafe { target.add(len_bytes).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
        len_bytes += part.len();
    }
    let padded_bytes = len_bytes.next_multiple_of(16);
    // SAFETY: as above, for the padding.
    unsafe { target.add(len_bytes).write_bytes(0, padded_bytes - len_bytes) };
    let mut at = 0;
    while at < padded_bytes {
        // SAFETY: a byte of the target: the first one in its line.
        unsafe { write_back(target.add(at)) };
        at += LINE_BYTES as usize - (target as usize + at) % LINE_BYTES as usize;
    }
}

/// Implements [`match4`] by four atomic loads, for any processor.
///
/// # Safety
/// As for [`match4`].
#[inline(always)]
pub(crate) unsafe fn match4_scalar(words: *const u64, word: u64) -> u32 {
    let hit = |i: usize| {
        // SAFETY: the caller promises four aligned words that may be accessed as atomics.
        let found = unsafe { AtomicU64::from_ptr(words.add(i).cast_mut()) }.load(Ordering::Relaxed);
        u32::from(found == word) << i
    };
    hit(0) | hit(1) | hit(2) | hit(3)
}

/// Implements [`count_below`] by atomic loads, for any processor.
#[inline(always)]
pub(crate) fn count_below_scalar(words: &[AtomicU64], word: u64) -> usize {
    words.iter().map(|other| usize::from(other.load(Ordering::Relaxed) < word)).sum()
}

/// Implements [`equal_halves`] half by half, for processors without vector registers of that width.
#[cfg(any(test, miri, not(target_feature = "sse2")))]
#[inline(always)]
pub(crate) fn equal_halves_scalar(words: [u64; 8], wanted: [u32; 4]) -> u32 {
    let half = |i: usize| (words[i] >> (i / 4 * 32)) as u32;
    (0..8).fold(0, |hits, i| hits | u32::from(half(i) == wanted[i % 4]) << i)
}

/// Implements [`take_pairs`] by atomic loads, for processors without vector registers of that width.
#[cfg(any(test, miri, not(target_feature = "sse2")))]
#[inline(always)]
pub(crate) fn take_pairs_scalar(from: &[[AtomicU64; 2]], into: &mut [[MaybeUninit<u64>; 2]]) {
    for (into, from) in into.as_flattened_mut().iter_mut().zip(from.as_flattened()) {
        into.write(from.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Aligned<T>(T);

    #[test]
    fn match4_finds_every_combination() {
        for mask in 0..16u32 {
            let mut words =
                Aligned::<[u64; 4]>(core::array::from_fn(|i| if mask >> i & 1 == 1 { 7 } else { 8 + i as u64 }));
            let words = words.0.as_mut_ptr();
            // SAFETY: four aligned words of this thread.
            let (fast, scalar) = unsafe { (match4(words, 7), match4_scalar(words, 7)) };
            assert_eq!((fast, scalar), (mask, mask));
        }
    }

    #[test]
    fn equal_halves_are_found_in_place() {
        let wanted = [1, 2, 0xFFFF_FFFF, 4];
        for hits in 0..256u32 {
            let word = |i: usize| {
                let (right, other) = (u64::from(wanted[i % 4]), u64::from(!wanted[i % 4]));
                let half = if hits >> i & 1 == 1 { right } else { right ^ 1 << (i * 9 % 32) };
                if i < 4 { half | other << 32 } else { half << 32 | other }
            };
            let words = core::array::from_fn(word);
            assert_eq!((equal_halves(words, wanted), equal_halves_scalar(words, wanted)), (hits, hits));
        }
    }

    #[test]
    fn words_below_are_counted() {
        const HIGH: u64 = 1 << 63;
        let words: [AtomicU64; 45] =
            core::array::from_fn(|i| AtomicU64::new([0, 1, HIGH - 1, HIGH, HIGH + 1, u64::MAX][i * 7 % 6]));
        for len in 0..words.len() {
            for word in [0, 1, 2, HIGH - 1, HIGH, HIGH + 1, u64::MAX] {
                let words = &words[words.len() - len..];
                assert_eq!(count_below(words, word), count_below_scalar(words, word), "{word} among {words:?}");
            }
        }
    }

    type Take = fn(&[[AtomicU64; 2]], &mut [[MaybeUninit<u64>; 2]]);
    const TAKE: [Take; 2] = [take_pairs, take_pairs_scalar];

    #[test]
    fn pairs_end_at_the_shorter_input() {
        let from: [[AtomicU64; 2]; 21] =
            core::array::from_fn(|i| [2 * i, 2 * i + 1].map(|word| AtomicU64::new(word as u64)));
        let lengths = [(0, 0), (1, 1), (3, 21), (4, 4), (5, 5), (8, 9), (21, 21), (21, 6)];
        for ((taken, capacity), take) in lengths.into_iter().flat_map(|len| [(len, TAKE[0]), (len, TAKE[1])]) {
            let mut into = [[MaybeUninit::new(u64::MAX); 2]; 21];
            take(&from[..taken], &mut into[..capacity]);
            for (i, word) in into.as_flattened().iter().enumerate() {
                let expected = if i < 2 * taken.min(capacity) { i as u64 } else { u64::MAX };
                // SAFETY: each word was written to above.
                assert_eq!(unsafe { word.assume_init() }, expected);
            }
        }
    }

    #[test]
    fn both_ways_write_padded_parts() {
        let source: [u8; 700] = core::array::from_fn(|i| i as u8 | 1);
        for cuts in
            [[0, 0], [1, 2], [16, 32], [15, 90], [3, 200], [200, 200], [64, 128], [16, 512], [7, 509], [20, 600]]
        {
            for end in [cuts[1], cuts[1].max(200), 497, 512, 513, 700].into_iter().filter(|&end| end >= cuts[1]) {
                let mut target = Aligned([0xEEu8; 768]);
                let parts = [&source[..cuts[0]], &source[cuts[0]..cuts[1]], &source[cuts[1]..end]];
                let [two, one] = [[parts[0], &source[cuts[0]..end]], [&source[..end], &[]]];
                let ways = [stream, write_through].into_iter();
                let ways = ways.flat_map(|write| [&parts[..], &two, &one, &one[..1]].map(|parts| (write, parts)));
                for (write, parts) in ways {
                    target.0.fill(0xEE);
                    // SAFETY: the target belongs to this thread, is aligned, and is longer than any rounded length.
                    unsafe { write(target.0.as_mut_ptr(), parts) };
                    fence();
                    let padded = end.next_multiple_of(16);
                    assert_eq!(target.0[..end], source[..end]);
                    assert!(target.0[end..padded].iter().all(|&byte| byte == 0));
                    assert!(target.0[padded..].iter().all(|&byte| byte == 0xEE));
                }
            }
        }
    }

    #[test]
    fn the_instructions_run_here() {
        let line = Aligned([1u8; 64]);
        prefetch(line.0.as_ptr());
        prefetch_to_write(line.0.as_ptr());
        // SAFETY: the line belongs to this thread.
        unsafe { write_back(line.0.as_ptr()) };
        fence();
        assert!(!flush_instruction().is_empty());
        let before = timestamp();
        assert!(timestamp() >= before);
    }
}
