//! For each word that readers meet FRESH: the position of the log when the word was published, up to which the log must be durable.
//!
//! A word's place here follows from the key that the engine gives it. Keys share places, of which there are few: each holds
//! the latest position of its keys, so a place may say later than is so, and never earlier. What was published before the
//! log was opened is durable, and position 0.
//!
//! # Order
//! A place is set under the buffer's lock, before the word is stored (Release). A reader that has loaded the word (Acquire) finds
//! the word's position, or a later one of the place, and that one lies in the log already.

use std::sync::atomic::{AtomicU64, Ordering};

use word::Word;

#[cfg(test)]
mod tests;

/// As many as words are in flight at once, many times over, and in the processor's second-level cache.
const PLACE_COUNT_LOG2: u32 = 13;

/// Positions, by key.
#[derive(Debug)]
pub(crate) struct Published<W = AtomicU64, const COUNT_LOG2: u32 = PLACE_COUNT_LOG2>(Box<[W]>);

impl<W: Word, const COUNT_LOG2: u32> Published<W, COUNT_LOG2> {
    pub(crate) fn new() -> Self {
        Published((0..1 << COUNT_LOG2).map(|_| W::new(0)).collect())
    }

    /// What was published as `key` is in the log before `position`. Positions ascend from call to call.
    #[inline(always)]
    pub(crate) fn note(&self, key: u64, position: u64) {
        self.place(key).store(position, Ordering::Relaxed);
    }

    /// Where the log had what was published as `key`, and loaded by the caller; or a later position.
    #[inline(always)]
    pub(crate) fn position(&self, key: u64) -> u64 {
        self.place(key).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn place(&self, key: u64) -> &W {
        // Fibonacci hashing: keys are neighbours, and multiples of 8 or 16.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        &self.0[(key.wrapping_mul(GOLDEN) >> (u64::BITS - COUNT_LOG2)) as usize]
    }
}
