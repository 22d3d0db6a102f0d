//! Puts, with splits, and deletes.

use arrayvec::ArrayVec;
use epoch::pin;
use index::Position;
use pmem::{Dram, Level, Medium};

use super::FpTree;
use super::leaf::{ENTRY_COUNT_MAX, Leaf, leaf_bytes};
use super::log::Change;
use crate::canary;
use crate::key::{Key, KeyBytes};
use crate::tree::TreeResult;
use crate::version::Version;

/// A locked leaf, which is unlocked when dropped.
pub(super) struct Locked<'a, M: Medium>(pub(super) Leaf<'a, M>);

impl<M: Medium> Drop for Locked<'_, M> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl<M: Medium, D: Dram> FpTree<M, D> {
    /// Locks the leaf for `key`.
    #[inline(always)]
    fn lock(&self, key: Key) -> Locked<'_, M> {
        loop {
            let (leaf, version) = self.seek(key);
            if leaf.try_lock(version) {
                return Locked(leaf);
            }
        }
    }

    /// Waits until everything flushed is durable.
    #[inline(always)]
    pub(super) fn wait(&self) -> TreeResult<()> {
        let ticket = self.records.medium.commit(Level::Strongest);
        Ok(self.records.medium.wait(ticket)?)
    }

    /// Puts, and calls `done` when that is durable, while the leaf is still locked.
    #[inline(always)]
    pub(crate) fn put_record(&self, bytes: &KeyBytes, value: &[u8], done: impl FnOnce()) -> TreeResult<()> {
        let _pin = pin();
        let (key, fingerprint) = (Key::of(bytes), self.fingerprint(bytes));
        let record = self.records.write(bytes, value)?;
        let locked = self.lock(key);
        if locked.0.bitmap() != self.full() {
            self.put_entry(locked.0, (key, fingerprint), Position::of(record.publish()))?;
            done();
            return Ok(());
        }
        let (split_key, right) = self.split(locked.0)?;
        let leaf = if key <= split_key { locked.0 } else { right.0 };
        self.put_entry(leaf, (key, fingerprint), Position::of(record.publish()))?;
        done();
        Ok(())
    }

    /// Puts into a locked leaf that has a free entry.
    #[inline(always)]
    fn put_entry(&self, leaf: Leaf<'_, M>, (key, fingerprint): (Key, u8), position: Position) -> TreeResult<()> {
        let (medium, bitmap) = (&self.records.medium, leaf.bitmap());
        let old = leaf.find(key, fingerprint, &());
        let entry = u64::from(bitmap.trailing_ones());
        leaf.write_entry(entry, key, position);
        medium.order();
        leaf.write_fingerprint(entry, fingerprint);
        medium.order_unless(canary::FPTREE_BITMAP_BEFORE_FINGERPRINT);
        let old_bit = old.map_or(0, |old| 1 << old);
        if medium.breaks(canary::FPTREE_OLD_BIT_OFF_FIRST) {
            leaf.set_bitmap(bitmap & !old_bit);
            medium.order();
        }
        leaf.set_bitmap(bitmap & !old_bit | 1 << entry);
        self.wait()?;
        if let Some(old) = old {
            self.records.retire(leaf.position(old));
        }
        Ok(())
    }

    /// Splits a locked, full leaf. Returns the greatest key that stays, and the new leaf, locked.
    #[cold]
    fn split(&self, left: Leaf<'_, M>) -> TreeResult<(Key, Locked<'_, M>)> {
        let medium = &self.records.medium;
        let place = self.records.reserve(leaf_bytes(self.entry_count))?.publish();
        let mut keys: ArrayVec<(Key, u64), { ENTRY_COUNT_MAX as usize }> =
            left.entries().map(|entry| (left.key(entry), entry)).collect();
        keys.sort_unstable();
        let (lower, upper) = keys.split_at(keys.len() / 2);
        let split_key = lower[lower.len() - 1].0;
        let upper_bits = upper.iter().fold(0, |bits, (_, entry)| bits | 1 << entry);

        let (right, log) = (self.leaf(place.offset), self.logs.take());
        let is_late = medium.breaks(canary::FPTREE_LOG_NOT_ORDERED);
        let change = Change::Split { leaf: left.at, new: right.at };
        if !is_late {
            log.begin(medium, change);
        }
        right.set_version(Version::FIRST_LOCKED);
        right.copy_from(left, upper_bits, self.entry_count);
        medium.order_unless(canary::FPTREE_NEXT_BEFORE_LEAF);
        if is_late {
            log.begin(medium, change);
        }
        left.set_bitmap(self.full() & !upper_bits);
        medium.order();
        left.set_next(right.at);
        medium.order();
        log.end(medium);
        self.inner.insert(split_key, right.at);
        self.reshapes.count_split();
        Ok((split_key, Locked(right)))
    }

    /// Deletes, and calls `done` when that is durable, while the leaf is still locked.
    pub(crate) fn delete_entry(&self, bytes: &KeyBytes, done: impl Fn()) -> TreeResult<bool> {
        let _pin = pin();
        let (key, fingerprint) = (Key::of(bytes), self.fingerprint(bytes));
        let locked = self.lock(key);
        let leaf = locked.0;
        let Some(entry) = leaf.find(key, fingerprint, &()) else { return Ok(false) };
        let (position, bitmap) = (leaf.position(entry), leaf.bitmap() & !(1 << entry));
        if bitmap != 0 || !self.try_unlink(leaf, key, &done)? {
            leaf.set_bitmap(bitmap);
            self.wait()?;
            done();
        } else {
            // The leaf is obsolete and has no lock to release.
            std::mem::forget(locked);
        }
        self.records.retire(position);
        Ok(true)
    }
}
