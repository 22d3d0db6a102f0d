//! The leaf, in persistent memory.
//!
//! ```text
//! +0    fingerprints, a byte for each entry
//! +64   bitmap of the entries in use     +72  next leaf, or 0     +80  version and lock: void after a crash
//! +128  entries: key 16, position of the record 8
//! ```
//!
//! An entry is written while its bit is 0. Bit and fingerprint say together that it holds a key. Words change only
//! under the lock; readers check the version afterwards.

use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
use std::sync::atomic::Ordering;

use index::Position;
use pmem::{Backoff, LINE_BYTES, Medium, Offset};

use crate::key::Key;
use crate::tree::ComparisonCounter;
use crate::version::Version;

/// The most entries of a leaf: one line of fingerprints, one word of bits.
pub(super) const ENTRY_COUNT_MAX: u64 = 64;

const BITMAP: u64 = 64;
const NEXT: u64 = 72;
const VERSION: u64 = 80;
const ENTRIES: u64 = 128;
const ENTRY_BYTES: u64 = 24;

/// Returns the length of a leaf of `entry_count` entries, in full lines.
pub(super) const fn leaf_bytes(entry_count: u64) -> u64 {
    (ENTRIES + entry_count * ENTRY_BYTES).next_multiple_of(LINE_BYTES)
}

/// A leaf.
#[derive(Debug)]
pub(super) struct Leaf<'a, M> {
    medium: &'a M,
    pub(super) at: Offset,
}

impl<M> Clone for Leaf<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Leaf<'_, M> {}

impl<'a, M: Medium> Leaf<'a, M> {
    #[inline(always)]
    pub(super) fn new(medium: &'a M, at: Offset) -> Leaf<'a, M> {
        Leaf { medium, at }
    }

    #[inline(always)]
    fn load(self, at: u64) -> u64 {
        self.medium.load(self.at.plus(at), Ordering::Acquire)
    }

    #[inline(always)]
    fn store(self, at: u64, word: u64) {
        self.medium.store(self.at.plus(at), word, Ordering::Release);
    }

    fn store_flushed(self, at: u64, word: u64) {
        self.store(at, word);
        self.medium.flush(self.at.plus(at).span(8));
    }

    /// Prefetches the fingerprints and the bitmap.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        self.medium.prefetch_line(self.at);
        self.medium.prefetch_line(self.at.plus(BITMAP));
    }

    /// Prefetches the entries, for a scan.
    pub(super) fn prefetch_entries(self, entry_count: u64) {
        for at in (0..leaf_bytes(entry_count)).step_by(LINE_BYTES as usize) {
            self.medium.prefetch_line(self.at.plus(at));
        }
    }

    #[inline(always)]
    pub(super) fn version(self) -> Version {
        Version(self.load(VERSION))
    }

    /// Returns true if nothing has changed since the version was noted.
    #[inline(always)]
    pub(super) fn is_at(self, version: Version) -> bool {
        self.version() == version
    }

    /// Sets the version of a leaf that no other thread uses. It is never flushed on purpose.
    pub(super) fn set_version(self, version: Version) {
        self.store(VERSION, version.0);
    }

    /// Locks the leaf from the version that was noted.
    #[inline(always)]
    pub(super) fn try_lock(self, version: Version) -> bool {
        self.medium.compare_exchange(self.at.plus(VERSION), version.0, version.locked().0).is_ok()
    }

    #[inline(always)]
    pub(super) fn unlock(self) {
        self.set_version(self.version().unlocked());
    }

    /// Unlocks a leaf that is not part of the tree any more.
    pub(super) fn unlock_obsolete(self) {
        self.set_version(self.version().obsolete());
    }

    /// Locks the leaf unless it is locked.
    pub(super) fn try_lock_now(self) -> bool {
        let version = self.version();
        version.is_stable() && self.try_lock(version)
    }

    #[inline(always)]
    pub(super) fn bitmap(self) -> u64 {
        self.load(BITMAP)
    }

    /// Changes the bitmap and flushes it.
    #[inline(always)]
    pub(super) fn set_bitmap(self, bitmap: u64) {
        self.store_flushed(BITMAP, bitmap);
    }

    #[inline(always)]
    pub(super) fn next(self) -> Offset {
        Offset(self.load(NEXT))
    }

    /// Changes the next leaf and flushes the word.
    pub(super) fn set_next(self, next: Offset) {
        self.store_flushed(NEXT, next.0);
    }

