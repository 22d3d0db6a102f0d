//! The read cache (`index::cached_table`), as this engine's reads and writes use it.
//!
//! A read first looks up the cache, and admits the item that it had to read from the region. A write hides the key's
//! copy under the bucket's lock, before publishing, and shows the new copy when it is durable. This holds for puts,
//! removals, the reaper's removals, moves by compaction (which change the version), the writes of a batch, and, for all
//! keys, `clear`. Splits change nothing: a copy belongs to its key, wherever the entry is. Snapshots and scans read the
//! region. If reads compare checksums, a copy was compared when it was admitted. The index decides whether a missed key
//! exists.

use engine::{Error, Expiry, Limits, OnFound, OpenError, Witness};
use index::cached_table::{CacheStats, Clear, Copied, Lookup, LookupKey, NewCopy, Permit, Write, canary, is_durable};
use index::{CachedTable, Position};
use items::Item;
use pmem::{Dram, Medium};

use crate::item;
use crate::read::{COMPARED_FOR_PART_BYTES_MAX, Reader};

/// The read cache of a store, if it has one.
#[derive(Default)]
pub(crate) struct ReadCache(Option<CachedTable>);

/// A write's hidden copy in the read cache, if there is a cache.
pub(crate) type Hidden<'a, 'k> = Option<Write<'a, 'k>>;

fn copy_of<'a>(item: &Item<'a>, position: Position) -> NewCopy<'a> {
    let version = item::witness(item.header.checksum, position, item.expiry).words();
    NewCopy { value: item.value, version, expiry_ms: item.expiry.ms() }
}

impl ReadCache {
    /// Returns a cache of `limit_bytes`; none if that is 0.
    ///
    /// # Errors
    /// [`OpenError::Heap`] if the memory cannot be allocated.
    pub(crate) fn new(limit_bytes: u64, dram: impl Dram + 'static) -> Result<ReadCache, OpenError> {
        let table = (limit_bytes > 0).then(|| CachedTable::new(limit_bytes, dram)).transpose()?;
        table.iter().for_each(CachedTable::is_unfilled);
        Ok(ReadCache(table))
    }

    /// Returns false if the store has no cache.
    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn stats(&self) -> Option<CacheStats> {
        self.0.as_ref().map(CachedTable::stats)
    }

    /// As [`Reader::read`], from the cache if the key's value is there.
    #[inline(always)]
    pub(crate) fn read<M: Medium>(
        &self,
        reader: &Reader<M>,
        key: &[u8],
        compared_bytes_max: u64,
        found: &mut OnFound<'_>,
    ) -> Result<bool, Error> {
        match &self.0 {
            None => reader.read(key, compared_bytes_max, found),
            Some(cache) => {
                Limits::check_key(key)?;
                read_cached(cache, reader, key, compared_bytes_max != u64::MAX, found)
            }
        }
    }

    /// As [`Reader::get_group`].
    #[inline(always)]
    pub(crate) fn get_group<M: Medium>(
        &self,
        reader: &Reader<M>,
        keys: &[&[u8]],
        found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        match &self.0 {
            None => reader.get_group(keys, found),
            Some(cache) => get_each(cache, reader, keys, found),
        }
    }

    /// Hides the key's copy, before a write publishes the item `new` or removes the key, under the lock of the key's
    /// bucket.
    #[inline(always)]
    pub(crate) fn hide<'a, 'k, M: Medium>(
        &'a self,
        medium: &M,
        signature: u64,
        key: &'k [u8],
        new: Option<Position>,
    ) -> Hidden<'a, 'k> {
        self.0.as_ref().and_then(|cache| hide_one(cache, medium, LookupKey { bytes: key, signature }, new))
    }

    /// Hides the key's copy, before a batch publishes, under the locks of its buckets.
    pub(crate) fn hide_of_batch<'a, 'k, M: Medium>(
        &'a self,
        medium: &M,
        signature: u64,
        key: &'k [u8],
    ) -> Hidden<'a, 'k> {
        let cache = self.0.as_ref().filter(|_| !medium.breaks(canary::BATCH_HIDES_NOTHING));
        cache.and_then(|cache| hide_in(cache, medium, LookupKey { bytes: key, signature }))
    }

