//! Reads: from the cached table, then from the region.

mod lookup;
mod many;

use engine::{Error, Expiry, OnFound, Verify, Witness};
use index::block_hash::Key;
use index::cached_table::{Copied, Lookup, NewCopy, Permit};
use pmem::Medium;

use crate::cached::{Cache, lookup_key};
use crate::keys::Keys;

pub(crate) use many::GROUP_COUNT;

/// The store's reads.
pub(crate) struct Reader<M> {
    keys: Keys<M>,
    cache: Cache,
}

/// The result of a lookup in the cached table.
enum Known {
    /// True if the caller was given the value; false if the key is absent.
    Certain(bool),
    /// The region has to be read.
    Unknown(Option<Permit>),
}

impl<M: Medium> Reader<M> {
    /// Creates a reader without a cached table.
    pub(crate) fn new(keys: Keys<M>) -> Reader<M> {
        Reader { keys, cache: Cache::default() }
    }

    #[inline(always)]
    pub(crate) fn keys(&self) -> &Keys<M> {
        &self.keys
    }

    pub(crate) fn keys_mut(&mut self) -> &mut Keys<M> {
        &mut self.keys
    }

    #[inline(always)]
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(crate) fn cache_mut(&mut self) -> &mut Cache {
        &mut self.cache
    }

    /// Calls `found` with the key's item, unless it has expired.
    #[inline(always)]
    pub(crate) fn read(&self, key: Key<'_>, is_part: bool, found: &mut OnFound<'_>) -> Result<bool, Error> {
        let permit = match self.lookup_copy(key, found) {
            Known::Certain(is_there) => return Ok(is_there),
            Known::Unknown(permit) => permit,
        };
        let _pin = epoch::pin();
        let Some(slot) = self.keys.find(key)? else { return Ok(false) };
        let Some(seen) = self.keys.readable_contents(&slot, is_part)? else { return Ok(false) };
        if !is_part {
            self.admit(permit, key, || seen.copy());
        }
        found(seen.witness(), seen.expiry, seen.value);
        Ok(true)
    }

    /// Calls `found` with the key's copy, if there is one.
    #[inline(always)]
    fn lookup_copy(&self, key: Key<'_>, found: &mut OnFound<'_>) -> Known {
        let Some(cache) = self.cache.table() else { return Known::Unknown(None) };
        let show = |copied: Copied<'_>| {
            found(Witness::of_words(copied.version), Expiry::at_ms(copied.expiry_ms), copied.value)
        };
        match cache.lookup(lookup_key(key), || self.keys.clock().now_ms(), show) {
            Lookup::Hit(()) => Known::Certain(true),
            Lookup::Absent if self.keys.verifies(Verify::Absence) => Known::Unknown(None),
            Lookup::Absent => Known::Certain(false),
            Lookup::Miss(permit) => Known::Unknown(permit),
        }
    }

    #[inline(always)]
    fn admit<'v>(&self, permit: Option<Permit>, key: Key<'_>, copy: impl FnOnce() -> NewCopy<'v>) {
        self.cache.admit(self.keys.medium(), permit, key, copy);
    }
}
