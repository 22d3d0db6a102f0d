//! The cached table (`index::cached_table`), as this engine's reads and writes use it.
//!
//! A read looks there first, and adds the items that were read from the region. A write hides the key's copy under the
//! locks of the key's buckets before publishing, and shows the new copy once it is durable. Batches do the same, and
//! `clear` does so for all keys. Splits and moves change nothing: a copy belongs to its key, wherever the slot is.
//! After open, the background offers every item until the table is full. If all items fit, every miss is an absence
//! from then on.

use std::sync::Arc;

use engine::{Error, Expiry, Figure, OpenError, Progress, Verify, Witness};
use index::block_hash::Key;
use index::cached_table::{
    CacheStats, Copied, CopyThreads, Lookup, LookupKey, NewCopy, Permit, Write, canary, is_durable,
};
use index::segmented::Cursor;
use index::{CachedTable, cached_table};
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::background::Background;
use crate::read::SlotContents;
use crate::write::New;

/// A write in the cached table, if there is a table.
pub(crate) type Hidden<'a, 'k> = Option<Write<'a, 'k>>;

/// The result of a lookup in the cached table.
pub(crate) enum Known {
    /// True if the caller was given the value; false if the key is absent.
    Certain(bool),
    /// The region has to be read.
    Unknown(Option<Permit>),
}

/// Returns the form of a key that the cached table uses.
pub(crate) fn lookup_key<'k>(key: Key<'k>) -> LookupKey<'k> {
    LookupKey { bytes: key.bytes, signature: key.signature }
}

impl<'a> SlotContents<'a> {
    pub(crate) fn copy(&self) -> NewCopy<'a> {
        NewCopy { value: self.value, version: self.witness().words(), expiry_ms: self.expiry.ms() }
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Returns the store with a cached table of `limit_bytes` of `dram`; without one if that is 0.
    ///
    /// # Errors
    /// The memory cannot be allocated.
    pub fn caching(self, limit_bytes: u64, dram: impl Dram + 'static) -> Result<RewoHash<M, D>, OpenError> {
        let cache = (limit_bytes > 0).then(|| CachedTable::new(limit_bytes, dram).map(Arc::new)).transpose()?;
        if let Some(cache) =
            cache.as_ref().filter(|_| !self.heap.is_swept() && !self.medium.breaks(canary::UNFILLED_TRUSTED))
        {
            cache.is_unfilled();
            self.background.lock().filling = Some(Cursor::default());
        }
        Ok(RewoHash { cache, ..self })
    }

    /// Returns the store with `thread_count` threads that write the cached table's copies for the writers, if there is
    /// a table and the store is writable.
    ///
    /// # Errors
    /// A thread cannot be started, or memory cannot be allocated.
    pub fn copying_by(self, thread_count: usize) -> Result<RewoHash<M, D>, OpenError> {
        let Some(cache) = self.cache.as_ref().filter(|_| thread_count > 0 && self.medium.is_writable()) else {
            return Ok(self);
        };
        cache.accept_handoffs();
        let threads = CopyThreads::start(cache, thread_count).map_err(OpenError::Thread)?;
        Ok(RewoHash { copy_threads: Some(threads), ..self })
    }

    /// Returns the cached table, if there is one.
    pub fn cached_table(&self) -> Option<&CachedTable> {
        self.cache.as_deref()
    }

