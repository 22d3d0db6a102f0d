//! A copy of hot items in volatile memory (Rewo-Hash paper, section III: the cached table), for any engine whose reads are slower
//! than its host's memory.
//!
//! A key has one bucket of one line, by its signature alone: so nothing that happens to segments concerns it. The bucket says
//! where the item's copy lies in a ring (`ring`). The copy has the key, the value, the version and when the item expires. A
//! search reads the bucket's line, and for a hit the copy: two lines for an item of up to 32 bytes. Bucket and ring are all the
//! memory there is, and it is bounded.
//!
//! # Writing
//! | step | taken | readers of the key meanwhile |
//! |---|---|---|
//! | 1 [`CachedTable::begin`]: the copy is hidden, the write counted as *pending* | under the key's lock in the store, before 2 | go to the store |
//! | 2 the store publishes the new item | the store | the same |
//! | 3 it is known to be durable | the store, without a lock | the same |
//! | 4 [`Write::put`], [`Write::removed`] or [`Write::unchanged`]: the copy is written anew, taken away or shown again | without a lock | find it |
//!
//! Step 4 does so only if no other write of the bucket *began* since 1, and none is pending: the store may have published the other
//! one last, or may have cleared itself. Otherwise the copy goes, and a later read brings it back. In between another thread may write
//! the copy, if there are such (`signals`): then step 4 shows it.
//!
//! # Reading
//! A reader that misses, of a bucket without a pending write, notes how many have begun (a [`Permit`]). With the permit, the reader
//! brings in what it found in the store and knows to be durable, unless a write began meanwhile. So what is brought in is what the
//! store has.
//!
//! # Complete buckets
//! A bucket is complete while every key of the bucket that the store has is in it, but for pending writes: then a miss is an
//! absence. It stops to be when a copy is evicted, or not taken in. A new store's buckets are all complete, and so are those of
//! one that was cleared; those of an opened one once all of its items were offered ([`CachedTable::is_filled`]).
//!
//! # Words
//! A bucket's words are changed under the bit in the state that locks it; each unlocking raises the state's count, so a reader takes
//! no lock: it compares the state before and after, as with a copy's words, which are used anew only after the copy left the bucket.
//! What evicts is a second chance: a bit of each copy that was read since it was last looked at. (The exact LRU of the paper would
//! write on every read.) Readers set the bit where that is news, and only once a ring was nearly full.
//!
//! # Lock order
//! a store's locks -> a ring -> a bucket. A ring is only tried for. No lock is held but for some hundred instructions.

mod bucket;
pub mod canary;
mod copy;
mod counts;
mod lines;
mod pool;
mod read;
mod ring;
mod signals;
#[cfg(all(test, not(miri)))]
mod tests;
mod write;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use heap::HeapError;
use pmem::{Backoff, Dram, Medium, Waited};
use word::Word;

use bucket::Bucket;
use counts::Counts;
use lines::{LINE_WORDS, Line, Lines};
use pool::Wakes;
use ring::Ring;
use signals::Signals;

pub use copy::{Copied, NewCopy, VALUE_BYTES_MAX};
pub use pool::CopyThreads;
pub use read::{Lookup, Permit, Taken};
pub use write::{Clear, Write};

/// The least that a cached table can have.
pub const LIMIT_BYTES_MIN: u64 = 64 << 10;
/// Of its memory buckets have this part: a bucket and three lines, for three of the smallest items.
const BUCKET_SHARE: usize = 4;
/// Rings are filled by one thread at a time; none is smaller than this, many times the longest copy.
const RING_LINES_MIN: usize = (256 << 10) / 64;
const RING_COUNT_MAX: usize = 64;
/// A writer asks for so many words of a copy at the most: a store waits for a line, and a core asks for some ten at once.
const ASKED_WORDS_MAX: usize = 8 * LINE_WORDS;

/// A key, and its signature.
#[derive(Clone, Copy, Debug)]
pub struct LookupKey<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Their signature.
    pub signature: u64,
}

