//! The store's writes, as the cached table sees them: see the parent module.

use word::Word;

use super::bucket::{Entry, LockedBucket};
use super::copy;
use super::counts::Counted;
use super::signals::{Ended, Handed, Taken};
use super::{CachedTable, LookupKey, NewCopy};

/// A write that began and is pending. If it is dropped without a result, the copy of the key is removed.
#[must_use]
pub struct Write<'a, 'k, W: Word = std::sync::atomic::AtomicU64> {
    table: &'a CachedTable<W>,
    key: LookupKey<'k>,
    begun: u64,
    is_pending: bool,
    had_copy: bool,
    handed: Option<Handed<'a, W>>,
}

/// A clear of the store that began and is pending.
#[must_use]
pub struct Clear<'a, W: Word = std::sync::atomic::AtomicU64> {
    table: &'a CachedTable<W>,
    is_done: bool,
}

impl<W: Word> CachedTable<W> {
    /// Carries out step 1. The caller holds the lock that excludes other writes of the key, and publishes before it
    /// releases the lock.
    ///
    /// This does not wait for the line of a copy: it hides every entry with the signature's tag. One of another key,
    /// which hardly ever exists, is dropped by step 4.
    #[inline]
    pub fn begin<'a, 'k>(&'a self, key: LookupKey<'k>) -> Write<'a, 'k, W> {
        let bucket = self.buckets.lock(key.signature);
        let begun = bucket.begin();
        let mut had_copy = false;
        for (i, entry) in bucket.entries().filter(|(_, entry)| entry.may_be(key.signature)) {
            bucket.set(i, entry.hidden());
            had_copy = true;
        }
        Write { table: self, key, begun, is_pending: true, had_copy, handed: None }
    }

