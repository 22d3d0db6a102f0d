//! The memory for copies: a ring of words, written from start to end and around again, by one thread at a time.
//!
//! ```text
//! start        at              free_until                end
//! | copies ... | free          | copies, the oldest first |
//! ```
//!
//! To make space for another copy, the thread processes the copies behind `free_until`, one after the other:
//! - A copy that no bucket names is dropped.
//! - A copy that was read since it was last considered is moved to `at`, within a bound on the work of one call.
//!   While less than 7/8 of the ring is live, any copy is moved.
//! - Any other copy is evicted.
//!
//! A copy of at most one line does not cross lines. If it would, a head of zero marks the remaining part of the
//! line as empty.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use word::Word;

use super::bucket::{Entry, LockedBucket};
use super::buckets::Buckets;
use super::copy::NewCopy;
use super::copy::head;
use super::counts::{Counted, Counts};
use super::key::LookupKey;
use super::lines::{LINE_WORDS, Lines};

/// The maximum number of copies that are moved to make space for one: some microseconds of work.
const MOVED_MAX: usize = 64;
/// While less than this part of a ring is live, all its live copies are moved together.
const SPARSE: (u64, u64) = (7, 8);
/// When this part of a ring is filled, readers begin to record their reads.
const NEARLY: (usize, usize) = (7, 8);

pub(super) struct Ring<W> {
    /// 1 while a thread fills the ring.
    lock: W,
    start: usize,
    end: usize,
    at: AtomicUsize,
    free_until: AtomicUsize,
    /// The total number of words of copies that buckets were made to name. The thread that fills the ring counts
    /// them.
    kept_words: AtomicU64,
    /// The total number of words of copies that buckets no longer name.
    lost_words: AtomicU64,
}

/// A ring that no other thread fills.
pub(super) struct Filling<'a, W: Word> {
    ring: &'a Ring<W>,
    lines: &'a Lines<W>,
    notes_reads: &'a AtomicBool,
    buckets: &'a Buckets<W>,
    counts: &'a Counts,
}

impl<W: Word> Ring<W> {
    pub(super) fn new(start: usize, words: usize) -> Ring<W> {
        let end = start + words;
        let count = || AtomicU64::new(0);
        Ring {
            lock: W::new(0),
            start,
            end,
            at: start.into(),
            free_until: end.into(),
            kept_words: count(),
            lost_words: count(),
        }
    }

    /// Locks the ring, unless another thread fills it.
    pub(super) fn fill<'a>(
        &'a self,
        lines: &'a Lines<W>,
        notes_reads: &'a AtomicBool,
        buckets: &'a Buckets<W>,
        counts: &'a Counts,
    ) -> Option<Filling<'a, W>> {
        let is_mine = self.lock.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        is_mine.then(|| Filling { ring: self, lines, notes_reads, buckets, counts })
    }

    /// Removes an entry of a locked bucket, which names a copy in this ring.
    pub(super) fn forget(&self, lines: &Lines<W>, bucket: &LockedBucket<'_, W>, i: usize, entry: Entry) {
        bucket.set(i, Entry::NONE);
        self.lost_words.fetch_add(head(lines, entry.place()).capacity_words() as u64, Release);
    }

    /// Returns the number of words of copies that buckets name.
    pub(super) fn live_words(&self) -> u64 {
        // A lost copy was kept before; loading in this order keeps the difference from becoming negative.
        let lost_words = self.lost_words.load(Acquire);
        self.kept_words.load(Relaxed).saturating_sub(lost_words)
    }

    /// Returns the approximate place of the next copy.
    #[inline(always)]
    pub(super) fn next_place(&self) -> usize {
        self.at.load(Relaxed)
    }

    /// Returns true once space is made by evicting copies.
    pub(super) fn is_wrapped(&self) -> bool {
        self.free_until.load(Relaxed) != self.end
    }

    /// Returns true if copies up to `at` leave little space before eviction begins. From then on readers record
    /// their reads: the copies that are read while the remaining part is filled are worth keeping.
    fn is_nearly_full(&self, at: usize) -> bool {
        at - self.start > (self.end - self.start) / NEARLY.1 * NEARLY.0
    }

    fn is_sparse(&self) -> bool {
        self.live_words() / SPARSE.0 < (self.end - self.start) as u64 / SPARSE.1
    }
}

/// Returns the place at which a copy of so many words begins, at `at` or later.
fn aligned(at: usize, words: usize) -> usize {
    let crosses = words <= LINE_WORDS && at % LINE_WORDS + words > LINE_WORDS;
    if crosses { at.next_multiple_of(LINE_WORDS) } else { at }
}