/// What became of searches, and what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Searches that found the key.
    pub hit_count: u64,
    /// Searches that knew it to be absent.
    pub absent_count: u64,
    /// Searches that had to look into the store.
    pub miss_count: u64,
    /// Copies that were evicted.
    pub evicted_count: u64,
    /// Copies that were handed over, and written by another thread than their writer.
    pub served_count: u64,
    /// Copies that were handed over, and that their writers took back, since no thread had looked at them.
    pub taken_back_count: u64,
    /// Volatile memory, in bytes.
    pub dram_bytes: u64,
    /// Bytes of copies that are found.
    pub live_bytes: u64,
}

impl CacheStats {
    /// The part of all searches that needed nothing of the store, 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let answered = self.hit_count + self.absent_count;
        answered as f64 / (answered + self.miss_count).max(1) as f64
    }
}

/// Where a copy lies that was asked for, perhaps.
#[derive(Clone, Copy, Debug)]
pub struct PrefetchedCopy(Option<usize>);

impl PrefetchedCopy {
    /// No copy.
    pub const NONE: PrefetchedCopy = PrefetchedCopy(None);

    /// True if there was a copy.
    #[inline(always)]
    #[must_use]
    pub fn is_some(self) -> bool {
        self.0.is_some()
    }
}

/// The table.
pub struct CachedTable<W: Word = AtomicU64> {
    buckets: Lines<W>,
    copies: Lines<W>,
    rings: Box<[Ring<W>]>,
    /// How a thread waits for a bucket's lock.
    relax: fn(&mut Backoff),
    /// Misses of complete buckets are absences.
    is_filled: AtomicBool,
    /// Readers note what they read: some ring is going to pass over copies soon. Until then nobody asks, and a reader locks no line.
    notes_reads: AtomicBool,
    counts: Counts,
    /// What copies are handed over by, if threads serve the table.
    signals: OnceLock<Signals<W>>,
    wakes: Wakes,
}

impl CachedTable<AtomicU64> {
    /// An empty table of a store that has no item, of `limit_bytes` of `dram` at most ([`LIMIT_BYTES_MIN`] at least).
    ///
    /// # Errors
    /// [`HeapError::NoDram`].
    pub fn new(limit_bytes: u64, dram: impl Dram + 'static) -> Result<CachedTable<AtomicU64>, HeapError> {
        let line_count = (limit_bytes.max(LIMIT_BYTES_MIN) / size_of::<Line<AtomicU64>>() as u64) as usize;
        let bucket_count = line_count / BUCKET_SHARE;
        let copy_line_count = line_count - bucket_count;
        let ring_count = (copy_line_count / RING_LINES_MIN).clamp(1, RING_COUNT_MAX);
        let dram: Arc<dyn Dram> = Arc::new(dram);
        let lines = |count| Lines::lent(count, &dram).ok_or(HeapError::NoDram { wanted_bytes: limit_bytes as usize });
        Ok(CachedTable::of(lines(bucket_count)?, lines(copy_line_count)?, ring_count, Backoff::relax))
    }
}

impl<W: Word> CachedTable<W> {
    fn of(buckets: Lines<W>, copies: Lines<W>, ring_count: usize, relax: fn(&mut Backoff)) -> CachedTable<W> {
        let ring_words = copies.len() / ring_count * LINE_WORDS;
        let rings = (0..ring_count).map(|i| Ring::new(i * ring_words, ring_words)).collect();
        CachedTable {
            buckets,
            copies,
            rings,
            relax,
            is_filled: AtomicBool::new(true),
            notes_reads: AtomicBool::new(false),
            counts: Counts::default(),
            signals: OnceLock::new(),
            wakes: Wakes::default(),
        }
    }

    /// The store may have items that were never offered: misses are no absences until [`Self::is_filled`] is said.
    pub fn is_unfilled(&self) {
        self.is_filled.store(false, Ordering::Release);
    }

    /// Every item that the store had when [`Self::is_unfilled`] was said has been read since, with a permit.
    pub fn is_filled(&self) {
        self.is_filled.store(true, Ordering::Release);
    }

    /// The store may have an item of the key that is not taken in.
    pub fn exclude(&self, key: LookupKey<'_>) {
        self.lock(key.signature).set_complete(false);
    }

