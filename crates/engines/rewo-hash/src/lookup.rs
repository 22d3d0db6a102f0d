//! A lookup of a key. It returns the value by pointer and length: of a copy, of the item in the region, or taken out of
//! the slot.
//!
//! If the lookup is unsure, the caller uses `find` (`read`).

use std::mem::MaybeUninit;

use engine::{Expiry, PackedLookup, ValueBuffer, Verify};
use index::block_hash::{Content, Key, Lookup};
use index::cached_table::{NewCopy, Permit, Taken};
use index::{CachedTable, Position};
use items::Plain;
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::cached::lookup_key;
use crate::read::{witness_of_item, witness_of_small};

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Looks the key's value up in one attempt. The caller is pinned.
    #[inline(always)]
    pub(crate) fn lookup_value<'a>(&'a self, key: &[u8], buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        // The compiler knows that the key has two words, and does not check its length again.
        if (9..=16).contains(&key.len()) {
            self.lookup_inline(key, buffer)
        } else {
            self.lookup_any_length(key, buffer)
        }
    }

    #[inline(never)]
    fn lookup_any_length<'a>(&'a self, key: &[u8], buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        self.lookup_inline(key, buffer)
    }

    #[inline(always)]
    fn lookup_inline<'a>(&'a self, key: &[u8], buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        let Ok(key) = self.key(key) else { return PackedLookup::UNSURE };
        match &self.cache {
            Some(cache) => self.lookup_cached(cache, key, buffer),
            None => self.pack_lookup(self.table.lookup(&self.medium, key), key, None, buffer),
        }
    }

    /// Looks a key up like [`RewoHash::lookup_value`], in the cached table first.
    #[inline(always)]
    pub(crate) fn lookup_cached<'a>(
        &'a self,
        cache: &CachedTable,
        key: Key<'_>,
        buffer: &'a mut ValueBuffer,
    ) -> PackedLookup<'a> {
        match cache.take(lookup_key(key), buffer) {
            Taken::Value(value) => PackedLookup::at(value),
            Taken::Absent if self.verify < Verify::Absence => PackedLookup::ABSENT,
            Taken::Absent | Taken::Unfit => PackedLookup::UNSURE,
            Taken::Missed(permit, buffer) => self.lookup_missed(key, permit, buffer),
        }
    }

    #[inline(never)]
    fn lookup_missed<'a>(
        &'a self,
        key: Key<'_>,
        permit: Option<Permit>,
        buffer: &'a mut [MaybeUninit<u64>],
    ) -> PackedLookup<'a> {
        self.pack_lookup(self.table.lookup(&self.medium, key), key, permit, buffer)
    }

    /// Converts the result of a lookup in the key's buckets. The caller is pinned.
    #[inline(always)]
    pub(crate) fn pack_lookup<'a>(
        &'a self,
        lookup: Lookup,
        key: Key<'_>,
        permit: Option<Permit>,
        buffer: &'a mut [MaybeUninit<u64>],
    ) -> PackedLookup<'a> {
        match lookup {
            Lookup::Item(position) => match self.plain_of(position, key) {
                Some(item) if self.verify < Verify::Values || item.is_intact() => {
                    self.admit(permit, key, || copy_of(position, &item));
                    PackedLookup::at(item.value())
                }
                _ => PackedLookup::UNSURE,
            },
            Lookup::Whole(slot) if self.verify < Verify::Values || slot.is_intact() => {
                let Content::Whole { value, .. } = slot.content() else { return PackedLookup::UNSURE };
                self.admit(permit, key, || copy_of_small(value));
                PackedLookup::copied(value, buffer)
            }
            Lookup::Nothing if self.verify < Verify::Absence => PackedLookup::ABSENT,
            _ => PackedLookup::UNSURE,
        }
    }

    /// Returns the key's item, and prefetches all of its lines together.
    #[inline(always)]
    fn plain_of(&self, position: Position, key: Key<'_>) -> Option<Plain<'_>> {
        items::prefetch(&self.medium, position.offset(), position.slot_bytes());
        self.plain_at(position, key)
    }

    /// Returns the key's item if `position` names it, in a slot of a size class and without expiry. The caller is
    /// pinned.
    #[inline(always)]
    pub(crate) fn plain_at(&self, position: Position, key: Key<'_>) -> Option<Plain<'_>> {
        let buffer = position.offset().span(position.slot_bytes()?);
        // SAFETY: the table returns positions to pinned callers; no thread stores to the bytes after the item in its
        // slot.
        Plain::of_key(unsafe { self.medium.bytes(buffer) }.ok()?, key.bytes)
    }
}

fn copy_of<'a>(position: Position, item: &Plain<'a>) -> NewCopy<'a> {
    NewCopy {
        value: item.value(),
        version: witness_of_item(position, item.checksum(), Expiry::NEVER).words(),
        expiry_ms: Expiry::NEVER.ms(),
    }
}

fn copy_of_small(value: &[u8]) -> NewCopy<'_> {
    NewCopy { value, version: witness_of_small(value).words(), expiry_ms: Expiry::NEVER.ms() }
}
