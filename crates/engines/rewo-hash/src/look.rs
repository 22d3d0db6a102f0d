//! A look at a key: its value by pointer and length, of a copy, of the item in the region, or taken out of the slot.
//!
//! Where a look is not sure a search comes (`read`).

use std::mem::MaybeUninit;

use engine::{Expiry, Look, Room, Verify};
use index::block_hash::{Content, Glance, Key};
use index::cached_table::{NewCopy, Permit, Taken};
use index::{CachedTable, Position};
use items::Plain;
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::cached::sought;
use crate::read::{witness_of_item, witness_of_small};

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// The key's value, if a look tells it. The caller is pinned.
    #[inline(always)]
    pub(crate) fn look_for<'a>(&'a self, key: &[u8], room: &'a mut Room) -> Look<'a> {
        // The compiler knows that a key has two words, and asks for its length no more.
        if (9..=16).contains(&key.len()) { self.look_at(key, room) } else { self.look_at_any(key, room) }
    }

    #[inline(never)]
    fn look_at_any<'a>(&'a self, key: &[u8], room: &'a mut Room) -> Look<'a> {
        self.look_at(key, room)
    }

    #[inline(always)]
    fn look_at<'a>(&'a self, key: &[u8], room: &'a mut Room) -> Look<'a> {
        let Ok(key) = self.key(key) else { return Look::UNSURE };
        match &self.cache {
            Some(cache) => self.look_in(cache, key, room),
            None => self.look_by(self.table.glance(&self.medium, key), key, None, room),
        }
    }

    /// As [`RewoHash::look_for`], in the cached table first.
    #[inline(always)]
    pub(crate) fn look_in<'a>(&'a self, cache: &CachedTable, key: Key<'_>, room: &'a mut Room) -> Look<'a> {
        match cache.take(sought(key), room) {
            Taken::Value(value) => Look::at(value),
            Taken::Absent if self.verify < Verify::Absence => Look::ABSENT,
            Taken::Absent | Taken::Unfit => Look::UNSURE,
            Taken::Missed(permit, room) => self.look_missed(key, permit, room),
        }
    }

    #[inline(never)]
    fn look_missed<'a>(&'a self, key: Key<'_>, permit: Option<Permit>, room: &'a mut [MaybeUninit<u64>]) -> Look<'a> {
        self.look_by(self.table.glance(&self.medium, key), key, permit, room)
    }

    /// The key's value by what a look at its buckets told. The caller is pinned.
    #[inline(always)]
    pub(crate) fn look_by<'a>(
        &'a self,
        glance: Glance,
        key: Key<'_>,
        permit: Option<Permit>,
        room: &'a mut [MaybeUninit<u64>],
    ) -> Look<'a> {
        match glance {
            Glance::Item(position) => match self.plain_of(position, key) {
                Some(item) if self.verify < Verify::Values || item.is_whole() => {
                    self.bring_in(permit, key, || copy_of(position, &item));
                    Look::at(item.value())
                }
                _ => Look::UNSURE,
            },
            Glance::Whole(slot) if self.verify < Verify::Values || slot.is_whole() => {
                let Content::Whole { value, .. } = slot.content() else { return Look::UNSURE };
                self.bring_in(permit, key, || copy_of_small(value));
                Look::copied(value, room)
            }
            Glance::Nothing if self.verify < Verify::Absence => Look::ABSENT,
            _ => Look::UNSURE,
        }
    }

    /// The key's item, all of whose lines are asked for at once.
    #[inline(always)]
    fn plain_of(&self, position: Position, key: Key<'_>) -> Option<Plain<'_>> {
        items::prefetch(&self.medium, position.offset(), position.slot_bytes());
        self.plain_at(position, key)
    }

    /// The key's item, if `position` names it, in a slot of a size class and without expiry. The caller is pinned.
    #[inline(always)]
    pub(crate) fn plain_at(&self, position: Position, key: Key<'_>) -> Option<Plain<'_>> {
        let room = position.offset().span(position.slot_bytes()?);
        // SAFETY: the table shows positions to pinned callers; nobody stores to what lies behind the item in its slot.
        Plain::of_key(unsafe { self.medium.bytes(room) }.ok()?, key.bytes)
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
