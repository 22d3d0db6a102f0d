//! Bulk copies of a ring's words.
//!
//! Ordering comes from the position, which is stored after all words and loaded before them. Words are unordered among
//! each other. So they are copied in pieces as wide as the processor's registers, and several lines of the other side's
//! cache are fetched in parallel. A load or store for each word would fill the processor's queue with a few lines.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use word::Word;

use super::WORD_BYTES;

/// A word of a ring.
pub(crate) trait Words: Word {
    /// Stores bytes to words, up to the shorter of both.
    fn store_all(words: &[Self], from: &[[u8; WORD_BYTES]]) {
        words.iter().zip(from).for_each(|(word, bytes)| word.store(u64::from_le_bytes(*bytes), Relaxed));
    }

    /// Loads words to bytes, up to the shorter of both.
    fn load_all(words: &[Self], to: &mut [[u8; WORD_BYTES]]) {
        words.iter().zip(to).for_each(|(word, bytes)| *bytes = word.load(Relaxed).to_le_bytes());
    }

    /// Prefetches words for a store.
    fn expect(_words: &[Self]) {}
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
impl Words for AtomicU64 {}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Words for AtomicU64 {
    fn store_all(words: &[AtomicU64], from: &[[u8; WORD_BYTES]]) {
        let count = words.len().min(from.len());
        // SAFETY: both have this length, and words may be stored through a shared reference.
        unsafe { x86_64::copy(from.as_ptr().cast(), words.as_ptr().cast_mut().cast(), count * WORD_BYTES) }
    }

    fn load_all(words: &[AtomicU64], to: &mut [[u8; WORD_BYTES]]) {
        let count = words.len().min(to.len());
        // SAFETY: both have this length; the words' bytes may change concurrently, as the function allows.
        unsafe { x86_64::copy(words.as_ptr().cast(), to.as_mut_ptr().cast(), count * WORD_BYTES) }
    }

    fn expect(words: &[AtomicU64]) {
        words.chunks(x86_64::LINE_BYTES / WORD_BYTES).for_each(|line| x86_64::expect(line.as_ptr().cast()));
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use std::arch::asm;

    pub(super) const LINE_BYTES: usize = 64;

    /// Copies bytes; the number is a multiple of eight.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for this length, and the two do not overlap. Other threads, and processes,
    /// may load and store the words of either concurrently: the instructions load and store each aligned word of eight
    /// bytes as relaxed atomics do.
    #[inline]
    pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len_bytes: usize) {
        let lines_bytes = len_bytes / LINE_BYTES * LINE_BYTES;
        // SAFETY: the indexes run from the negated lengths up to both ends; the caller guarantees all bytes in between.
        unsafe {
            asm!(
                "test {lines}, {lines}",
                "jz 3f",
                "2:",
                "movups {a}, [{from} + {lines}]",
                "movups {b}, [{from} + {lines} + 16]",
                "movups {c}, [{from} + {lines} + 32]",
                "movups {d}, [{from} + {lines} + 48]",
                "movups [{to} + {lines}], {a}",
                "movups [{to} + {lines} + 16], {b}",
                "movups [{to} + {lines} + 32], {c}",
                "movups [{to} + {lines} + 48], {d}",
                "add {lines}, 64",
                "jnz 2b",
                "3:",
                "test {rest}, {rest}",
                "jz 5f",
                "4:",
                "mov {word}, [{from}]",
                "mov [{to}], {word}",
                "add {from}, 8",
                "add {to}, 8",
                "sub {rest}, 8",
                "jnz 4b",
                "5:",
                from = inout(reg) from.add(lines_bytes) => _,
                to = inout(reg) to.add(lines_bytes) => _,
                lines = inout(reg) lines_bytes.wrapping_neg() => _,
                rest = inout(reg) len_bytes - lines_bytes => _,
                word = out(reg) _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack),
            );
        }
    }

    /// Prefetches a line for a store.
    #[inline]
    pub(super) fn expect(at: *const u8) {
        // SAFETY: the instruction reads and writes nothing, and ignores an invalid address; processors without it
        // execute a no-op instead.
        unsafe { asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) }
    }
}
