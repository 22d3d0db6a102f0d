//! Writes with nothing in the way: steps 3 to 6 where a look at the home line is enough.
//!
//! That is so for most keys: the entry is in its home line, or nowhere, and bears no mark; the old item, if there is one, is
//! in a slot and does not expire, nor does the new one; no snapshot was taken since the new one was stamped, and none lives; the
//! key's queue has a place. Where something is in the way nothing has been changed yet, and `publish` does all of it: with the
//! bucket unlocked, and from the beginning.

use epoch::Pin;
use index::cached_table::{Write, canary as cached_table};
use index::partitioned_hash::{Aim, Hint, Sight};
use pmem::{Medium, Offset};

use crate::order::Written;
use crate::write::publish::{Laid, Target};
use crate::{HiKv, Memory};
use engine::{Before, Error, Verify};

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Publishes `new`, whose item was written and flushed.
    #[inline(always)]
    pub(crate) fn publish_at_once(
        &self,
        pin: Pin,
        aim: &Aim<'_>,
        hint: Option<Hint>,
        key: &[u8],
        new: Laid,
    ) -> Result<(), Error> {
        let Some(bucket) = self.index.lock_aimed(self.cx(), aim) else {
            return self.publish_after_all(pin, aim.signature(), key, new);
        };
        let sight = bucket.glance_at(aim, hint);
        let is_clear = match sight {
            Sight::Entry(found) => self.plain_of(found.position, key).is_some(),
            Sight::Free(_) | Sight::Full => self.verify < Verify::Absence,
            Sight::Unsure => false,
        };
        if !is_clear || !new.expiry.is_never() || !self.snapshots.is_calm(new.stamp) {
            drop(bucket);
            return self.publish_after_all(pin, aim.signature(), key, new);
        }
        let Some(ticket) = self.order.take(|| self.index.partition(aim.signature())) else {
            drop(bucket);
            return self.publish_after_all(pin, aim.signature(), key, new);
        };
        let position = new.position;
        let mut hidden = self.hide(aim.signature(), key);
        if self.medium.breaks(cached_table::COPY_SHOWN_EARLY) {
            self.reveal(hidden.take(), Some(position));
        }
        let (old, published) = match sight {
            Sight::Entry(found) => (Some(found.position), bucket.replace_seen(&found, position)),
            Sight::Free(slot) => (None, bucket.insert_at(slot, position)),
            Sight::Full | Sight::Unsure => match bucket.insert(position) {
                Ok(published) => (None, published),
                Err(_) => {
                    hidden.into_iter().for_each(Write::unchanged);
                    drop(ticket);
                    return self.publish_after_all(pin, aim.signature(), key, new);
                }
            },
        };
        let crowded = published.crowded;
        self.settle_parts(Written { key, old, new: Some(position) }, published, ticket, &mut hidden)?;
        if let Some(segment) = crowded {
            self.relieve(aim.signature(), segment);
        }
        Ok(())
    }

    /// Removes the key; false if it was not there.
    #[inline(always)]
    pub(crate) fn remove_at_once(&self, key: &[u8]) -> Result<bool, Error> {
        let pin = epoch::pin();
        let aim = self.index.aim(&self.medium, self.hasher.signature(key));
        aim.prefetch_count();
        let hint = self.prefetch_old(&aim);
        let Some(bucket) = self.index.lock_aimed(self.cx(), &aim) else {
            return self.remove_after_all(pin, aim.signature(), key);
        };
        let found = match bucket.glance_at(&aim, hint) {
            Sight::Entry(found)
                if self.plain_of(found.position, key).is_some() && self.snapshots.is_calm(self.stamp()) =>
            {
                found
            }
            _ => {
                drop(bucket);
                return self.remove_after_all(pin, aim.signature(), key);
            }
        };
        let Some(ticket) = self.order.take(|| self.index.partition(aim.signature())) else {
            drop(bucket);
            return self.remove_after_all(pin, aim.signature(), key);
        };
        let mut hidden = self.hide(aim.signature(), key);
        let published = bucket.remove_seen(&found);
        self.settle_parts(Written { key, old: Some(found.position), new: None }, published, ticket, &mut hidden)?;
        Ok(true)
    }

    /// Splits a segment whose stash fills up: the item is in, and a split that finds no space now will be tried again by a later
    /// put.
    #[cold]
    pub(crate) fn relieve(&self, signature: u64, segment: Offset) {
        let _ = self.index.split(self.cx(), signature, segment);
    }

    #[cold]
    #[inline(never)]
    fn publish_after_all(&self, pin: Pin, signature: u64, key: &[u8], new: Laid) -> Result<(), Error> {
        self.publish_waiting(pin, Target::any(signature, key), Some(self.hold(new))).map(drop)
    }

    #[cold]
    #[inline(never)]
    fn remove_after_all(&self, pin: Pin, signature: u64, key: &[u8]) -> Result<bool, Error> {
        Ok(self.publish_waiting(pin, Target::any(signature, key), None)? == Before::Present)
    }
}
