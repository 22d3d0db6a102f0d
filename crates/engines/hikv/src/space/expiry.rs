//! Expiring keys: absent for every reader from their expiry on, and free space after the reaper's next round.
//!
//! The expiry is part of the item, so it is changed like the value: by a new item. The flag that the region holds such
//! items is durable before the first one is written (`heap/src/region.rs`, Features).
//!
//! An expiry counts only if the item's checksum matches: damage is an error, never absence.

use heap::FEATURE_EXPIRY;
use pmem::Medium;

use crate::write::conditional::Change;
use crate::{HiKv, Memory};
use engine::{Error, Expiry};

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Sets the feature flag before an item of this expiry is written.
    #[inline(always)]
    pub(crate) fn announce(&self, expiry: Expiry) {
        if !expiry.is_never() {
            self.heap.set_features(self.reader.medium(), FEATURE_EXPIRY);
        }
    }

    /// Returns true if items may have expired that were not reaped yet.
    #[inline(always)]
    pub(crate) fn may_expire(&self) -> bool {
        self.heap.has_features(FEATURE_EXPIRY)
    }

    /// Changes the key's expiry; returns false if the key is absent. An expiry that has passed deletes the key.
    pub(crate) fn expire_at(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        let mut was_there = false;
        self.change(key, &mut |item| {
            was_there = item.is_some();
            match item {
                None => Change::Keep,
                Some(item) if item.expiry == expiry => Change::Keep,
                Some(_) if self.reader.clock().is_past(expiry) => Change::Delete,
                Some(item) => Change::Put { value: item.value.into(), expiry },
            }
        })?;
        Ok(was_there)
    }
}
