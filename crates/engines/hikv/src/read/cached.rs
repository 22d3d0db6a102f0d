//! The read cache (`index::cached_table`), as this engine's reads and writes use it.
//!
//! A read first looks up the cache, and admits the item that it had to read from the region. A write hides the key's
//! copy under the bucket's lock, before publishing, and shows the new copy when it is durable. This holds for puts,
//! removals, the reaper's removals, moves by compaction (which change the version), the writes of a batch, and, for all
//! keys, `clear`. Splits change nothing: a copy belongs to its key, wherever the entry is. Snapshots and scans read the
//! region. If reads compare checksums, a copy was compared when it was admitted. The index decides whether a missed key
//! exists.

use engine::{Error, OpenError, Witness};
use index::CachedTable;
use index::Position;
use index::cached_table::{Clear, Copied, Lookup, LookupKey, NewCopy, Permit, Write, canary, is_durable};
use items::Item;
use pmem::{Dram, Medium};

use crate::write::publish::Hidden;
use crate::{HiKv, Memory, item};

fn copy_of<'a>(item: &Item<'a>, position: Position) -> NewCopy<'a> {
    let version = item::witness(item.header.checksum, position, item.expiry).words();
    NewCopy { value: item.value, version, expiry_ms: item.expiry.ms() }
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Gives the store a read cache of `limit_bytes`; none if that is 0.
    ///
    /// # Errors
    /// [`OpenError::Heap`] if the memory cannot be allocated.
    pub fn caching(mut self, limit_bytes: u64, dram: impl Dram + 'static) -> Result<HiKv<M, D>, OpenError> {
        self.cache = (limit_bytes > 0).then(|| CachedTable::new(limit_bytes, dram)).transpose()?;
        self.cache.iter().for_each(CachedTable::is_unfilled);
        Ok(self)
    }

    /// Passes the key's value to `found`, from the cache if it is there.
    #[inline(never)]
    pub(crate) fn read_cached(
        &self,
        cache: &CachedTable,
        key: &[u8],
        is_part: bool,
        found: &mut dyn FnMut(Witness, &[u8]),
    ) -> Result<bool, Error> {
        let key = LookupKey { bytes: key, signature: self.hasher.signature(key) };
        let show = |copied: Copied<'_>| found(Witness::of_words(copied.version), copied.value);
        let permit = match cache.lookup(key, || self.clock.now_ms(), show) {
            Lookup::Hit(()) => return Ok(true),
            Lookup::Miss(permit) => permit,
            Lookup::Absent => None,
        };
        self.read_missed(cache, key, permit.filter(|_| !is_part), is_part, found)
    }

    #[inline(never)]
    fn read_missed(
        &self,
        cache: &CachedTable,
        key: LookupKey<'_>,
        permit: Option<Permit>,
        is_part: bool,
        found: &mut dyn FnMut(Witness, &[u8]),
    ) -> Result<bool, Error> {
        let _pin = epoch::pin();
        let Some((position, item)) = self.find_unexpired(key.signature, key.bytes)? else { return Ok(false) };
        if !is_part || item.header.item_bytes() <= super::COMPARED_FOR_PART_BYTES_MAX {
            self.verify_value(&item, position)?;
        }
        if let Some(permit) = permit.filter(|_| is_durable(&self.medium)) {
            cache.admit(permit, key, &copy_of(&item, position));
        }
        found(item::witness(item.header.checksum, position, item.expiry), item.value);
        Ok(true)
    }

    /// Hides the key's copy, before a write publishes, under the lock of the key's bucket.
    #[inline(always)]
    pub(crate) fn hide<'k>(&self, signature: u64, key: &'k [u8]) -> Hidden<'_, 'k> {
        self.cache.as_ref().and_then(|cache| self.hide_in(cache, LookupKey { bytes: key, signature }))
    }

    #[inline(never)]
    fn hide_in<'a, 'k>(&'a self, cache: &'a CachedTable, key: LookupKey<'k>) -> Hidden<'a, 'k> {
        (!self.medium.breaks(canary::COPY_HIDDEN_LATE)).then(|| cache.begin(key))
    }

    /// Hides the key's copy, before a batch publishes, under the locks of its buckets.
    pub(crate) fn hide_of_batch<'k>(&self, signature: u64, key: &'k [u8]) -> Hidden<'_, 'k> {
        if self.medium.breaks(canary::BATCH_HIDES_NOTHING) { None } else { self.hide(signature, key) }
    }

    /// Shows the copy of a new item, or removes the copy, after the write is durable. The caller has been pinned since
    /// before it published.
    #[inline(always)]
    pub(crate) fn reveal(&self, hidden: Hidden<'_, '_>, new: Option<Position>) {
        if let Some(hidden) = hidden {
            self.reveal_in(hidden, new);
        }
    }

    #[inline(never)]
    fn reveal_in(&self, hidden: Write<'_, '_>, new: Option<Position>) {
        if !is_durable(&self.medium) {
            return;
        }
        let Some(position) = new else { return hidden.removed() };
        // SAFETY: it was published under the caller's pin, so its space is not reused.
        match unsafe { item::read(&self.medium, position) } {
            Ok(item) => hidden.put(&copy_of(&item, position)),
            // A reader of the item gets the error.
            Err(_) => drop(hidden),
        }
    }

    /// Hides all copies, before the store is cleared.
    pub(crate) fn hide_all(&self) -> Option<Clear<'_>> {
        let cache = self.cache.as_ref().filter(|_| !self.medium.breaks(canary::CLEAR_HIDES_NOTHING));
        cache.map(CachedTable::begin_clear)
    }

    /// As [`HiKv::get_group`], one key after the other.
    #[inline(never)]
    pub(crate) fn get_each(
        &self,
        cache: &CachedTable,
        keys: &[&[u8]],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        for (i, key) in keys.iter().enumerate() {
            if !self.read_cached(cache, key, false, &mut |_, value| found(i, Some(value)))? {
                found(i, None);
            }
        }
        Ok(())
    }
}