impl<W: Word> Filling<'_, W> {
    /// Writes a copy after making space for it. No bucket names it yet. Returns `None` if the ring is too small.
    pub(super) fn write(&self, key: LookupKey<'_>, copy: &NewCopy<'_>, words: usize) -> Option<usize> {
        let place = self.find_space(words)?;
        copy.write(self.lines, place, key, words);
        Some(place)
    }

    /// Records that a bucket names the copy that was written last.
    pub(super) fn keep(self, words: usize) {
        let kept_words = &self.ring.kept_words;
        kept_words.store(kept_words.load(Relaxed) + words as u64, Relaxed);
    }

    /// Frees the space of the copy that was written last, which no bucket will name.
    pub(super) fn deallocate(self, place: usize) {
        self.ring.at.store(place, Relaxed);
    }

    fn find_space(&self, words: usize) -> Option<usize> {
        let ring = self.ring;
        let (mut moves_left, mut wraps_left) = (MOVED_MAX, 2);
        loop {
            let free_until = ring.free_until.load(Relaxed);
            let place = aligned(ring.at.load(Relaxed), words);
            if place + words <= free_until {
                self.go_on(place, words);
                return Some(place);
            }
            if free_until == ring.end {
                wraps_left -= 1;
                if wraps_left == 0 {
                    return None;
                }
                self.wrap();
            } else {
                self.pass(&mut moves_left);
            }
        }
    }

    /// Reserves these words for the next copy.
    fn go_on(&self, place: usize, words: usize) {
        let at = self.ring.at.load(Relaxed);
        if at != place {
            self.empty(at);
        }
        self.ring.at.store(place + words, Relaxed);
        if self.ring.is_nearly_full(place + words) && !self.notes_reads.load(Relaxed) {
            self.notes_reads.store(true, Relaxed);
        }
    }

    /// Marks the line as empty from `place` on.
    fn empty(&self, place: usize) {
        self.lines.word(place + 1).store(0, Relaxed);
    }

    /// Starts again at the beginning of the ring.
    fn wrap(&self) {
        let mut at = self.ring.at.load(Relaxed);
        while at < self.ring.end {
            self.empty(at);
            at = (at + 1).next_multiple_of(LINE_WORDS);
        }
        self.ring.at.store(self.ring.start, Relaxed);
        self.ring.free_until.store(self.ring.start, Relaxed);
    }

    /// Processes the copy at `free_until`.
    fn pass(&self, moves_left: &mut usize) {
        let Filling { ring, lines, buckets, .. } = *self;
        let place = ring.free_until.load(Relaxed);
        let words = head(lines, place).capacity_words();
        if words == 0 {
            ring.free_until.store((place + 1).next_multiple_of(LINE_WORDS), Relaxed);
            return;
        }
        let signature = lines.word(place).load(Relaxed);
        // The bucket is locked even if no entry names the copy any more, so that a reader that still reads the copy
        // sees its bucket change.
        let bucket = buckets.lock(signature);
        ring.free_until.store(place + words, Relaxed);
        let Some((i, entry)) = bucket.entry_at(place) else { return };
        let to = aligned(ring.at.load(Relaxed), words);
        let is_wanted = bucket.take_read_lately(i) || ring.is_sparse();
        if is_wanted && *moves_left > 0 && to <= place && !entry.is_hidden() {
            *moves_left -= 1;
            let word = |i: usize| lines.word(i);
            (0..words).for_each(|i| word(to + i).store(word(place + i).load(Relaxed), Relaxed));
            bucket.set(i, Entry::new(signature, to));
            self.go_on(to, words);
            return;
        }
        ring.forget(lines, &bucket, i, entry);
        bucket.set_complete(false);
        self.counts.count(Counted::Evicted);
    }
}

impl<W: Word> Drop for Filling<'_, W> {
    fn drop(&mut self) {
        self.ring.lock.store(0, Release);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use crate::cached_table::{CachedTable, LIMIT_BYTES_MIN};
    use pmem_sim::SimDram;

    #[test]
    fn thread_leaves_taken_ring() {
        let table = CachedTable::new(LIMIT_BYTES_MIN, SimDram).unwrap();
        let fill = || table.copies.fill(&table.buckets, &table.counts, 1);
        let filling = fill().expect("nobody fills it");
        assert!(fill().is_none());
        assert!(fill().is_none(), "the first refusal unlocked the ring");
        drop(filling);
        assert!(fill().is_some());
    }
}
