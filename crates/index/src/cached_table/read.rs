//! Searching, and bringing in what a search did not find.

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

use word::Word;

use super::bucket::{Bucket, Entry, LockedBucket};
use super::copy::{self, Met, NEVER, VALUE_WORDS_MAX};
use super::counts::Counted;
use super::lines::Wide;
use super::{CachedTable, Copied, LookupKey, NewCopy};

/// What a search found.
#[derive(Debug)]
pub enum Lookup<R> {
    /// The key's copy, and what came of showing it.
    Hit(R),
    /// The key is not in the store.
    Absent,
    /// The store is to be asked; with the permit, what it has may be brought in.
    Miss(Option<Permit>),
}

/// What a search found for a caller that has the room for values.
#[derive(Debug)]
pub enum Taken<'r> {
    /// The key's value, in that room.
    Value(&'r [u8]),
    /// The value is longer than the room, or expires: [`CachedTable::lookup`] shows it. Nothing was counted.
    Unfit,
    /// As [`Lookup::Absent`].
    Absent,
    /// As [`Lookup::Miss`]; the room comes back.
    Missed(Option<Permit>, &'r mut [MaybeUninit<u64>]),
}

/// The right to bring in what the store has, unless it changes.
#[derive(Clone, Copy, Debug)]
pub struct Permit {
    begun: u64,
}

impl<W: Wide> CachedTable<W> {
    /// Looks for a key's copy, and shows one that has not expired before `now_ms`, which is asked for only if the copy expires at
    /// all.
    #[inline(always)]
    pub fn lookup<R>(
        &self,
        key: LookupKey<'_>,
        now_ms: impl FnOnce() -> u64,
        show: impl FnOnce(Copied<'_>) -> R,
    ) -> Lookup<R> {
        let mut room = [MaybeUninit::uninit(); VALUE_WORDS_MAX];
        let lookup = self.find_copy(key, |copy| (copy.version(), copy.expiry_ms(), copy.take(&mut room)));
        let lookup = match lookup {
            // The store has one that has expired still, and tells what became of it.
            Lookup::Hit((version, expiry_ms, Some(len_bytes))) if expiry_ms == NEVER || expiry_ms > now_ms() => {
                // SAFETY: they were taken out of the copy.
                let value = unsafe { copy::value_of(&room, len_bytes) };
                Lookup::Hit(show(Copied { value, version, expiry_ms }))
            }
            Lookup::Hit(_) => Lookup::Miss(None),
            Lookup::Absent => Lookup::Absent,
            Lookup::Miss(permit) => Lookup::Miss(permit),
        };
        self.count(&lookup);
        lookup
    }

    /// As [`Self::lookup`], but the value is taken out into `room`.
    #[inline(always)]
    pub fn take<'r>(&self, key: LookupKey<'_>, room: &'r mut [MaybeUninit<u64>]) -> Taken<'r> {
        let lookup = self.find_copy(key, |copy| if copy.expiry_ms() == NEVER { copy.take(room) } else { None });
        if !matches!(lookup, Lookup::Hit(None)) {
            self.count(&lookup);
        }
        match lookup {
            // SAFETY: they were taken out of the copy.
            Lookup::Hit(Some(len_bytes)) => Taken::Value(unsafe { copy::value_of(room, len_bytes) }),
            Lookup::Hit(None) => Taken::Unfit,
            Lookup::Absent => Taken::Absent,
            Lookup::Miss(permit) => Taken::Missed(permit, room),
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

    /// Looks for a key's copy; what `take` takes of it is of one moment.
    #[inline(always)]
    fn find_copy<T>(&self, key: LookupKey<'_>, mut take: impl FnMut(&Met<'_, W>) -> T) -> Lookup<T> {
        let bucket = self.bucket(key.signature);
        let Some(seen) = bucket.see() else { return Lookup::Miss(None) };
        let mut hits = bucket.hits(key.signature);
        while hits != 0 {
            let i = hits.trailing_zeros() as usize;
            if let Some(copy) = copy::met(&self.copies, bucket.entry(i).place(), key) {
                let taken = take(&copy);
                if !bucket.is_still(seen) {
                    return Lookup::Miss(None);
                }
                if self.notes_reads.load(Ordering::Relaxed) {
                    bucket.note_read(seen, i);
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
    /// A permit without a search, for bringing in what is asked for now; `None` while a write is pending.
    pub fn permit(&self, key: LookupKey<'_>) -> Option<Permit> {
        let writes = self.lock(key.signature).writes();
        (writes.pending() == 0).then(|| Permit { begun: writes.begun() })
    }

    /// Brings in what the store had of the key when it was asked, after the search that gave the permit; it was durable by the
    /// end of that. Nothing comes in if a write of the bucket began meanwhile.
    pub fn admit(&self, permit: Permit, key: LookupKey<'_>, copy: &NewCopy<'_>) {
        let is_unchanged = |bucket: &LockedBucket<'_, W>| {
            let writes = bucket.writes();
            writes.begun() == permit.begun && writes.pending() == 0
        };
        self.enter(key, copy, is_unchanged);
    }

    /// Whether the bucket has a copy of the key, hidden or not; its entry. The caller holds the bucket's lock.
    pub(super) fn entry_of(&self, bucket: &LockedBucket<'_, W>, key: LookupKey<'_>) -> Option<(usize, Entry)> {
        let is_of =
            |entry: &Entry| entry.may_be(key.signature) && copy::met(&self.copies, entry.place(), key).is_some();
        bucket.entries().find(|(_, entry)| is_of(entry))
    }

    #[inline(always)]
    pub(super) fn lock(&self, signature: u64) -> LockedBucket<'_, W> {
        Bucket::lock(self.bucket(signature), self.relax)
    }
}
