//! Puts several keys in one call (paper, section 6: future work).
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 space for all items, which are written and flushed | free space |
//! | 2 all items are ordered together | free space |
//! | 3 for each key: bucket, ticket, entry with FRESH | new items of some keys, on which no thread has acted |
//! | 4 one commit, waited for | all new items |
//! | 5 marks cleared, tickets filled; unpinned: the callback is called for expired keys | the same |
//!
//! If the caller waits for durability itself, step 5 leaves the marks.
//!
//! An item whose segment or queue is full at 3 is put separately, after the others and without the pin, because making
//! space may need that. The same holds for all items if step 1 finds no space for all, and for later items of the same
//! key: the items of one key are published in their order.
//!
//! The result of each item is reported once: an item that fails does not stop the others, and none is put twice.
//!
//! So a group costs two fences, not two per key. It is not atomic; batches are.

use arrayvec::ArrayVec;
use pmem::{Dram, Level, Medium, MediumError, Waited};

use super::publish::prior_state;
use super::target::{Committed, Pending, Prepared, WriteTarget};
use super::{Writer, check_lengths};
use crate::canary;
use crate::item;
use crate::memory::Memory;
use crate::read::GROUP_COUNT;
use engine::{Error, ExpiredItem, Expiry, OnResult, PriorState, WriteResult};
use items::NewItem;

/// A key and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// A key with its item, written and not published.
struct Keyed<'a, D: Dram> {
    number: usize,
    signature: u64,
    key: &'a [u8],
    new: Prepared<'a, D>,
}

type Group<T> = ArrayVec<T, GROUP_COUNT>;

/// At most [`GROUP_COUNT`] items that are put together.
pub(crate) struct PutGroup<'a, M, D: Dram> {
    writer: &'a Writer<M, D>,
    items: &'a [Pair<'a>],
}

impl<'a, M: Medium, D: Memory> PutGroup<'a, M, D> {
    pub(crate) fn new(writer: &'a Writer<M, D>, items: &'a [Pair<'a>]) -> PutGroup<'a, M, D> {
        PutGroup { writer, items }
    }

    /// Puts the items.
    pub(crate) fn put(&self, on_result: &mut OnResult<'_>) {
        let mut expired = Group::new();
        let late = self.put_together(&mut expired, on_result);
        expired.into_iter().for_each(|item| self.writer.reaper.hook().notify(item));
        self.put_each(late, on_result);
    }

    /// Puts the items with these numbers, one after the other.
    #[inline]
    pub(crate) fn put_each(&self, numbers: impl IntoIterator<Item = usize>, on_result: &mut OnResult<'_>) {
        for number in numbers {
            let (key, value) = self.items[number];
            let admitted = self.writer.admit_put(key, value.len() as u64);
            let item = NewItem { key, value, expiry: Expiry::NEVER };
            on_result(number, admitted.and_then(|()| self.writer.put(&item)));
        }
    }

    /// Returns true if no item is too long, and the store can be written.
    pub(crate) fn fits(&self) -> bool {
        let mut items = self.items.iter();
        items.all(|(key, value)| check_lengths(key, value.len() as u64).is_ok() && self.writer.check_writable().is_ok())
    }

    /// Does steps 1 to 5. Returns the numbers of the items to put separately.
    fn put_together(&self, expired: &mut Group<ExpiredItem>, on_result: &mut OnResult<'_>) -> Group<usize> {
        let _pin = epoch::pin();
        match self.prepare() {
            Ok(prepared) => self.publish(prepared, expired, on_result),
            Err(_) => (0..self.items.len()).collect(),
        }
    }

    /// Does steps 1 and 2.
    fn prepare(&self) -> Result<Group<Keyed<'a, D>>, Error> {
        let reader = &self.writer.reader;
        let signatures: Group<_> = self.items.iter().map(|(key, _)| reader.signature(key)).collect();
        let targets: Group<_> =
            signatures.iter().map(|&signature| reader.index().prefetch(reader.medium(), signature)).collect();
        let mut prepared = Group::new();
        for ((number, &(key, value)), target) in self.items.iter().enumerate().zip(&targets) {
            let new = self.writer.prepare(&NewItem { key, value, expiry: Expiry::NEVER })?;
            if let Some(old) = reader.prefetch_old(target) {
                item::request(reader.medium(), old.position);
            }
            prepared.push(Keyed { number, signature: target.signature(), key, new });
        }
        reader.medium().order_unless(canary::ITEM_NOT_ORDERED);
        Ok(prepared)
    }

    /// Does steps 3 to 5. Returns numbers as [`Self::put_together`] does. Copies of expired items go to `expired`.
    fn publish(
        &self,
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
                self.writer.enter(WriteTarget::any(signature, key), Some(new), Committed::Together)
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
        // A failure here is that of the one commit of all items.
        let settled = self.settle(pending, expired);
        numbers.into_iter().for_each(|number| on_result(number, settled.map_err(Error::from)));
        late
    }

    /// Does steps 4 and 5. If 4 fails, the items are published nevertheless, and the ordered index follows.
    fn settle(&self, pending: Group<Pending<'a, 'a>>, expired: &mut Group<ExpiredItem>) -> Result<(), MediumError> {
        let commit = || self.writer.reader.medium().acknowledge(self.writer.reader.medium().commit(Level::Strongest));
        let is_early = self.writer.reader.medium().breaks(canary::SETTLED_BEFORE_COMMIT);
        let waited = if is_early { Ok(Waited::Durable) } else { commit() };
        for pending in pending {
            if prior_state(self.writer.reader.clock(), pending.old_expiry) == PriorState::Expired {
                expired.extend(self.writer.reaper.copy(self.writer.reader.medium(), pending.written.old));
            }
            match waited {
                Ok(Waited::Durable) => {
                    let Pending { written, published, ticket, mut hidden, .. } = pending;
                    self.writer.settle(written, published, ticket, &mut hidden)?;
                }
                _ => self.writer.order.enqueue(self.writer.disposal(), pending.ticket, pending.written),
            }
        }
        if is_early { commit() } else { waited }.map(drop)
    }
}
