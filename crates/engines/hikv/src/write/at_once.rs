//! The fast path of writes: steps 3 to 6 if reading the home line is enough.
//!
//! That holds for most keys: the entry is in its home line, or absent, and has no mark. The old item, if there is one,
//! is in a slot, and neither item expires. No snapshot was taken since the new item was stamped, and none is live. The
//! key's queue has a free place. Otherwise nothing has been changed yet, and `publish` does all of it from the
//! beginning, with the bucket unlocked.

use epoch::Pin;
use index::cached_table::{Write, canary as cached_table};
use index::partitioned_hash::{Candidate, LockedLookup, Target};
use pmem::{Medium, Offset};

use crate::cache::reveal;
use crate::order::Written;
use crate::write::publish::{Laid, WriteTarget};
use crate::{HiKv, Memory};
use engine::{Error, PriorState};

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Publishes `new`, whose item was written and flushed.
    #[inline(always)]
    pub(crate) fn publish_at_once(
        &self,
        pin: Pin,
        target: &Target<'_>,
        candidate: Option<Candidate>,
        key: &[u8],
        new: Laid,
    ) -> Result<(), Error> {
        let Some(bucket) = self.reader.index().lock_target(self.cx(), target) else {
            return self.publish_after_all(pin, target.signature(), key, new);
        };
        let lookup = bucket.lookup_candidate(target, candidate);
        let is_clear = match lookup {
            LockedLookup::Entry(found) => self.reader.plain_of(found.position, key).is_some(),
            LockedLookup::Free(_) | LockedLookup::Full => self.reader.trusts_absence(),
            LockedLookup::Unsure => false,
        };
        if !is_clear || !new.expiry.is_never() || !self.snapshots.has_no_snapshot(new.stamp) {
            drop(bucket);
            return self.publish_after_all(pin, target.signature(), key, new);
        }
        let Some(ticket) = self.order.take(|| self.reader.index().partition(target.signature())) else {
            drop(bucket);
            return self.publish_after_all(pin, target.signature(), key, new);
        };
        let position = new.position;
        let mut hidden = self.cache.hide(self.reader.medium(), target.signature(), key);
        if self.reader.medium().breaks(cached_table::COPY_SHOWN_EARLY) {
            reveal(self.reader.medium(), hidden.take(), Some(position));
        }
        let (old, published) = match lookup {
            LockedLookup::Entry(found) => (Some(found.position), bucket.replace_found(&found, position)),
            LockedLookup::Free(slot) => (None, bucket.insert_at(slot, position)),
            LockedLookup::Full | LockedLookup::Unsure => match bucket.insert(position) {
                Ok(published) => (None, published),
                Err(_) => {
                    hidden.into_iter().for_each(Write::unchanged);
                    drop(ticket);
                    return self.publish_after_all(pin, target.signature(), key, new);
                }
            },
        };
        let crowded = published.crowded;
        self.settle_parts(Written { key, old, new: Some(position) }, published, ticket, &mut hidden)?;
        if let Some(segment) = crowded {
            self.split(target.signature(), segment);
        }
        Ok(())
    }

    /// Removes the key; returns false if it was absent.
    #[inline(always)]
    pub(crate) fn remove_at_once(&self, key: &[u8]) -> Result<bool, Error> {
        let pin = epoch::pin();
        let target = self.reader.index().prefetch(self.reader.medium(), self.reader.signature(key));
        target.prefetch_count();
        let candidate = self.reader.prefetch_old(&target);
        let Some(bucket) = self.reader.index().lock_target(self.cx(), &target) else {
            return self.remove_after_all(pin, target.signature(), key);
        };
        let found = match bucket.lookup_candidate(&target, candidate) {
            LockedLookup::Entry(found)
                if self.reader.plain_of(found.position, key).is_some()
                    && self.snapshots.has_no_snapshot(self.stamp()) =>
            {
                found
            }
            _ => {
                drop(bucket);
                return self.remove_after_all(pin, target.signature(), key);
            }
        };
        let Some(ticket) = self.order.take(|| self.reader.index().partition(target.signature())) else {
            drop(bucket);
            return self.remove_after_all(pin, target.signature(), key);
        };
        let mut hidden = self.cache.hide(self.reader.medium(), target.signature(), key);
        let published = bucket.remove_found(&found);
        self.settle_parts(Written { key, old: Some(found.position), new: None }, published, ticket, &mut hidden)?;
        Ok(true)
    }

    /// Splits a segment whose stash fills up. The item is already in; if the split finds no space now, a later put
    /// tries again.
    #[cold]
    pub(crate) fn split(&self, signature: u64, segment: Offset) {
        let _ = self.reader.index().split(self.cx(), signature, segment);
    }

    #[cold]
    #[inline(never)]
    fn publish_after_all(&self, pin: Pin, signature: u64, key: &[u8], new: Laid) -> Result<(), Error> {
        self.publish_waiting(pin, WriteTarget::any(signature, key), Some(self.hold(new))).map(drop)
    }

    #[cold]
    #[inline(never)]
    fn remove_after_all(&self, pin: Pin, signature: u64, key: &[u8]) -> Result<bool, Error> {
        Ok(self.publish_waiting(pin, WriteTarget::any(signature, key), None)? == PriorState::Present)
    }
}
