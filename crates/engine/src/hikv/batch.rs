//! Writing several keys as one step: the engine's part of `index::partitioned_hash::batch`, whose steps these are.
//!
//! 1 each key's last operation alone counts; items and room for the record; items written, flushed; 2 the keys' pairs are
//! locked, each key looked for, a ticket taken for each change; 3 to 7 the index; 8 tickets filled: what was replaced is
//! retired; 9 whoever wants to know of keys that had expired is told, without lock, turn and pin; segments are told when items expire, after they were published (`index/src/partitioned_hash/due.rs`). Where a segment or a queue has no room, locks and tickets are let go, room is made, and step 2 begins again.
//!
//! # Lock order
//! A turn -> pairs -> stashes -> (tickets). Who waits for room holds the turn alone, and is not pinned.

use heap::{FEATURE_BATCHES, Reservation};
use index::partitioned_hash::batch::record::record_bytes;
use index::partitioned_hash::batch::{Batch, Full, Turn};
use pmem::{Backoff, Dram, Medium, MediumError};

use super::HiKv;
use super::item::NewItem;
use super::order::{Order, Written};
use super::publish::{self, Before};
use super::write::check_key;
use crate::{BatchOp, Error, Expiry, Limits};

/// An item that was written and not published.
type NewlyWritten<'a, D> = publish::Prepared<'a, D>;

/// A key's last operation, with its item written and not published, if it puts.
struct Prepared<'a, D: Dram> {
    signature: u64,
    key: &'a [u8],
    item: Option<NewlyWritten<'a, D>>,
}

impl<D: Dram> Prepared<'_, D> {
    /// When the key expires, if it does.
    fn due(&self) -> Option<(u64, Expiry)> {
        self.item.as_ref().filter(|item| !item.expiry.is_never()).map(|item| (self.signature, item.expiry))
    }
}

/// A change that was noted in the batch.
struct Noted<'a, T> {
    signature: u64,
    ticket: T,
    written: Written<'a>,
    /// When the old item expires, if there is one.
    old_expiry: Option<Expiry>,
}

/// Why step 2 came to no end.
enum Stop {
    /// A segment has no room.
    Segment(Full),
    /// A queue has none.
    Queue,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<MediumError> for Stop {
    fn from(error: MediumError) -> Stop {
        Stop::Failed(error.into())
    }
}

/// Locked pairs, and what is to be done to their entries.
type Ready<'a, M, D, T> = (Batch<'a, M, D>, Vec<Noted<'a, T>>);

impl<M: Medium, D: Dram, O: Order<M, D>> HiKv<M, D, O> {
    pub(super) fn check_batch(&self, ops: &[BatchOp<'_>]) -> Result<(), Error> {
        if ops.len() > Limits::BATCH_OP_COUNT_MAX {
            return Err(Error::BatchTooLong { op_count: ops.len() });
        }
        ops.iter().try_for_each(|op| match op.value() {
            Some(value) => self.check_put(op.key(), value.len() as u64),
            None => check_key(op.key()),
        })?;
        self.check_writable()
    }

    /// Carries out all of `ops`, which were checked.
    pub(super) fn apply_batch(&self, ops: &[BatchOp<'_>]) -> Result<(), Error> {
        let ops = self.last_of_each_key(ops);
        self.heap.set_features(&self.medium, FEATURE_BATCHES);
        let turn = self.index.batch_turn();
        let expired = self.with_room(|| self.try_batch(&ops, &turn))?;
        drop(turn);
        expired.into_iter().for_each(|key| self.expired_hook.tell(key));
        Ok(())
    }

    /// Each key's last operation, with its signature and in the order of signatures.
    fn last_of_each_key<'a>(&self, ops: &[BatchOp<'a>]) -> Vec<(u64, BatchOp<'a>)> {
        let mut ops: Vec<_> = ops.iter().rev().map(|op| (self.hasher.signature(op.key()), *op)).collect();
        // Stable: of one key's operations the last one comes first, and stays.
        ops.sort_by_key(|(signature, op)| (*signature, op.key()));
        ops.dedup_by_key(|(_, op)| op.key());
        ops
    }

