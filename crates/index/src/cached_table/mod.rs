//! Copies of hot items in DRAM (Rewo-Hash paper, section III: the cached table), for any engine whose reads are
//! slower than DRAM.
//!
//! A key has one bucket, which is one cache line. Only the key's signature determines it, so splits of segments do
//! not concern the table. The bucket holds the place of the item's copy in a ring (`ring`). The copy holds the key,
//! the value, the version and the expiry. A search reads the line of the bucket, and for a hit the copy: two lines
//! for an item of up to 32 bytes. Buckets and rings have a fixed size, and are all the memory that the table uses,
//! except 8 KiB of signals if threads serve it.
//!
//! # Writing
//! | step | runs | readers of the key |
//! |---|---|---|
//! | 1 the copy is hidden, the write counted as *pending* | under the key's lock in the store | read the store |
//! | 2 the store publishes the new item | in the store | read the store |
//! | 3 the item is known to be durable | in the store, without a lock | read the store |
//! | 4 the copy is rewritten, removed or shown again | without a lock | find the copy |
//!
//! Step 1 is [`CachedTable::begin`]; step 4 is [`Write::put`], [`Write::removed`] or [`Write::unchanged`]. Step 4
//! writes or shows the copy only if no other write of the bucket *began* since step 1 and none is pending.
//! Otherwise the other write may have been published last, or the store may have been cleared; so the copy is
//! removed, and a later read brings it back. Between steps 1 and 4 a serving thread may write the copy (`signals`);
//! step 4 then shows it.
//!
//! # Reading
//! A reader that misses, in a bucket without a pending write, notes how many writes have begun (a [`Permit`]). With
//! the permit, the reader may bring in an item that was found in the store and is known to be durable. The table
//! refuses the item if a write began in between. So every copy equals the item in the store.
//!
//! # Complete buckets
//! A bucket is complete while it has every key of the bucket that the store has, except those of pending writes. A
//! miss in a complete bucket proves that the key is absent. A bucket becomes incomplete when a copy is evicted or
//! refused. All buckets of a new or cleared store are complete. Those of an opened store count as complete after
//! all of its items were offered ([`CachedTable::is_filled`]).
//!
//! # Words
//! The words of a bucket change only while its lock bit in the state is set, and each unlock raises a count in the
//! state. So readers take no lock: they compare the state before and after reading the bucket and the copy. The
//! words of a copy are reused only after the copy has left its bucket.
//!
//! Eviction uses second chance: each copy has a bit that records a read since the copy was last considered. (The
//! exact LRU of the paper would write on every read.) Readers set the bit only if it is not set, and only once a
//! ring has been nearly full.
//!
//! # Modules
//! The table is its buckets, its copies with their rings, its counters, and the signals to the threads that serve it;
//! each type owns its fields. Every module uses only those after it: `pool` -> `write`, `read` -> `copies` -> `ring`
//! -> `buckets`, `signals` -> `bucket`, `copy` -> `lines`, `counts`.
//!
//! # Lock order
//! a store's locks -> a ring -> a bucket. The lock of a ring is only tried. Locks are held for some hundred
//! instructions at most.

mod bucket;
mod buckets;
pub mod canary;
mod copies;
mod copy;
mod counts;
mod key;
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

use buckets::Buckets;
use copies::Copies;
use counts::Counts;
use lines::{Line, Lines};
use pool::Wakes;
use signals::Signals;

pub use copy::{Copied, NewCopy, VALUE_BYTES_MAX};
pub use counts::CacheStats;
pub use key::LookupKey;
pub use pool::CopyThreads;
pub use read::{Lookup, Permit, Taken};
pub use write::{Clear, Write};

/// The minimum size of a cached table.
pub const LIMIT_BYTES_MIN: u64 = 64 << 10;
/// Buckets get one part in this number of the memory: a bucket and three lines, for three of the smallest items.
const BUCKET_SHARE: usize = 4;
/// One thread at a time fills a ring. No ring is smaller than this, which is many times the longest copy.
const RING_LINES_MIN: usize = (256 << 10) / 64;
const RING_COUNT_MAX: usize = 64;

/// The place of a prefetched copy, if there was one.
#[derive(Clone, Copy, Debug)]
pub struct PrefetchedCopy(Option<usize>);

impl PrefetchedCopy {
    /// No copy.
    pub const NONE: PrefetchedCopy = PrefetchedCopy(None);

    /// Returns true if there was a copy.
    #[inline(always)]
    #[must_use]
    pub fn is_some(self) -> bool {
        self.0.is_some()
    }
}

/// The table.
pub struct CachedTable<W: Word = AtomicU64> {
    buckets: Buckets<W>,
    copies: Copies<W>,
    /// True if misses in complete buckets are absences.
    is_filled: AtomicBool,
    counts: Counts,
    /// The signals for handing copies over, if threads serve the table.
    signals: OnceLock<Signals<W>>,
    wakes: Wakes,
}

