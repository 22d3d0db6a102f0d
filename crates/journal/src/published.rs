//! A table with, for each word that readers may find FRESH, the log's position when the word was published. The
//! word is durable once the log is durable up to that position.
//!
//! A word's place in the table is derived from the key that the engine passes. There are few places, and keys share
//! them: each place holds the latest position of its keys. So a position may be later than necessary, and never
//! earlier. Words published before the log was opened are durable, with position 0.
//!
//! # Order
//! A place is set under the buffer's lock, before the word is stored (Release). A reader that has loaded the word
//! (Acquire) finds the word's position, or a later one of the place, and that position is already in the log.

use std::sync::atomic::{AtomicU64, Ordering};

use word::Word;

#[cfg(test)]
mod tests;

/// Many times the number of words in flight at the same time, and small enough for the processor's second-level
/// cache.
const PLACE_COUNT_LOG2: u32 = 13;

/// Positions, by key.
#[derive(Debug)]
pub(crate) struct Published<W = AtomicU64, const COUNT_LOG2: u32 = PLACE_COUNT_LOG2>(Box<[W]>);

impl<W: Word, const COUNT_LOG2: u32> Published<W, COUNT_LOG2> {
    pub(crate) fn new() -> Self {
        Published((0..1 << COUNT_LOG2).map(|_| W::new(0)).collect())
    }

    /// Notes that the log contains the word published as `key` before `position`. Positions ascend from call to
    /// call.
    #[inline(always)]
    pub(crate) fn note(&self, key: u64, position: u64) {
        self.place(key).store(position, Ordering::Relaxed);
    }

    /// Returns the position noted for `key`, whose word the caller has loaded, or a later position.
    #[inline(always)]
    pub(crate) fn position(&self, key: u64) -> u64 {
        self.place(key).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn place(&self, key: u64) -> &W {
        // Fibonacci hashing: keys are adjacent, and multiples of 8 or 16.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        &self.0[(key.wrapping_mul(GOLDEN) >> (u64::BITS - COUNT_LOG2)) as usize]
    }
}
