//! When the words are durable that readers meet FRESH: where the log was when each was published.
//!
//! A word's place here is that of its item, so a copy of the entry has the same. Items share places, of which there are few:
//! each holds the latest position of its items, so it may say later than is so, and never earlier. What was published before
//! the log was opened is durable, and position 0.
//!
//! # Order
//! A place is set under the buffer's lock, before the word is stored (Release). Who has loaded the word (Acquire) finds the
//! word's position, or a later one of the place, and that one lies in the log already.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::POSITION_OFFSET_BITS;

/// As many as words are in flight at once, many times over, and in the processor's second-level cache.
const PLACE_COUNT_LOG2: u32 = 13;

/// Positions, by item.
#[derive(Debug)]
pub(crate) struct Published(Box<[AtomicU64]>);

impl Published {
    pub(crate) fn new() -> Published {
        Published((0..1 << PLACE_COUNT_LOG2).map(|_| AtomicU64::new(0)).collect())
    }

    /// The entry of `word` is in the log before `position`. Positions ascend from call to call.
    #[inline(always)]
    pub(crate) fn note(&self, word: u64, position: u64) {
        self.place(word).store(position, Ordering::Relaxed);
    }

    /// Where the log had `word`, which the caller has loaded, or a later position.
    #[inline(always)]
    pub(crate) fn position(&self, word: u64) -> u64 {
        self.place(word).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn place(&self, word: u64) -> &AtomicU64 {
        // Fibonacci hashing: items are neighbours, and multiples of 16.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let item = word & ((1 << POSITION_OFFSET_BITS) - 1);
        &self.0[(item.wrapping_mul(GOLDEN) >> (u64::BITS - PLACE_COUNT_LOG2)) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_with_any_marks_and_never_earlier_than_it_was_published() {
        let published = Published::new();
        let words: Vec<u64> = (1..100_000).map(|i| i * 16).collect();
        for (&word, position) in words.iter().zip(1..) {
            published.note(word, position);
            assert_eq!(published.position(word | 1 << POSITION_OFFSET_BITS), position);
        }
        assert!(words.iter().zip(1..).all(|(&word, position)| published.position(word) >= position));
        let same = words.iter().zip(1..).filter(|&(&word, position)| published.position(word) == position);
        assert_eq!(same.count(), 1 << PLACE_COUNT_LOG2, "every place is used");
    }
}
