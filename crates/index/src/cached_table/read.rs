//! Searches the table, and brings in items that a search did not find.

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

use word::Word;

use super::CachedTable;
use super::bucket::LockedBucket;
use super::copy::{self, Met, NEVER, VALUE_WORDS_MAX};
use super::copy::{Copied, NewCopy};
use super::counts::Counted;
use super::key::LookupKey;
use super::lines::Wide;

/// The result of a search.
#[derive(Debug)]
pub enum Lookup<R> {
    /// The key's copy was found; the value is the result of `show`.
    Hit(R),
    /// The key is not in the store.
    Absent,
    /// The store must be read. With the permit, its item may be brought in.
    Miss(Option<Permit>),
}

/// The result of a search for a caller that has a buffer for values.
#[derive(Debug)]
pub enum Taken<'r> {
    /// The key's value, in the buffer.
    Value(&'r [u8]),
    /// The value is longer than the buffer, or it expires: use [`CachedTable::lookup`]. Nothing was counted.
    Unfit,
    /// As [`Lookup::Absent`].
    Absent,
    /// As [`Lookup::Miss`]; the buffer is returned.
    Missed(Option<Permit>, &'r mut [MaybeUninit<u64>]),
}

/// The right to bring in the store's item, unless it changes.
#[derive(Clone, Copy, Debug)]
pub struct Permit {
    begun: u64,
}

impl<W: Wide> CachedTable<W> {
    /// Looks up a key's copy, and calls `show` with one that is not expired at `now_ms`, which is called only if
    /// the copy has an expiry.
    #[inline(always)]
    pub fn lookup<R>(
        &self,
        key: LookupKey<'_>,
        now_ms: impl FnOnce() -> u64,
        show: impl FnOnce(Copied<'_>) -> R,
    ) -> Lookup<R> {
        let mut buffer = [MaybeUninit::uninit(); VALUE_WORDS_MAX];
        let lookup = self.find_copy(key, |copy| (copy.version(), copy.expiry_ms(), copy.take(&mut buffer)));
        let lookup = match lookup {
            // The store may still have the expired item, and decides about it.
            Lookup::Hit((version, expiry_ms, Some(len_bytes))) if expiry_ms == NEVER || expiry_ms > now_ms() => {
                // SAFETY: `take` wrote this number of bytes.
                let value = unsafe { copy::value_of(&buffer, len_bytes) };
                Lookup::Hit(show(Copied { value, version, expiry_ms }))
            }
            Lookup::Hit(_) => Lookup::Miss(None),
            Lookup::Absent => Lookup::Absent,
            Lookup::Miss(permit) => Lookup::Miss(permit),
        };
        self.count(&lookup);
        lookup
    }

    /// Like [`Self::lookup`], but copies the value into `buffer`.
    #[inline(always)]
    pub fn take<'r>(&self, key: LookupKey<'_>, buffer: &'r mut [MaybeUninit<u64>]) -> Taken<'r> {
        let lookup = self.find_copy(key, |copy| if copy.expiry_ms() == NEVER { copy.take(buffer) } else { None });
        if !matches!(lookup, Lookup::Hit(None)) {
            self.count(&lookup);
        }
        match lookup {
            // SAFETY: `take` wrote this number of bytes.
            Lookup::Hit(Some(len_bytes)) => Taken::Value(unsafe { copy::value_of(buffer, len_bytes) }),
            Lookup::Hit(None) => Taken::Unfit,
            Lookup::Absent => Taken::Absent,
            Lookup::Miss(permit) => Taken::Missed(permit, buffer),
        }
    }

    #[inline(always)]
    fn count<R>(&self, lookup: &Lookup<R>) {
        self.counts.count(match lookup {
            Lookup::Hit(_) => Counted::Hit,
            Lookup::Absent => Counted::Absent,
            Lookup::Miss(_) => Counted::Miss,
        });
    }

    /// Looks up a key's copy. Everything that `take` reads of it is from the same moment.
    #[inline(always)]
    fn find_copy<T>(&self, key: LookupKey<'_>, mut take: impl FnMut(&Met<'_, W>) -> T) -> Lookup<T> {
        let bucket = self.buckets.of(key.signature);
        let Some(seen) = bucket.see() else { return Lookup::Miss(None) };
        let mut hits = bucket.hits(key.signature);
        while hits != 0 {
            let i = hits.trailing_zeros() as usize;
            if let Some(copy) = copy::met(self.copies.lines(), bucket.entry(i).place(), key) {
                let taken = take(&copy);
                if !bucket.is_still(seen) {
                    return Lookup::Miss(None);
                }
                if self.copies.notes_reads.load(Ordering::Relaxed) {
                    bucket.note_read(i);
                }
                return Lookup::Hit(taken);
            }
            hits &= hits - 1;
        }
        let writes = bucket.writes();
        match bucket.is_still(seen) && writes.pending() == 0 {
            true if seen.is_complete() && self.is_filled.load(Ordering::Acquire) => Lookup::Absent,
            true => Lookup::Miss(Some(Permit { begun: writes.begun() })),
            false => Lookup::Miss(None),
        }
    }
}

impl<W: Word> CachedTable<W> {
    /// Returns a permit without a search, for bringing in an item that is read from the store from now on. Returns
    /// `None` while a write is pending.
    pub fn permit(&self, key: LookupKey<'_>) -> Option<Permit> {
        let writes = self.buckets.lock(key.signature).writes();
        (writes.pending() == 0).then(|| Permit { begun: writes.begun() })
    }

    /// Brings in the item that the store had after the search that returned the permit. The item was durable by the
    /// end of the store's read. It is refused if a write of the bucket has begun since the permit.
    pub fn admit(&self, permit: Permit, key: LookupKey<'_>, copy: &NewCopy<'_>) {
        let is_unchanged = |bucket: &LockedBucket<'_, W>| {
            let writes = bucket.writes();
            writes.begun() == permit.begun && writes.pending() == 0
        };
        self.enter(key, copy, is_unchanged);
    }
}