    /// Hides all copies, before the store is cleared.
    pub(crate) fn hide_all<M: Medium>(&self, medium: &M) -> Option<Clear<'_>> {
        let cache = self.0.as_ref().filter(|_| !medium.breaks(canary::CLEAR_HIDES_NOTHING));
        cache.map(CachedTable::begin_clear)
    }
}

#[inline(never)]
fn read_cached<M: Medium>(
    cache: &CachedTable,
    reader: &Reader<M>,
    key: &[u8],
    is_part: bool,
    found: &mut OnFound<'_>,
) -> Result<bool, Error> {
    let key = LookupKey { bytes: key, signature: reader.signature(key) };
    let show =
        |copied: Copied<'_>| found(Witness::of_words(copied.version), Expiry::at_ms(copied.expiry_ms), copied.value);
    let permit = match cache.lookup(key, || reader.clock().now_ms(), show) {
        Lookup::Hit(()) => return Ok(true),
        Lookup::Miss(permit) => permit,
        Lookup::Absent => None,
    };
    read_missed(cache, reader, key, permit.filter(|_| !is_part), is_part, found)
}

#[inline(never)]
fn read_missed<M: Medium>(
    cache: &CachedTable,
    reader: &Reader<M>,
    key: LookupKey<'_>,
    permit: Option<Permit>,
    is_part: bool,
    found: &mut OnFound<'_>,
) -> Result<bool, Error> {
    let _pin = epoch::pin();
    let Some((position, item)) = reader.find_unexpired(key.signature, key.bytes)? else { return Ok(false) };
    if !is_part || item.header.item_bytes() <= COMPARED_FOR_PART_BYTES_MAX {
        reader.verify_value(&item, position)?;
    }
    if let Some(permit) = permit.filter(|_| is_durable(reader.medium())) {
        cache.admit(permit, key, &copy_of(&item, position));
    }
    found(item::witness(item.header.checksum, position, item.expiry), item.expiry, item.value);
    Ok(true)
}

/// As [`Reader::get_group`], one key after the other.
#[inline(never)]
fn get_each<M: Medium>(
    cache: &CachedTable,
    reader: &Reader<M>,
    keys: &[&[u8]],
    mut found: impl FnMut(usize, Option<&[u8]>),
) -> Result<(), Error> {
    for (i, key) in keys.iter().enumerate() {
        if !read_cached(cache, reader, key, false, &mut |_, _, value| found(i, Some(value)))? {
            found(i, None);
        }
    }
    Ok(())
}

#[inline(never)]
fn hide_one<'a, 'k, M: Medium>(
    cache: &'a CachedTable,
    medium: &M,
    key: LookupKey<'k>,
    new: Option<Position>,
) -> Hidden<'a, 'k> {
    let mut hidden = hide_in(cache, medium, key);
    if medium.breaks(canary::COPY_SHOWN_EARLY) {
        reveal(medium, hidden.take(), new);
    }
    hidden
}

#[inline(always)]
fn hide_in<'a, 'k, M: Medium>(cache: &'a CachedTable, medium: &M, key: LookupKey<'k>) -> Hidden<'a, 'k> {
    (!medium.breaks(canary::COPY_HIDDEN_LATE)).then(|| cache.begin(key))
}

/// Shows the copy of a new item, or removes the copy, after the write is durable. The caller has been pinned since
/// before it published.
#[inline(always)]
pub(crate) fn reveal<M: Medium>(medium: &M, hidden: Hidden<'_, '_>, new: Option<Position>) {
    if let Some(hidden) = hidden {
        reveal_one(medium, hidden, new);
    }
}

#[inline(never)]
fn reveal_one<M: Medium>(medium: &M, hidden: Write<'_, '_>, new: Option<Position>) {
    if !is_durable(medium) {
        return;
    }
    let Some(position) = new else { return hidden.removed() };
    // SAFETY: it was published under the caller's pin, so its space is not reused.
    match unsafe { item::read(medium, position) } {
        Ok(item) => hidden.put(&copy_of(&item, position)),
        // A reader of the item gets the error.
        Err(_) => drop(hidden),
    }
}
