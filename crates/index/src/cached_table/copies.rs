//! The memory for copies, in rings (`ring`), each of which one thread fills at a time.

use std::sync::atomic::AtomicBool;

use word::Word;

use super::bucket::{Bucket, Entry, LockedBucket};
use super::buckets::Buckets;
use super::copy::NewCopy;
use super::copy::{self, HEAD_WORDS, head};
use super::counts::Counts;
use super::key::LookupKey;
use super::lines::{LINE_WORDS, Lines, share};
use super::ring::{Filling, Ring};

/// A writer prefetches at most this number of words of a copy: a store waits for a line, and a core can load some
/// ten at once.
const ASKED_WORDS_MAX: usize = 8 * LINE_WORDS;

/// The copies of items.
pub(super) struct Copies<W> {
    lines: Lines<W>,
    rings: Box<[Ring<W>]>,
    /// True if readers record their reads, because some ring will soon evict copies. Until then no thread needs the
    /// records, and readers write to no line.
    pub(super) notes_reads: AtomicBool,
}

impl<W: Word> Copies<W> {
    pub(super) fn new(lines: Lines<W>, ring_count: usize) -> Copies<W> {
        let ring_words = lines.len() / ring_count * LINE_WORDS;
        let rings = (0..ring_count).map(|i| Ring::new(i * ring_words, ring_words)).collect();
        Copies { lines, rings, notes_reads: AtomicBool::new(false) }
    }

    #[inline(always)]
    pub(super) fn lines(&self) -> &Lines<W> {
        &self.lines
    }

    /// Returns the number of words of copies that buckets name.
    pub(super) fn live_words(&self) -> u64 {
        self.rings.iter().map(Ring::live_words).sum()
    }

    /// Returns the ring of a signature's copies.
    #[inline(always)]
    pub(super) fn ring_of(&self, signature: u64) -> &Ring<W> {
        &self.rings[share(signature, self.rings.len())]
    }

    /// Locks the ring of a signature, unless another thread fills it.
    pub(super) fn fill<'a>(
        &'a self,
        buckets: &'a Buckets<W>,
        counts: &'a Counts,
        signature: u64,
    ) -> Option<Filling<'a, W>> {
        self.ring_of(signature).fill(&self.lines, &self.notes_reads, buckets, counts)
    }

    /// Prefetches the beginning of the copy of a signature that the bucket names, and returns its place.
    #[inline(always)]
    pub(super) fn prefetch(&self, bucket: Bucket<'_, W>, signature: u64) -> Option<usize> {
        let hits = bucket.hits(signature);
        if hits == 0 {
            return None;
        }
        let place = bucket.entry(hits.trailing_zeros() as usize).place();
        self.lines.prefetch(place);
        Some(place)
    }

    /// Prefetches the remaining lines of the copy at `place`, whose beginning was prefetched.
    #[inline(always)]
    pub(super) fn prefetch_rest(&self, place: usize) {
        let words = head(&self.lines, place).words();
        (LINE_WORDS..words).step_by(LINE_WORDS).for_each(|word| self.lines.prefetch(place + word));
    }

    /// Prefetches as many lines at `place` as an item of `item_bytes` needs, within bounds.
    #[inline(always)]
    pub(super) fn prefetch_for_write(&self, place: usize, item_bytes: u64) {
        let words = (item_bytes / 8) as usize + HEAD_WORDS;
        let lines = (0..=words.min(ASKED_WORDS_MAX)).step_by(LINE_WORDS);
        lines.for_each(|word| self.lines.prefetch(place + word));
    }

    /// Returns the entry of the key's copy in the bucket, hidden or not. The caller holds the bucket's lock.
    pub(super) fn entry_of(&self, bucket: &LockedBucket<'_, W>, key: LookupKey<'_>) -> Option<(usize, Entry)> {
        let is_of = |entry: &Entry| entry.may_be(key.signature) && copy::met(&self.lines, entry.place(), key).is_some();
        bucket.entries().find(|(_, entry)| is_of(entry))
    }

    /// Removes an entry of a locked bucket, whose key has the signature.
    pub(super) fn forget(&self, bucket: &LockedBucket<'_, W>, i: usize, entry: Entry, signature: u64) {
        self.ring_of(signature).forget(&self.lines, bucket, i, entry);
    }

    /// Writes a copy over the key's old one, if it fits. The caller holds the bucket's lock.
    pub(super) fn write_over(&self, entry: Entry, key: LookupKey<'_>, copy: &NewCopy<'_>) -> bool {
        let capacity_words = head(&self.lines, entry.place()).capacity_words();
        let fits = copy.words(key.bytes).is_some_and(|words| words <= capacity_words);
        if fits {
            copy.write(&self.lines, entry.place(), key, capacity_words);
        }
        fits
    }
}
