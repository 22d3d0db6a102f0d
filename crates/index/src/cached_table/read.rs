//! Searching, and bringing in what a search did not find.

use std::sync::atomic::Ordering;

use word::Word;

use super::bucket::{Bucket, ENTRY_COUNT, Entry, LockedBucket};
use super::copy::{self, Taken};
use super::counts::Counted;
use super::{CachedTable, Copied, NewCopy, Sought};

/// What a search found.
#[derive(Debug)]
pub enum Look<R> {
    /// The key's copy, and what came of showing it.
    Hit(R),
    /// The key is not in the store.
    Absent,
    /// The store is to be asked; with the permit, what it has may be brought in.
    Miss(Option<Permit>),
}

/// The right to bring in what the store has, unless it changes.
#[derive(Clone, Copy, Debug)]
pub struct Permit {
    begun: u64,
}

impl<W: Word> CachedTable<W> {
    /// Looks for a key's copy, and shows one that has not expired before `now_ms`, which is asked for only if the copy expires at
    /// all.
    #[inline(always)]
    pub fn look<R>(
        &self,
        key: Sought<'_>,
        now_ms: impl FnOnce() -> u64,
        show: impl FnOnce(Copied<'_>) -> R,
    ) -> Look<R> {
        let mut taken = Taken::new();
        let look = self.search(key, &mut taken);
        match look {
            Look::Hit(()) if taken.copied().expiry_ms == u64::MAX || taken.copied().expiry_ms > now_ms() => {
                self.counts.count(Counted::Hit);
                Look::Hit(show(taken.copied()))
            }
            Look::Absent => {
                self.counts.count(Counted::Absent);
                Look::Absent
            }
            Look::Miss(permit) => {
                self.counts.count(Counted::Miss);
                Look::Miss(permit)
            }
            // The store has it still, and tells what became of it.
            Look::Hit(()) => {
                self.counts.count(Counted::Miss);
                Look::Miss(None)
            }
        }
    }

    #[inline(always)]
    fn search(&self, key: Sought<'_>, taken: &mut Taken) -> Look<()> {
        let bucket = self.bucket(key.signature);
        let Some(seen) = bucket.see() else { return Look::Miss(None) };
        let writes = bucket.writes();
        for i in 0..ENTRY_COUNT {
            let entry = bucket.entry(i);
            if !entry.may_be(key.signature) || entry.is_hidden() {
                continue;
            }
            if let Some(head) = copy::is_of(&self.copies, entry.place(), key) {
                taken.take(&self.copies, entry.place(), head);
                if !bucket.is_still(seen) {
                    return Look::Miss(None);
                }
                bucket.note_read(seen, i);
                return Look::Hit(());
            }
        }
        match bucket.is_still(seen) && writes.pending() == 0 {
            true if seen.is_complete() && self.is_filled.load(Ordering::Acquire) => Look::Absent,
            true => Look::Miss(Some(Permit { begun: writes.begun() })),
            false => Look::Miss(None),
        }
    }

    /// A permit without a search, for bringing in what is asked for now; `None` while a write is pending.
    pub fn permit(&self, key: Sought<'_>) -> Option<Permit> {
        let writes = self.lock(key.signature).writes();
        (writes.pending() == 0).then(|| Permit { begun: writes.begun() })
    }

    /// Brings in what the store had of the key when it was asked, after the search that gave the permit; it was durable by the
    /// end of that. Nothing comes in if a write of the bucket began meanwhile.
    pub fn bring_in(&self, permit: Permit, key: Sought<'_>, copy: &NewCopy<'_>) {
        let is_unchanged = |bucket: &LockedBucket<'_, W>| {
            let writes = bucket.writes();
            writes.begun() == permit.begun && writes.pending() == 0
        };
        self.enter(key, copy, is_unchanged);
    }

    /// Whether the bucket has a copy of the key, hidden or not; its entry. The caller holds the bucket's lock.
    pub(super) fn entry_of(&self, bucket: &LockedBucket<'_, W>, key: Sought<'_>) -> Option<(usize, Entry)> {
        let is_of =
            |entry: &Entry| entry.may_be(key.signature) && copy::is_of(&self.copies, entry.place(), key).is_some();
        bucket.entries().find(|(_, entry)| is_of(entry))
    }

    #[inline(always)]
    pub(super) fn lock(&self, signature: u64) -> LockedBucket<'_, W> {
        Bucket::lock(self.bucket(signature), self.relax)
    }
}
