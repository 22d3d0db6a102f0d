//! Putting several keys at once (paper, section 6: future work).
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 room for all items, which are written and flushed | free space |
//! | 2 they are ordered, together | free space |
//! | 3 each key: bucket, ticket, entry with FRESH | some keys' new items, others' old ones; nobody has acted on the new ones |
//! | 4 one commit, waited for | all new items |
//! | 5 marks off, tickets filled | |
//!
//! So a group costs two fences, not two a key. It is not one step: for that there are batches.

use arrayvec::ArrayVec;
use index::Position;
use index::partitioned_hash::Published;
use pmem::{Canary, Dram, Level, Medium};

use super::HiKv;
use super::item;
use super::layout::HEADER_BYTES;
use super::order::{Order, Written};
use super::read::GROUP_COUNT;
use super::snapshots::Unpublished;
use crate::{Engine, Error};

/// A key with its item, written and not published.
struct Prepared<'a, D: Dram> {
    signature: u64,
    key: &'a [u8],
    item: Unpublished<'a, D>,
}

/// A key whose entry was published and not settled.
struct Pending<'a, T> {
    key: &'a [u8],
    old: Option<Position>,
    new: Position,
    published: Published,
    ticket: T,
}

type Group<T> = ArrayVec<T, GROUP_COUNT>;

impl<M: Medium, D: Dram, O: Order<M, D>> HiKv<M, D, O> {
    /// Puts at most [`GROUP_COUNT`] items.
    pub(super) fn put_group(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let waiting = {
            let _pin = epoch::pin();
            let Ok(prepared) = self.prepare_group(items) else {
                return self.put_each(items);
            };
            self.publish_group(prepared)?
        };
        waiting.into_iter().try_for_each(|late| self.publish_later(late.signature, late.key, late.item))
    }

    /// Where there is no room for all at once, there may be for one after the other.
    #[cold]
    fn put_each(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Steps 1 and 2.
    fn prepare_group<'a>(&'a self, items: &[(&'a [u8], &[u8])]) -> Result<Group<Prepared<'a, D>>, Error> {
        let signatures: Group<_> = items.iter().map(|(key, _)| self.hasher.signature(key)).collect();
        for &signature in &signatures {
            self.index.prefetch(&self.medium, signature);
            self.index.prefetch_locks(signature);
        }
        let mut prepared = Group::new();
        for (&(key, value), &signature) in items.iter().zip(&signatures) {
            let reservation = self.reserve((HEADER_BYTES + key.len() + value.len()) as u64)?;
            let item = Unpublished { reservation, stamp: self.stamp() };
            // SAFETY: the room was just reserved.
            unsafe { item::write(&self.medium, item.position().offset(), item.stamp, key, value) };
            self.prefetch_old(signature);
            prepared.push(Prepared { signature, key, item });
        }
        if !self.medium.breaks(Canary::ItemNotOrdered) {
            self.medium.order();
        }
        Ok(prepared)
    }

    /// Steps 3 to 5. Those that found a full queue come back. Where one fails, those before it are put.
    fn publish_group<'a>(&'a self, prepared: Group<Prepared<'a, D>>) -> Result<Group<Prepared<'a, D>>, Error> {
        let (mut pending, mut waiting, mut failure) = (Group::new(), Group::new(), None);
        for prepared in prepared {
            // One key's items are published in their order.
            let must_wait = waiting.iter().any(|late: &Prepared<'_, D>| late.key == prepared.key);
            match if must_wait { Ok(Err(prepared)) } else { self.publish_one_of_many(prepared) } {
                Ok(Ok(published)) => pending.push(published),
                Ok(Err(late)) => waiting.push(late),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        self.settle_group(pending)?;
        failure.map_or(Ok(waiting), Err)
    }

    /// Steps 4 and 5.
    fn settle_group<'a>(&'a self, pending: Group<Pending<'a, O::Ticket<'a>>>) -> Result<(), Error> {
        let commit = || self.medium.wait(self.medium.commit(Level::Strongest));
        if !self.medium.breaks(Canary::SettledBeforeCommit) {
            commit()?;
        }
        for Pending { key, old, new, published, ticket } in pending {
            published.settle(&self.medium)?;
            self.order.tell(self.disposal(), ticket, Written { key, old, new: Some(new) });
        }
        if self.medium.breaks(Canary::SettledBeforeCommit) {
            commit()?;
        }
        Ok(())
    }

    /// Step 3 for one key, which comes back if its queue is full.
    fn publish_one_of_many<'a>(
        &'a self,
        mut prepared: Prepared<'a, D>,
    ) -> Result<Result<Pending<'a, O::Ticket<'a>>, Prepared<'a, D>>, Error> {
        let Prepared { signature, key, .. } = prepared;
        let new = prepared.item.position();
        loop {
            let bucket = self.index.lock(self.cx(), signature).as_one_of_many();
            let found = bucket.find(|position| Ok::<_, Error>(self.item_of(position, key)?.map(drop)))?;
            let Some(ticket) = self.order.take(self.index.partition(signature)) else {
                return Ok(Err(prepared));
            };
            let old = found.as_ref().map(|found| found.position);
            if !self.may_publish(prepared.item.stamp, signature, key, old)? {
                drop((ticket, bucket));
                prepared.item = self.stamp_anew(prepared.item)?;
                continue;
            }
            let published = match &found {
                Some(found) => Ok(bucket.replace(found, new)),
                None => bucket.insert(new),
            };
            match published {
                Ok(published) => {
                    prepared.item.reservation.publish();
                    return Ok(Ok(Pending { key, old, new, published, ticket }));
                }
                Err(full) => {
                    drop(ticket);
                    self.index.split(self.cx(), signature, full)?;
                }
            }
        }
    }
}
