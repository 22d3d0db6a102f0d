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
use pmem::Medium;

use super::Reader;
use crate::cached::lookup_key;
use crate::contents::{witness_of_item, witness_of_small};

impl<M: Medium> Reader<M> {
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
        let Ok(key) = self.keys.key(key) else { return PackedLookup::UNSURE };
        match self.cache.table() {
            Some(cache) => self.lookup_cached(cache, key, buffer),
            None => self.pack_lookup(self.keys.table().lookup(self.keys.medium(), key), key, None, buffer),
        }
    }

    /// Looks a key up like [`Reader::lookup_value`], in the cached table first.
    #[inline(always)]
    pub(crate) fn lookup_cached<'a>(
        &'a self,
        cache: &CachedTable,
        key: Key<'_>,
        buffer: &'a mut ValueBuffer,
    ) -> PackedLookup<'a> {
        match cache.take(lookup_key(key), buffer) {
            Taken::Value(value) => PackedLookup::at(value),
            Taken::Absent if !self.keys.verifies(Verify::Absence) => PackedLookup::ABSENT,
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
        self.pack_lookup(self.keys.table().lookup(self.keys.medium(), key), key, permit, buffer)
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
            Lookup::Item(position) => {
                // All of its lines are loaded together.
                items::prefetch(self.keys.medium(), position.offset(), position.slot_bytes());
                match self.keys.plain_at(position, key) {
                    Some(item) if !self.keys.verifies(Verify::Values) || item.is_intact() => {
                        self.admit(permit, key, || copy_of(position, &item));
                        PackedLookup::at(item.value())
                    }
                    _ => PackedLookup::UNSURE,
                }
            }
            Lookup::Whole(slot) if !self.keys.verifies(Verify::Values) || slot.is_intact() => {
                let Content::Whole { value, .. } = slot.content() else { return PackedLookup::UNSURE };
                self.admit(permit, key, || copy_of_small(value));
                PackedLookup::copied(value, buffer)
            }
            Lookup::Nothing if !self.keys.verifies(Verify::Absence) => PackedLookup::ABSENT,
            _ => PackedLookup::UNSURE,
        }
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