    /// Like [`Self::begin`], for every key. It must be called before the store's clear takes effect.
    pub fn begin_clear(&self) -> Clear<'_, W> {
        for bucket in self.buckets.lock_in_turn() {
            let _ = bucket.begin();
            for (i, entry) in bucket.entries() {
                let signature = copy::signature(self.copies.lines(), entry.place());
                self.copies.forget(&bucket, i, entry, signature);
            }
            // Later writes set this themselves when they end.
            bucket.set_complete(true);
        }
        Clear { table: self, is_done: false }
    }

    /// Brings a copy in if `may` returns true under the bucket's lock. Returns true if this copy, or another of the
    /// key, is in the table afterwards. A hidden copy of the key is replaced.
    pub(super) fn enter(
        &self,
        key: LookupKey<'_>,
        copy: &NewCopy<'_>,
        may: impl FnOnce(&LockedBucket<'_, W>) -> bool,
    ) -> bool {
        let is_there = self.try_enter(key, copy, |entry| entry, may);
        if !is_there {
            self.buckets.lock(key.signature).set_complete(false);
        }
        is_there
    }

    /// Like [`Self::enter`], but does not mark the bucket incomplete. `made` transforms the entry.
    fn try_enter(
        &self,
        key: LookupKey<'_>,
        copy: &NewCopy<'_>,
        made: fn(Entry) -> Entry,
        may: impl FnOnce(&LockedBucket<'_, W>) -> bool,
    ) -> bool {
        let Some(words) = copy.words(key.bytes) else { return false };
        let Some(filling) = self.copies.fill(&self.buckets, &self.counts, key.signature) else { return false };
        let Some(place) = filling.write(key, copy, words) else { return false };
        let bucket = self.buckets.lock(key.signature);
        let old = self.copies.entry_of(&bucket, key);
        let is_there = old.is_some_and(|(_, entry)| !entry.is_hidden());
        let free = if is_there { None } else { old.map(|(i, _)| i).or_else(|| bucket.free_entry()) };
        let Some(i) = free.filter(|_| may(&bucket)) else {
            drop(bucket);
            filling.deallocate(place);
            return is_there;
        };
        self.evict_for(&bucket, i, old.is_some());
        bucket.set(i, made(Entry::new(key.signature, place)));
        filling.keep(words);
        true
    }

    /// Writes a copy that stays hidden, for write number `begun`, if that is the only one. Returns true if the copy
    /// is in the table.
    pub(super) fn write_hidden(&self, key: LookupKey<'_>, copy: &NewCopy<'_>, begun: u64) -> bool {
        let bucket = self.buckets.lock(key.signature);
        let old = if is_alone(&bucket, begun) { self.copies.entry_of(&bucket, key) } else { None };
        let is_over = old.is_some_and(|(_, entry)| self.copies.write_over(entry, key, copy));
        drop(bucket);
        is_over || self.try_enter(key, copy, Entry::hidden, |bucket| is_alone(bucket, begun))
    }

    /// Writes the copies that were handed over and that no other thread has taken, and returns their number.
    pub fn serve(&self) -> usize {
        let Some(signals) = self.signals.get() else { return 0 };
        (0..signals.count()).filter_map(|number| signals.take(number)).map(|request| self.serve_one(request)).count()
    }

    pub(super) fn serve_one(&self, request: Taken<'_, W>) {
        let own = request.copy();
        if self.write_hidden(own.key(), &own.copy(), request.begun()) {
            self.counts.count(Counted::Served);
            request.complete();
        }
    }

    /// Prepares entry `i` for another copy.
    fn evict_for(&self, bucket: &LockedBucket<'_, W>, i: usize, is_same_key: bool) {
        let Some((_, entry)) = bucket.entries().find(|(number, _)| *number == i) else { return };
        let signature = copy::signature(self.copies.lines(), entry.place());
        self.copies.forget(bucket, i, entry, signature);
        if !is_same_key {
            bucket.set_complete(false);
            self.counts.count(Counted::Evicted);
        }
    }
}

impl<W: Word> Write<'_, '_, W> {
    /// Hands the copy over to a thread that serves the table, if there is one. Call it between steps 1 and 2, with
    /// the same copy as [`Self::put`] later.
    #[inline]
    pub fn hand_off(&mut self, copy: &NewCopy<'_>) {
        let Some(signals) = self.table.signals.get() else { return };
        self.handed = signals.hand_off(self.key, copy, self.begun);
    }

    /// Ends the handover, if there was one, and returns its result.
    #[inline]
    pub(super) fn end_handed(&mut self) -> Option<Ended> {
        let ended = self.handed.take()?.end(self.table.buckets.relax());
        if ended == Ended::TakenBack {
            self.table.counts.count(Counted::TakenBack);
            self.table.wakes.note_taken_back();
        }
        Some(ended)
    }

    /// Carries out step 4: the key has this item, which is durable.
    #[inline]
    pub fn put(mut self, copy: &NewCopy<'_>) {
        match self.end_handed() {
            None | Some(Ended::TakenBack) => self.write(copy),
            Some(Ended::Written) => self.show(),
            Some(Ended::Refused) => {}
        }
    }

    #[inline]
    fn write(&mut self, copy: &NewCopy<'_>) {
        let (table, key, begun) = (self.table, self.key, self.begun);
        // If the key had no copy, there is none to search: while the write is the only one, no thread brings one
        // in.
        if self.had_copy {
            let bucket = table.buckets.lock(key.signature);
            if !is_alone(&bucket, begun) {
                return;
            }
            if let Some((i, entry)) = self.own(&bucket)
                && table.copies.write_over(entry, key, copy)
            {
                bucket.set(i, entry.shown());
                bucket.end();
                self.is_pending = false;
                return;
            }
        }
        self.is_pending = !table.enter(key, copy, |bucket| {
            let is_alone = is_alone(bucket, begun);
            if is_alone {
                bucket.end();
            }
            is_alone
        });
    }

    /// Shows the hidden copy, if it is still in the table.
    pub(super) fn show(&mut self) {
        let bucket = self.table.buckets.lock(self.key.signature);
        if !is_alone(&bucket, self.begun) {
            return;
        }
        self.is_pending = false;
        if let Some((i, entry)) = self.own(&bucket) {
            bucket.set(i, entry.shown());
        }
        bucket.end();
    }

    /// Carries out step 4: the key was removed, and that is durable.
    pub fn removed(mut self) {
        self.end_handed();
        self.is_pending = false;
        let bucket = self.forgotten();
        bucket.end();
    }

    /// Carries out step 4: nothing was published. A copy that another thread wrote is removed, together with the
    /// old copy, which it may have overwritten.
    pub fn unchanged(mut self) {
        match self.end_handed() {
            None | Some(Ended::TakenBack) => self.show(),
            Some(_) if !self.had_copy => self.removed(),
            Some(_) => {}
        }
    }

    /// Returns the bucket, locked, without a copy of the key.
    fn forgotten(&self) -> LockedBucket<'_, W> {
        let bucket = self.table.buckets.lock(self.key.signature);
        if let Some((i, entry)) = self.own(&bucket) {
            self.table.copies.forget(&bucket, i, entry, self.key.signature);
        }
        bucket
    }

    /// Returns the entry of the key's copy. Drops copies of other keys that step 1 hid.
    fn own(&self, bucket: &LockedBucket<'_, W>) -> Option<(usize, Entry)> {
        let (copies, signature) = (&self.table.copies, self.key.signature);
        let own = copies.entry_of(bucket, self.key);
        let is_strange = |(i, entry): &(usize, Entry)| {
            entry.may_be(signature) && entry.is_hidden() && own.is_none_or(|(own, _)| own != *i)
        };
        for (i, entry) in bucket.entries().filter(is_strange) {
            copies.forget(bucket, i, entry, signature);
            bucket.set_complete(false);
        }
        own
    }
}

#[cfg(test)]
impl<W: Word> Write<'_, '_, W> {
    /// The broken variant that ignores other writes that began or are pending, as if they had ended before this one
    /// began.
    pub(super) fn pretend_alone(&mut self) {
        let bucket = self.table.buckets.lock(self.key.signature);
        self.begun = bucket.pretend_alone();
    }

    /// The broken variant that does not wait for the signal.
    pub(super) fn pretend_written(mut self) {
        self.handed = None;
        self.show();
    }
}

/// Returns true if no write began since number `begun`, and only that one is pending.
fn is_alone<W: Word>(bucket: &LockedBucket<'_, W>, begun: u64) -> bool {
    let writes = bucket.writes();
    writes.begun() == begun && writes.pending() == 1
}

impl<W: Word> Drop for Write<'_, '_, W> {
    #[inline]
    fn drop(&mut self) {
        if self.is_pending {
            self.end_handed();
            let bucket = self.forgotten();
            bucket.set_complete(false);
            bucket.end();
        }
    }
}

impl<W: Word> Clear<'_, W> {
    /// Records that the store has no items except those of pending writes, and that this is durable.
    pub fn cleared(mut self) {
        self.is_done = true;
    }
}

impl<W: Word> Drop for Clear<'_, W> {
    fn drop(&mut self) {
        for bucket in self.table.buckets.lock_in_turn() {
            // Writes that began since may have been published before the clear.
            bucket.overtake();
            bucket.end();
            if !self.is_done {
                bucket.set_complete(false);
            }
        }
    }
}
