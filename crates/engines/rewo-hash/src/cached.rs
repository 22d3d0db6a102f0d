//! The cached table (`index::cached_table`), as this engine's reads and writes use it.
//!
//! A read looks there first, and adds the items that were read from the region. A write hides the key's copy under the
//! locks of the key's buckets before publishing, and shows the new copy once it is durable. Batches do the same, and
//! `clear` does so for all keys. A move by compaction is such a write, because it changes the version. Splits change
//! nothing: a copy belongs to its key, wherever the slot is.
//! After open, the background offers every item until the table is full. If all items fit, every miss is an absence
//! from then on.

use std::sync::Arc;

use engine::{Figure, OpenError};
use index::CachedTable;
use index::block_hash::Key;
use index::cached_table::{CacheStats, Clear, CopyThreads, LookupKey, NewCopy, Permit, Write, canary, is_durable};
use pmem::{Dram, Medium};

use crate::contents::New;
use crate::keys::Keys;

/// A write in the cached table, if there is a table.
pub(crate) type Hidden<'a, 'k> = Option<Write<'a, 'k>>;

/// Returns the form of a key that the cached table uses.
#[inline(always)]
pub(crate) fn lookup_key(key: Key<'_>) -> LookupKey<'_> {
    LookupKey { bytes: key.bytes, signature: key.signature }
}

/// The cached table, and the threads that write its copies, if there are any.
#[derive(Default)]
pub(crate) struct Cache {
    table: Option<Arc<CachedTable>>,
    threads: Option<CopyThreads>,
}

impl Cache {
    /// Creates a table of `limit_bytes` of `dram`; none if that is 0.
    pub(crate) fn new(limit_bytes: u64, dram: impl Dram + 'static) -> Result<Cache, OpenError> {
        let table = (limit_bytes > 0).then(|| CachedTable::new(limit_bytes, dram).map(Arc::new)).transpose()?;
        Ok(Cache { table, threads: None })
    }

    /// Starts threads that write the copies for the writers, if there is a table.
    pub(crate) fn start_threads(&mut self, thread_count: usize) -> Result<(), OpenError> {
        let Some(table) = self.table.as_ref().filter(|_| thread_count > 0) else { return Ok(()) };
        table.accept_handoffs();
        self.threads = Some(CopyThreads::start(table, thread_count).map_err(OpenError::Thread)?);
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn table(&self) -> Option<&CachedTable> {
        self.table.as_deref()
    }

    /// Adds an item to the cached table that a read missed there and found in the region.
    #[inline(always)]
    pub(crate) fn admit<'v, M: Medium>(
        &self,
        medium: &M,
        permit: Option<Permit>,
        key: Key<'_>,
        copy: impl FnOnce() -> NewCopy<'v>,
    ) {
        let Some(table) = &self.table else { return };
        if let Some(permit) = permit.filter(|_| is_durable(medium)) {
            table.admit(permit, lookup_key(key), &copy());
        }
    }

    /// Hides the key's copy before a write publishes, under the locks of the key's buckets.
    #[inline(always)]
    pub(crate) fn hide<'k>(&self, key: Key<'k>) -> Hidden<'_, 'k> {
        self.table.as_ref().map(|table| table.begin(lookup_key(key)))
    }

    /// Hides the copy like [`Self::hide`]; the broken variant hides it late.
    #[inline(always)]
    pub(crate) fn hide_in_time<'k, M: Medium>(&self, medium: &M, key: Key<'k>) -> Hidden<'_, 'k> {
        if medium.breaks(canary::COPY_HIDDEN_LATE) { None } else { self.hide(key) }
    }

    /// Hands the new copy to a copy thread, if there are any.
    #[inline(always)]
    pub(crate) fn hand_over<M: Medium>(&self, keys: &Keys<M>, hidden: &mut Hidden<'_, '_>, new: Option<&New<'_>>) {
        if let (Some(hidden), Some(new)) = (hidden, new)
            && self.table.as_ref().is_some_and(|table| table.is_served())
            && let Some(copy) = copy_of_new(keys, new)
        {
            hidden.hand_off(&copy);
        }
    }

    /// Hides all copies before the store is cleared.
    pub(crate) fn hide_all<M: Medium>(&self, medium: &M) -> Option<Clear<'_>> {
        let table = self.table().filter(|_| !medium.breaks(canary::CLEAR_HIDES_NOTHING));
        table.map(CachedTable::begin_clear)
    }

    pub(crate) fn stats(&self) -> Option<CacheStats> {
        self.table().map(CachedTable::stats)
    }

    /// Returns the figures of the cached table with these counters, and of its copy threads.
    pub(crate) fn figures<'a>(&'a self, cache: &'a CacheStats) -> impl Iterator<Item = Figure> + 'a {
        let of_cache = Figure::of_cache(
            cache.hit_ratio(),
            cache.hit_count + cache.absent_count,
            cache.miss_count,
            cache.evicted_count,
            cache.live_bytes,
        );
        let of_threads = self.threads.as_ref().map(|threads| {
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
}

/// Shows the new copy after the write is durable.
#[inline(always)]
pub(crate) fn reveal<M: Medium>(keys: &Keys<M>, hidden: Hidden<'_, '_>, new: Option<&New<'_>>) {
    let Some(hidden) = hidden.filter(|_| is_durable(keys.medium())) else { return };
    match new.map(|new| copy_of_new(keys, new)) {
        None => hidden.removed(),
        Some(Some(copy)) => hidden.put(&copy),
        Some(None) => drop(hidden),
    }
}

/// Returns the copy of a new item for readers; `None` if the item is damaged and readers get an error.
#[inline(always)]
fn copy_of_new<'n, M: Medium>(keys: &'n Keys<M>, new: &'n New<'n>) -> Option<NewCopy<'n>> {
    new.copy.or_else(|| Some(keys.contents(&new.slot).ok()?.copy()))
}