    /// Returns the entries in use whose fingerprint is `fingerprint`, a bit for each.
    #[inline(always)]
    fn matches(self, fingerprint: u8) -> u64 {
        let [low, high] = [self.medium.load4(self.at), self.medium.load4(self.at.plus(32))];
        let sixteen = |words: &[u64]| same_bytes([words[0], words[1]], fingerprint);
        let hits =
            sixteen(&low[..2]) | sixteen(&low[2..]) << 16 | sixteen(&high[..2]) << 32 | sixteen(&high[2..]) << 48;
        hits & self.bitmap()
    }

    /// Returns the entry of `key`, if there is one.
    #[inline(always)]
    pub(super) fn find(self, key: Key, fingerprint: u8, comparisons: &impl ComparisonCounter) -> Option<u64> {
        let mut hits = self.matches(fingerprint);
        while hits != 0 {
            let entry = u64::from(hits.trailing_zeros());
            comparisons.compared();
            if self.key(entry) == key {
                return Some(entry);
            }
            hits &= hits - 1;
        }
        None
    }

    #[inline(always)]
    pub(super) fn key(self, entry: u64) -> Key {
        let at = ENTRIES + entry * ENTRY_BYTES;
        Key::of_words([self.load(at), self.load(at + 8)])
    }

    #[inline(always)]
    pub(super) fn position(self, entry: u64) -> Position {
        Position::from_word(self.load(ENTRIES + entry * ENTRY_BYTES + 16))
    }

    /// Calls `each` with the entries in use.
    pub(super) fn entries(self) -> impl Iterator<Item = u64> {
        let mut bits = self.bitmap();
        std::iter::from_fn(move || {
            let entry = (bits != 0).then(|| u64::from(bits.trailing_zeros()))?;
            bits &= bits - 1;
            Some(entry)
        })
    }

    /// Writes a free entry and flushes it.
    #[inline(always)]
    pub(super) fn write_entry(self, entry: u64, key: Key, position: Position) {
        let at = ENTRIES + entry * ENTRY_BYTES;
        let [high, low] = key.words();
        self.store(at, high);
        self.store(at + 8, low);
        self.store(at + 16, position.word());
        self.medium.flush(self.at.plus(at).span(ENTRY_BYTES));
    }

    /// Writes a free entry's fingerprint and flushes it.
    #[inline(always)]
    pub(super) fn write_fingerprint(self, entry: u64, fingerprint: u8) {
        let (at, shift) = (entry & !7, 8 * (entry & 7));
        self.store_flushed(at, self.load(at) & !(0xFF << shift) | u64::from(fingerprint) << shift);
    }

    /// Makes an empty leaf of new memory, and flushes its head.
    pub(super) fn initialise(self, version: Version) {
        self.store(BITMAP, 0);
        self.store(NEXT, 0);
        self.set_version(version);
        self.medium.flush(self.at.span(ENTRIES));
    }

    /// Copies fingerprints and entries from a locked leaf, with a bitmap and the same next leaf, and flushes all.
    pub(super) fn copy_from(self, from: Leaf<'_, M>, bitmap: u64, entry_count: u64) {
        for at in (0..BITMAP).chain(ENTRIES..ENTRIES + entry_count * ENTRY_BYTES).step_by(8) {
            self.store(at, from.load(at));
        }
        self.store(BITMAP, bitmap);
        self.store(NEXT, from.next().0);
        self.medium.flush(self.at.span(leaf_bytes(entry_count)));
    }

    /// Waits until the leaf is not locked, and returns its version.
    pub(super) fn settled_version(self) -> Version {
        let mut backoff = Backoff::short();
        loop {
            let version = self.version();
            if !version.is_locked() {
                return version;
            }
            backoff.relax();
        }
    }
}

/// Returns the mask of the 16 bytes of `words` that equal `byte`.
#[inline(always)]
fn same_bytes(words: [u64; 2], byte: u8) -> u64 {
    // SAFETY: every x86-64 processor has SSE2.
    let mask = unsafe {
        let bytes = _mm_set_epi64x(words[1] as i64, words[0] as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8)))
    };
    u64::from(mask as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_found() {
        let words = [u64::from_le_bytes(*b"abcabcaa"), u64::from_le_bytes(*b"........")];
        assert_eq!((same_bytes(words, b'a'), same_bytes(words, b'.')), (0b1100_1001, 0xFF00));
        assert_eq!(same_bytes(words, b'x'), 0);
    }
}
