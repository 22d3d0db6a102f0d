//! Expiring keys: absent for every reader from their expiry on, and free space after the reaper's next round.
//!
//! The expiry is part of the item, so it is changed like the value: by a new item. The flag that the region holds such
//! items is durable before the first one is written (`heap/src/region.rs`, Features).
//!
//! An expiry counts only if the item's checksum matches: damage is an error, never absence.

use heap::FEATURE_EXPIRY;
use index::Position;
use pmem::Medium;

use crate::read::check_intact;
use crate::write::conditional::Change;
use crate::{HiKv, Memory};
use engine::{Clock, Error, Expiry};
use items::Item;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Returns the item unless it has expired.
    #[inline(always)]
    pub(crate) fn unexpired<'a>(&self, item: Item<'a>, position: Position) -> Result<Option<Item<'a>>, Error> {
        if !self.clock.is_past(item.expiry) {
            return Ok(Some(item));
        }
        check_intact(&item, position)?;
        Ok(None)
    }

    /// Returns the key's item unless it has expired. The caller is pinned.
    #[inline(always)]
    pub(crate) fn find_unexpired(&self, signature: u64, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        let Some((position, item)) = self.find(signature, key)? else { return Ok(None) };
        Ok(self.unexpired(item, position)?.map(|item| (position, item)))
    }

    /// Sets the feature flag before an item of this expiry is written.
    #[inline(always)]
    pub(crate) fn announce(&self, expiry: Expiry) {
        if !expiry.is_never() {
            self.heap.region().set_features(&self.medium, FEATURE_EXPIRY);
        }
    }

    /// Returns true if items may have expired that were not reaped yet.
    #[inline(always)]
    pub(crate) fn may_expire(&self) -> bool {
        self.heap.region().has_features(FEATURE_EXPIRY)
    }

    /// Changes the key's expiry; returns false if the key is absent. An expiry that has passed deletes the key.
    pub(crate) fn expire_at(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        let mut was_there = false;
        self.change(key, &mut |item| {
            was_there = item.is_some();
            match item {
                None => Change::Keep,
                Some(item) if item.expiry == expiry => Change::Keep,
                Some(_) if self.clock.is_past(expiry) => Change::Delete,
                Some(item) => Change::Put { value: item.value.into(), expiry },
            }
        })?;
        Ok(was_there)
    }

    /// Returns the key's expiry; `None` if the key is absent.
    pub(crate) fn expiry_of(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        let _pin = epoch::pin();
        let found = self.find_unexpired(self.hasher.signature(key), key)?;
        Ok(found.map(|(_, item)| item.expiry))
    }

    /// Sets the store's clock.
    #[must_use]
    pub fn by_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}
