//! Putting several keys at once (paper, section 6: future work).
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 room for all items, which are written and flushed | free space |
//! | 2 they are ordered, together | free space |
//! | 3 each key: bucket, ticket, entry with FRESH | some keys' new items, others' old ones; nobody has acted on the new ones |
//! | 4 one commit, waited for | all new items |
//! | 5 marks off (unless the caller is going to wait itself), tickets filled; then, unpinned, the callback is told of keys that had expired | |
//!
//! An item whose segment or queue is full at 3, or each item where there is no room for all at 1, is put by itself, after the others
//! and after the pin is gone: what is in its way may need that. So are later items of the same key, and one key's items are
//! published in their order.
//!
//! Of each item is told what became of it, once: an item that fails keeps none of the others back, and none is put twice.
//!
//! So a group costs two fences, not two a key. It is not one step: for that there are batches.

use arrayvec::ArrayVec;
use pmem::{Dram, Level, Medium, MediumError, Waited};

use crate::canary;
use crate::read::group::GROUP_COUNT;
use crate::write::publish::{Committed, Pending, Prepared, WriteTarget};
use crate::{HiKv, Memory};
use engine::{Engine, Error, ExpiredItem, Expiry, OnResult, PriorState, WriteResult};
use items::NewItem;

/// A key with its item, written and not published.
struct Keyed<'a, D: Dram> {
    number: usize,
    signature: u64,
    key: &'a [u8],
    new: Prepared<'a, D>,
}

type Group<T> = ArrayVec<T, GROUP_COUNT>;

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Puts at most [`GROUP_COUNT`] items.
    pub(crate) fn put_group(&self, items: &[(&[u8], &[u8])], on_result: &mut OnResult<'_>) {
        let mut expired = Group::new();
        let late = self.put_together(items, &mut expired, on_result);
        expired.into_iter().for_each(|item| self.expired_hook.notify(item));
        self.put_each(items, late, on_result);
    }

    /// Puts those of the items that have these numbers, one after the other.
    #[inline]
    pub(crate) fn put_each(
        &self,
        items: &[(&[u8], &[u8])],
        numbers: impl IntoIterator<Item = usize>,
        on_result: &mut OnResult<'_>,
    ) {
        for number in numbers {
            let (key, value) = items[number];
            on_result(number, self.put(key, value));
        }
    }

    /// Steps 1 to 5. The numbers of those that are to be put by themselves come back.
    fn put_together<'a>(
        &'a self,
        items: &[(&'a [u8], &'a [u8])],
        expired: &mut Group<ExpiredItem>,
        on_result: &mut OnResult<'_>,
    ) -> Group<usize> {
        let _pin = epoch::pin();
        match self.prepare_group(items) {
            Ok(prepared) => self.publish_group(prepared, expired, on_result),
            Err(_) => (0..items.len()).collect(),
        }
    }

    /// Steps 1 and 2.
    fn prepare_group<'a>(&'a self, items: &[(&'a [u8], &[u8])]) -> Result<Group<Keyed<'a, D>>, Error> {
        let signatures: Group<_> = items.iter().map(|(key, _)| self.hasher.signature(key)).collect();
        let targets: Group<_> =
            signatures.iter().map(|&signature| self.index.prefetch(&self.medium, signature)).collect();
        let mut prepared = Group::new();
        for ((number, &(key, value)), target) in items.iter().enumerate().zip(&targets) {
            let new = self.prepare(&NewItem { key, value, expiry: Expiry::NEVER })?;
            self.prefetch_old(target);
            prepared.push(Keyed { number, signature: target.signature(), key, new });
        }
        if !self.medium.breaks(canary::ITEM_NOT_ORDERED) {
            self.medium.order();
        }
        Ok(prepared)
    }

    /// Steps 3 to 5. Numbers come back as of [`Self::put_together`]. Copies of items that had expired go to `expired`.
    fn publish_group<'a>(
        &'a self,
        prepared: Group<Keyed<'a, D>>,
        expired: &mut Group<ExpiredItem>,
        on_result: &mut OnResult<'_>,
    ) -> Group<usize> {
        let (mut pending, mut numbers) = (Group::new(), Group::new());
        let (mut late, mut late_keys) = (Group::new(), Group::<&[u8]>::new());
        for Keyed { number, signature, key, new } in prepared {
            let entered = if late_keys.contains(&key) {
                Ok(WriteResult::QueueFull(None))
            } else {
                self.enter(WriteTarget::any(signature, key), Some(new), Committed::Together)
            };
            match entered {
                Ok(WriteResult::Done(Some(published))) => {
                    pending.push(published);
                    numbers.push(number);
                }
                Err(error) if !error.is_full() => on_result(number, Err(error)),
                _ => {
                    late.push(number);
                    late_keys.push(key);
                }
            }
        }
        // What fails here is one commit, of all of them.
        let settled = self.settle_group(pending, expired);
        numbers.into_iter().for_each(|number| on_result(number, settled.map_err(Error::from)));
        late
    }

    /// Steps 4 and 5. Where 4 fails the items are published all the same, and the order follows.
    fn settle_group<'a>(
        &'a self,
        pending: Group<Pending<'a, 'a>>,
        expired: &mut Group<ExpiredItem>,
    ) -> Result<(), MediumError> {
        let commit = || self.medium.acknowledge(self.medium.commit(Level::Strongest));
        let is_early = self.medium.breaks(canary::SETTLED_BEFORE_COMMIT);
        let waited = if is_early { Ok(Waited::Durable) } else { commit() };
        for pending in pending {
            if self.before(pending.old_expiry) == PriorState::Expired {
                expired.extend(self.copy_expired(pending.written.old));
            }
            match waited {
                Ok(Waited::Durable) => self.settle(pending)?,
                _ => self.enqueue(pending.ticket, pending.written),
            }
        }
        if is_early { commit() } else { waited }.map(drop)
    }
}