    /// A batch, unless the region is full: then nothing has changed. Those of its keys come back that had expired.
    fn try_batch<'a>(&'a self, ops: &[(u64, BatchOp<'a>)], turn: &Turn<'_>) -> Result<Vec<&'a [u8]>, Error> {
        let prepared =
            ops.iter().map(|&(signature, op)| self.prepare_op(signature, op)).collect::<Result<Vec<_>, _>>()?;
        let record = self.reserve(record_bytes(ops.len()))?;
        loop {
            let pin = epoch::pin();
            match self.lock_and_note(&prepared) {
                Ok(ready) => return self.carry_out(ready, prepared, record, turn),
                Err(Stop::Segment(full)) => self.index.split_for_batch(self.cx(), full)?,
                Err(Stop::Queue) => {
                    drop(pin);
                    self.make_queue_room(&prepared)?;
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    /// Step 1 for one key.
    fn prepare_op<'a>(&'a self, signature: u64, op: BatchOp<'a>) -> Result<Prepared<'a, D>, Error> {
        let key = op.key();
        let Some(value) = op.value() else { return Ok(Prepared { signature, key, item: None }) };
        let item = self.prepare(&NewItem { key, value, expiry: op.expiry() })?;
        Ok(Prepared { signature, key, item: Some(item) })
    }

    /// Step 2. The caller is pinned.
    fn lock_and_note<'a>(&'a self, prepared: &[Prepared<'a, D>]) -> Result<Ready<'a, M, D, O::Ticket<'a>>, Stop> {
        let mut batch = self.index.lock_batch(self.cx(), prepared.iter().map(|prepared| prepared.signature));
        let mut noted = Vec::with_capacity(prepared.len());
        for one in prepared {
            noted.extend(self.note(&mut batch, one)?);
        }
        Ok((batch, noted))
    }

    /// Step 2 for one key: what is to be done, `None` if nothing.
    fn note<'a>(
        &'a self,
        batch: &mut Batch<'a, M, D>,
        &Prepared { signature, key, ref item }: &Prepared<'a, D>,
    ) -> Result<Option<Noted<'a, O::Ticket<'a>>>, Stop> {
        let found =
            batch.find(signature, |position| Ok::<_, Stop>(self.item_of(position, key)?.map(|item| item.expiry)))?;
        if found.is_none() {
            self.refuse_hidden(signature, key)?;
        }
        let new = item.as_ref().map(|item| item.position());
        match (&found, new) {
            (None, None) => return Ok(None),
            (None, Some(new)) => batch.insert(signature, new).map_err(Stop::Segment)?,
            (Some(found), Some(new)) => batch.replace(signature, found, new),
            (Some(found), None) => batch.remove(signature, found),
        }
        let ticket = self.order.take(self.index.partition(signature)).ok_or(Stop::Queue)?;
        let (old, old_expiry) = found.map(|found| (found.position, found.value)).unzip();
        Ok(Some(Noted { signature, ticket, written: Written { key, old, new }, old_expiry }))
    }

    /// Steps 3 to 8. The caller is pinned.
    fn carry_out<'a>(
        &'a self,
        (batch, noted): Ready<'a, M, D, O::Ticket<'a>>,
        prepared: Vec<Prepared<'a, D>>,
        record: Reservation<'a, D>,
        turn: &Turn<'_>,
    ) -> Result<Vec<&'a [u8]>, Error> {
        if noted.is_empty() {
            drop(batch);
            prepared.iter().try_for_each(|one| self.look_again(one.signature, one.key))?;
            return Ok(Vec::new());
        }
        let due: Vec<_> = prepared.iter().filter_map(Prepared::due).collect();
        for item in self.stamped_together(prepared, &noted)? {
            item.room.publish();
        }
        let finished = batch.commit(turn, record.publish());
        for (signature, expiry) in due {
            self.index.lower_due_of(self.cx(), signature, expiry.ms());
            self.reaper.expect(expiry);
        }
        let mut expired = Vec::new();
        for Noted { ticket, written, old_expiry, .. } in noted {
            self.order.tell(self.disposal(), ticket, written);
            if self.before(old_expiry) == Before::Expired {
                expired.push(written.key);
            }
        }
        for (signature, segment) in finished.crowded {
            // The items are in; a split that finds no space now will be tried again by a later put.
            let _ = self.index.split(self.cx(), signature, segment);
        }
        let _ = self.medium.acknowledge(finished.durable?)?;
        Ok(expired)
    }

    /// The batch's items, of one snapshot epoch, and what live snapshots see of its keys kept: a snapshot has all of the batch
    /// or nothing. Under all locks, and nothing can keep the caller from publishing any more.
    fn stamped_together<'a>(
        &'a self,
        prepared: Vec<Prepared<'a, D>>,
        noted: &[Noted<'a, O::Ticket<'a>>],
    ) -> Result<Vec<NewlyWritten<'a, D>>, Error> {
        let stamp = self.stamp();
        let items = prepared.into_iter().filter_map(|prepared| prepared.item);
        let stamped = items.map(|item| if item.stamp == stamp { Ok(item) } else { self.stamp_as(item, stamp) });
        let stamped = stamped.collect::<Result<_, _>>()?;
        for Noted { signature, written, .. } in noted {
            self.keep_for_snapshots(stamp, *signature, written.key, written.old)?;
        }
        Ok(stamped)
    }

    /// Waits until each queue that the batch needs has room for all of it.
    fn make_queue_room(&self, prepared: &[Prepared<'_, D>]) -> Result<(), Error> {
        for one in prepared {
            let (partition, mut backoff) = (self.index.partition(one.signature), Backoff::long());
            while !self.order.has_room(partition, prepared.len()) {
                O::make_room(self, partition, &mut backoff)?;
            }
        }
        Ok(())
    }
}