impl CachedTable<AtomicU64> {
    /// Creates an empty table for a store without items, of at most `limit_bytes` of `dram` (at least
    /// [`LIMIT_BYTES_MIN`]).
    ///
    /// # Errors
    /// [`HeapError::NoDram`].
    pub fn new(limit_bytes: u64, dram: impl Dram + 'static) -> Result<CachedTable<AtomicU64>, HeapError> {
        let line_count = (limit_bytes.max(LIMIT_BYTES_MIN) / size_of::<Line<AtomicU64>>() as u64) as usize;
        let bucket_count = line_count / BUCKET_SHARE;
        let copy_line_count = line_count - bucket_count;
        let ring_count = (copy_line_count / RING_LINES_MIN).clamp(1, RING_COUNT_MAX);
        let dram: Arc<dyn Dram> = Arc::new(dram);
        let lines =
            |count| Lines::allocated(count, &dram).ok_or(HeapError::NoDram { wanted_bytes: limit_bytes as usize });
        Ok(CachedTable::of(lines(bucket_count)?, lines(copy_line_count)?, ring_count, Backoff::relax))
    }
}

impl<W: Word> CachedTable<W> {
    fn of(buckets: Lines<W>, copies: Lines<W>, ring_count: usize, relax: fn(&mut Backoff)) -> CachedTable<W> {
        CachedTable {
            buckets: Buckets::new(buckets, relax),
            copies: Copies::new(copies, ring_count),
            is_filled: AtomicBool::new(true),
            counts: Counts::default(),
            signals: OnceLock::new(),
            wakes: Wakes::default(),
        }
    }

    /// Declares that the store may have items that were never offered. Misses then prove no absence until
    /// [`Self::is_filled`] is called.
    pub fn is_unfilled(&self) {
        self.is_filled.store(false, Ordering::Release);
    }

    /// Declares that every item that the store had at the call of [`Self::is_unfilled`] has been read since, with a
    /// permit.
    pub fn is_filled(&self) {
        self.is_filled.store(true, Ordering::Release);
    }

    /// Declares that the store may have an item of the key that is not in the table.
    pub fn exclude(&self, key: LookupKey<'_>) {
        self.buckets.lock(key.signature).set_complete(false);
    }

    /// Returns the counters since the table was created.
    pub fn stats(&self) -> CacheStats {
        let signal_line_count = self.signals.get().map_or(0, Signals::line_count);
        let line_count = self.buckets.lines().len() + self.copies.lines().len() + signal_line_count;
        CacheStats {
            dram_bytes: (line_count * size_of::<Line<W>>()) as u64,
            live_bytes: self.copies.live_words() * 8,
            ..self.counts.sum()
        }
    }

    /// Lets writers hand copies over from now on; any thread may then [`Self::serve`] them.
    pub fn accept_handoffs(&self) {
        self.signals.get_or_init(Signals::new);
    }

    /// Prefetches the line with which a write of the signature begins.
    #[inline(always)]
    pub fn prefetch(&self, signature: u64) {
        self.buckets.prefetch(signature);
    }

    /// Prefetches the beginning of the key's copy, if there is one. Call it some time after [`Self::prefetch`],
    /// with work on other keys in between.
    #[inline(always)]
    pub fn prefetch_copy(&self, signature: u64) -> PrefetchedCopy {
        PrefetchedCopy(self.copies.prefetch(self.buckets.of(signature), signature))
    }

    /// Prefetches the remaining lines of a copy whose beginning was prefetched.
    #[inline(always)]
    pub fn prefetch_rest(&self, PrefetchedCopy(place): PrefetchedCopy) {
        place.into_iter().for_each(|place| self.copies.prefetch_rest(place));
    }

    /// Prefetches the lines to which a write of the signature is going to store, after its bucket has arrived: the
    /// key's copy, or else the next place in the ring. It prefetches as many lines as an item of `item_bytes`
    /// needs, within bounds.
    #[inline(always)]
    pub fn prefetch_for_write(&self, signature: u64, item_bytes: u64) {
        let place = self.prefetch_copy(signature).0;
        let place = place.unwrap_or_else(|| self.copies.ring_of(signature).next_place());
        self.copies.prefetch_for_write(place, item_bytes);
    }

    /// Returns true if writers may hand copies over.
    #[inline(always)]
    pub fn is_served(&self) -> bool {
        self.signals.get().is_some()
    }

    /// Returns true if there is no space for a copy of the key without eviction.
    pub fn is_full_for(&self, key: LookupKey<'_>) -> bool {
        self.copies.ring_of(key.signature).is_wrapped()
    }
}

/// Returns true if everything that this thread has written or read is durable, even if the thread is going to wait
/// later. A copy may then be shown to other threads. It does not wait.
#[inline(always)]
pub fn is_durable<M: Medium>(medium: &M) -> bool {
    let is_durable = |ticket| medium.acknowledge_now(ticket) == Ok(Waited::Durable);
    medium.deferred().is_none_or(is_durable) || medium.breaks(canary::COPY_SHOWN_DEFERRED)
}

impl<W: Word> std::fmt::Debug for CachedTable<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedTable").field("bucket_count", &self.buckets.lines().len()).finish_non_exhaustive()
    }
}
