//! The fast path of writes: all steps, where a lookup in the key's two buckets is enough.
//!
//! That holds for most keys: the key is in one slot of its buckets, or in none; an old item outside the table is in a
//! slot of a size class; neither the old nor the new item expires. Otherwise nothing has been changed yet, and `write`
//! does everything from the beginning, with the buckets unlocked.
//!
//! # No lock after streamed stores
//! A locked instruction waits for streamed stores. So space is reserved, the buckets are locked and the key's copy is
//! hidden before the item is written, while the old item's line is being loaded. There is no locked instruction from
//! the item's first byte to the commit ([decision
//! 40](../../../../docs/decisions/0040-acknowledge-a-pmekv-write-with-one-fence.md)).

use engine::{Error, Outcome, PriorState, Verify};
use index::block_hash::{At, Key, LockedLookup, Slot};
use index::cached_table::{Write, canary};
use items::NewItem;
use pmem::{Dram, Medium};

use super::{Prepared, Writer};
use crate::cached::reveal;

/// Longer items are written before the buckets are locked, so that other threads do not wait for a long write.
const WRITTEN_LOCKED_BYTES_MAX: u64 = 2048;

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Puts a key, unless the region is full. This is not in a loop: the compiler would precompute everything that
    /// depends on the item's lengths, and keep it in memory.
    #[inline(never)]
    pub(crate) fn try_put(&self, key: Key<'_>, item: &NewItem<'_>) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let target = self.prefetch(key);
        if item.item_bytes() > WRITTEN_LOCKED_BYTES_MAX || !item.expiry.is_never() {
            return self.write(key, &mut Some(self.prepare(key, item)?), &mut |_| true);
        }
        let mut new = self.prepare_unwritten(key, item)?;
        let buckets = self.table().lock_target(self.cx(), target, key.signature);
        self.cache().table().into_iter().for_each(|cache| cache.prefetch_for_write(key.signature, item.item_bytes()));
        let lookup = buckets.lookup(key);
        self.prefetch_old(&lookup);
        let mut hidden = self.cache().hide_in_time(self.medium(), key);
        self.write_prepared(&mut new, item);
        if !self.is_clear(&lookup, key) {
            hidden.into_iter().for_each(Write::unchanged);
            drop(buckets);
            return self.put_after_all(key, new);
        }
        self.cache().hand_over(self.keys(), &mut hidden, Some(&new.new));
        if self.medium().breaks(canary::COPY_SHOWN_EARLY) {
            reveal(self.keys(), hidden.take(), Some(&new.new));
        }
        let (old, published) = match lookup {
            LockedLookup::Entry(old) => (Some(old.slot), buckets.replace(&old, &new.new.slot)),
            LockedLookup::Nothing | LockedLookup::Unsure => match buckets.insert(&new.new.slot) {
                Ok(published) => (None, published),
                Err(_) => {
                    hidden.into_iter().for_each(Write::unchanged);
                    return self.put_after_all(key, new);
                }
            },
        };
        let entered = new.new;
        new.publish(&self.expiring);
        if old.is_none() {
            self.key_changes.added(key.bytes);
        }
        self.finish(key, published, hidden, Some(&entered), old.as_ref())?;
        Ok(Outcome::found(if old.is_some() { PriorState::Present } else { PriorState::Absent }))
    }

    /// Deletes a key. The caller reports an expired item.
    #[inline(never)]
    pub(crate) fn try_delete(&self, key: Key<'_>) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let target = self.prefetch(key);
        let buckets = self.table().lock_target(self.cx(), target, key.signature);
        let old = match buckets.lookup(key) {
            LockedLookup::Entry(old) if self.is_plain(&old, key) => old,
            _ => {
                drop(buckets);
                return self.delete_after_all(key);
            }
        };
        let mut hidden = self.cache().hide_in_time(self.medium(), key);
        if self.medium().breaks(canary::COPY_SHOWN_EARLY) {
            reveal(self.keys(), hidden.take(), None);
        }
        let published = buckets.remove(&old);
        self.key_changes.removed(key.bytes);
        self.finish(key, published, hidden, None, Some(&old.slot))?;
        Ok(Outcome::found(PriorState::Present))
    }

    #[cold]
    #[inline(never)]
    fn put_after_all(&self, key: Key<'_>, new: Prepared<'_, '_, D>) -> Result<Outcome, Error> {
        self.write(key, &mut Some(new), &mut |_| true)
    }

    #[cold]
    #[inline(never)]
    fn delete_after_all(&self, key: Key<'_>) -> Result<Outcome, Error> {
        self.write(key, &mut None, &mut |_| true)
    }

    /// Returns true if the lookup is enough for the put.
    #[inline(always)]
    fn is_clear(&self, lookup: &LockedLookup, key: Key<'_>) -> bool {
        match lookup {
            LockedLookup::Entry(old) => self.is_plain(old, key),
            LockedLookup::Nothing => !self.keys().verifies(Verify::Absence),
            LockedLookup::Unsure => false,
        }
    }

    /// Returns true if the slot has the key, and its item does not expire. The caller is pinned.
    #[inline(always)]
    fn is_plain(&self, At { slot, .. }: &At, key: Key<'_>) -> bool {
        slot.position().is_none_or(|position| self.keys().plain_at(position, key).is_some())
    }

    /// Prefetches the old item. The caller is pinned.
    #[inline(always)]
    fn prefetch_old(&self, lookup: &LockedLookup) {
        if let LockedLookup::Entry(At { slot, .. }) = lookup
            && let Some(position) = Slot::position(slot)
        {
            self.medium().prefetch_line(position.offset());
        }
    }
}