    /// What became of searches since it was made.
    pub fn stats(&self) -> CacheStats {
        let live_words: u64 = self.rings.iter().map(Ring::live_words).sum();
        let line_count = self.buckets.len() + self.copies.len() + self.signals.get().map_or(0, Signals::line_count);
        CacheStats {
            dram_bytes: (line_count * size_of::<Line<W>>()) as u64,
            live_bytes: live_words * 8,
            ..self.counts.sum()
        }
    }

    /// From now on writers hand copies over; any thread may [`Self::serve`] them.
    pub fn accept_handoffs(&self) {
        self.signals.get_or_init(Signals::new);
    }

    /// Asks the cache for what a write of the signature begins with.
    #[inline(always)]
    pub fn prefetch(&self, signature: u64) {
        let line: *const Line<W> = &self.buckets[share(signature, self.buckets.len())];
        pmem::arch::prefetch(line.cast());
    }

    /// Asks the cache for the beginning of the key's copy, if there is one: what comes after [`Self::prefetch`], of another key meanwhile.
    #[inline(always)]
    pub fn prefetch_copy(&self, signature: u64) -> PrefetchedCopy {
        let bucket = self.bucket(signature);
        let hits = bucket.hits(signature);
        if hits == 0 {
            return PrefetchedCopy(None);
        }
        let place = bucket.entry(hits.trailing_zeros() as usize).place();
        self.copies.prefetch(place);
        PrefetchedCopy(Some(place))
    }

    /// Asks for the rest of a copy whose beginning was asked for.
    #[inline(always)]
    pub fn prefetch_rest(&self, PrefetchedCopy(place): PrefetchedCopy) {
        let Some(place) = place else { return };
        let words = copy::head(&self.copies, place).words();
        (LINE_WORDS..words).step_by(LINE_WORDS).for_each(|word| self.copies.prefetch(place + word));
    }

    /// Asks for what a write of the signature is going to store to, once its bucket is there: the key's copy, or else where the ring goes on; as
    /// many lines as an item of so many bytes takes, within bounds.
    #[inline(always)]
    pub fn prefetch_for_write(&self, signature: u64, item_bytes: u64) {
        let place = self.prefetch_copy(signature).0.unwrap_or_else(|| self.ring_of(signature).next_place());
        let words = (item_bytes / 8) as usize + copy::HEAD_WORDS;
        let lines = (0..=words.min(ASKED_WORDS_MAX)).step_by(LINE_WORDS);
        lines.for_each(|word| self.copies.prefetch(place + word));
    }

    /// True if writers may hand copies over.
    #[inline(always)]
    pub fn is_served(&self) -> bool {
        self.signals.get().is_some()
    }

    /// True if there is no room for a copy of the key without eviction.
    pub fn is_full_for(&self, key: LookupKey<'_>) -> bool {
        self.ring_of(key.signature).is_wrapped()
    }

    #[inline(always)]
    fn bucket(&self, signature: u64) -> Bucket<'_, W> {
        Bucket::of(&self.buckets[share(signature, self.buckets.len())])
    }

    fn all_buckets(&self) -> impl Iterator<Item = Bucket<'_, W>> {
        self.buckets.iter().map(Bucket::of)
    }

    #[inline(always)]
    fn ring_of(&self, signature: u64) -> &Ring<W> {
        &self.rings[share(signature, self.rings.len())]
    }
}

/// Whether everything is durable that this thread has written or met, though it may be going to wait itself: then a copy may say so
/// to others, too. Nobody waits.
#[inline(always)]
pub fn is_durable<M: Medium>(medium: &M) -> bool {
    let is_durable = |ticket| medium.acknowledge_now(ticket) == Ok(Waited::Durable);
    medium.deferred().is_none_or(is_durable) || medium.breaks(canary::COPY_SHOWN_DEFERRED)
}

/// Which of `count` a signature leads to.
#[inline(always)]
fn share(signature: u64, count: usize) -> usize {
    ((u128::from(signature) * count as u128) >> 64) as usize
}

impl<W: Word> std::fmt::Debug for CachedTable<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedTable").field("bucket_count", &self.buckets.len()).finish_non_exhaustive()
    }
}