    /// Calls `found` with the key's copy, if there is one.
    #[inline(always)]
    pub(crate) fn lookup_copy(&self, key: Key<'_>, found: &mut dyn FnMut(Witness, &[u8], Expiry)) -> Known {
        let Some(cache) = &self.cache else { return Known::Unknown(None) };
        let show = |copied: Copied<'_>| {
            found(Witness::of_words(copied.version), copied.value, Expiry::at_ms(copied.expiry_ms))
        };
        match cache.lookup(lookup_key(key), || self.clock.now_ms(), show) {
            Lookup::Hit(()) => Known::Certain(true),
            Lookup::Absent if self.verify < Verify::Absence => Known::Certain(false),
            Lookup::Absent => Known::Unknown(None),
            Lookup::Miss(permit) => Known::Unknown(permit),
        }
    }

    /// Adds an item to the cached table that a read missed there and found in the region.
    #[inline(always)]
    pub(crate) fn admit<'v>(&self, permit: Option<Permit>, key: Key<'_>, copy: impl FnOnce() -> NewCopy<'v>) {
        let Some(cache) = &self.cache else { return };
        if let Some(permit) = permit.filter(|_| is_durable(&self.medium)) {
            cache.admit(permit, lookup_key(key), &copy());
        }
    }

    /// Hides the key's copy before a write publishes, under the locks of the key's buckets.
    #[inline(always)]
    pub(crate) fn hide<'k>(&self, key: Key<'k>) -> Hidden<'_, 'k> {
        self.cache.as_ref().map(|cache| cache.begin(lookup_key(key)))
    }

    /// Hides the copy like [`Self::hide`]; the broken variant hides it late.
    #[inline(always)]
    pub(crate) fn hide_in_time<'k>(&self, key: Key<'k>) -> Hidden<'_, 'k> {
        if self.medium.breaks(canary::COPY_HIDDEN_LATE) { None } else { self.hide(key) }
    }

    /// Hands the new copy to a copy thread, if there are any.
    #[inline(always)]
    pub(crate) fn hand_over(&self, hidden: &mut Hidden<'_, '_>, new: Option<&New<'_>>) {
        if let (Some(hidden), Some(new)) = (hidden, new)
            && self.cache.as_ref().is_some_and(|cache| cache.is_served())
            && let Some(copy) = self.copy_of_new(new)
        {
            hidden.hand_off(&copy);
        }
    }

    /// Shows the new copy after the write is durable.
    #[inline(always)]
    pub(crate) fn reveal(&self, hidden: Hidden<'_, '_>, new: Option<&New<'_>>) {
        let Some(hidden) = hidden.filter(|_| is_durable(&self.medium)) else { return };
        match new.map(|new| self.copy_of_new(new)) {
            None => hidden.removed(),
            Some(Some(copy)) => hidden.put(&copy),
            Some(None) => drop(hidden),
        }
    }

    /// Returns the copy of a new item for readers; `None` if the item is damaged and readers get an error.
    #[inline(always)]
    fn copy_of_new<'n>(&'n self, new: &'n New<'n>) -> Option<NewCopy<'n>> {
        new.copy.or_else(|| Some(self.contents(&new.slot).ok()?.copy()))
    }

    /// Hides all copies before the store is cleared.
    pub(crate) fn hide_all(&self) -> Option<cached_table::Clear<'_>> {
        let cache = self.cached_table().filter(|_| !self.medium.breaks(canary::CLEAR_HIDES_NOTHING));
        cache.map(CachedTable::begin_clear)
    }

    /// Offers the items of a segment to the cached table of an opened store.
    pub(crate) fn fill_step(&self, background: &mut Background) -> Result<Progress, Error> {
        let (Some(cache), Some(cursor)) = (&self.cache, background.filling.take()) else { return Ok(Progress::Idle) };
        let _pin = epoch::pin();
        let (shown, next) = self.table.visit(&self.medium, cursor)?;
        let mut is_full = false;
        for (_, slot) in &shown.slots {
            // A caller that requests the key gets the error. In a damaged store, a miss is not an absence.
            let Ok(seen) = self.intact_contents(slot) else { return Ok(Progress::Idle) };
            let key = self.key(seen.key)?;
            is_full |= cache.is_full_for(lookup_key(key));
            if !is_full && !self.offer(cache, key)? {
                cache.exclude(lookup_key(key));
            }
        }
        if next.is_done() && !is_full {
            cache.is_filled();
        }
        background.filling = (!next.is_done() && !is_full).then_some(next);
        Ok(if background.filling.is_some() { Progress::More } else { Progress::Idle })
    }

    /// Offers a key's item. Returns false if the key may have an item that was not added.
    fn offer(&self, cache: &CachedTable, key: Key<'_>) -> Result<bool, Error> {
        let Some(permit) = cache.permit(lookup_key(key)) else { return Ok(false) };
        let Some(slot) = self.find(key)? else { return Ok(true) };
        if !is_durable(&self.medium) {
            return Ok(false);
        }
        cache.admit(permit, lookup_key(key), &self.intact_contents(&slot)?.copy());
        Ok(true)
    }
}

/// Returns the figures of the cached table, and of its copy threads.
pub(crate) fn figures<'a>(
    cache: &'a CacheStats,
    threads: Option<&'a CopyThreads>,
) -> impl Iterator<Item = Figure> + 'a {
    let of_cache = Figure::of_cache(
        cache.hit_ratio(),
        cache.hit_count + cache.absent_count,
        cache.miss_count,
        cache.evicted_count,
        cache.live_bytes,
    );
    let of_threads = threads.map(|threads| {
        [
            Figure::gauge(
                "cache_thread_count",
                "Threads that write copies of items for the writers",
                threads.alive_count() as f64,
            ),
            Figure::gauge(
                "cache_awake_thread_count",
                "Copy threads that poll for copies to write, and do not sleep",
                threads.awake_count() as f64,
            ),
            Figure::counter(
                "cache_served_count",
                "Copies that copy threads wrote since open",
                cache.served_count as f64,
            ),
            Figure::counter(
                "cache_taken_back_count",
                "Copies handed to copy threads since open that their writers took back and wrote",
                cache.taken_back_count as f64,
            ),
        ]
    });
    of_cache.into_iter().chain(of_threads.into_iter().flatten())
}
