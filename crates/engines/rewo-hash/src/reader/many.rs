//! Lookups of many keys, whose memory accesses overlap.

use std::array;

use engine::{Error, Lookup, empty_buffer};
use index::CachedTable;
use index::block_hash::{Candidate, Key};
use index::cached_table::PrefetchedCopy;
use pmem::Medium;

use super::Reader;

/// The number of keys that are looked up together: as many as a core has misses in flight, and a few more.
pub(crate) const GROUP_COUNT: usize = 16;

/// No key.
const NOTHING: Key<'static> = Key { bytes: &[], signature: 0 };

impl<M: Medium> Reader<M> {
    /// Calls `found` with the values of up to [`GROUP_COUNT`] keys, in order.
    ///
    /// Each key is looked up, or its earlier lookup is validated, when its turn comes: a reader that has seen one key
    /// after a concurrent batch must not see another key as before the batch.
    pub(crate) fn get_group(&self, keys: &[&[u8]], mut found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        let _pin = epoch::pin();
        let mut indexed_keys = [NOTHING; GROUP_COUNT];
        for (key, indexed) in keys.iter().zip(&mut indexed_keys) {
            *indexed = self.keys.key(key)?;
        }
        let indexed_keys = &indexed_keys[..keys.len().min(GROUP_COUNT)];
        match self.cache.table() {
            Some(cache) => self.get_copies(cache, indexed_keys, &mut found),
            None => self.get_stored(indexed_keys, &mut found),
        }
    }

    /// Gets a group like [`Reader::get_group`], from the cached table as far as it has the keys.
    fn get_copies(
        &self,
        cache: &CachedTable,
        keys: &[Key<'_>],
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let mut targets = [PrefetchedCopy::NONE; GROUP_COUNT];
        keys.iter().for_each(|key| cache.prefetch(key.signature));
        for (key, target) in keys.iter().zip(&mut targets) {
            *target = cache.prefetch_copy(key.signature);
            if !target.is_some() {
                _ = self.keys.table().prefetch(self.keys.medium(), key.signature);
            }
        }
        for (key, target) in keys.iter().zip(targets) {
            cache.prefetch_rest(target);
            if !target.is_some() {
                self.ask_for(&self.keys.table().candidate(self.keys.medium(), *key));
            }
        }
        for (i, key) in keys.iter().enumerate() {
            match self.lookup_cached(cache, *key, &mut empty_buffer()).unpack() {
                Lookup::Value(value) => found(i, Some(value)),
                Lookup::Absent => found(i, None),
                Lookup::Unsure => self.read_one(i, *key, found)?,
            }
        }
        Ok(())
    }

    /// Gets a group like [`Reader::get_group`], from the region.
    fn get_stored(&self, keys: &[Key<'_>], found: &mut impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().for_each(|key| _ = self.keys.table().prefetch(self.keys.medium(), key.signature));
        let candidates: [Option<Candidate<'_, M>>; GROUP_COUNT] = array::from_fn(|i| {
            let candidate = self.keys.table().candidate(self.keys.medium(), *keys.get(i)?);
            self.ask_for(&candidate);
            Some(candidate)
        });
        for (i, (key, candidate)) in keys.iter().zip(candidates.iter().flatten()).enumerate() {
            let lookup = self.keys.table().lookup_candidate(candidate, *key);
            match self.pack_lookup(lookup, *key, None, &mut empty_buffer()).unpack() {
                Lookup::Value(value) => found(i, Some(value)),
                Lookup::Absent => found(i, None),
                Lookup::Unsure => self.read_one(i, *key, found)?,
            }
        }
        Ok(())
    }

    /// Prefetches the item of a candidate.
    #[inline(always)]
    fn ask_for(&self, candidate: &Candidate<'_, M>) {
        let Some(position) = candidate.position() else { return };
        items::request(self.keys.medium(), position.offset(), position.slot_bytes());
    }

    #[cold]
    #[inline(never)]
    fn read_one(&self, i: usize, key: Key<'_>, found: &mut impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        if !self.read(key, false, &mut |_, _, value| found(i, Some(value)))? {
            found(i, None);
        }
        Ok(())
    }
}
