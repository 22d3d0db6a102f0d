//! Writing several keys as one step: the engine's part of `index::partitioned_hash::batch`, whose steps these are.
//!
//! 1 each key's last operation alone counts; items and room for the record; items written, flushed; 2 the keys' pairs are
//! locked, conditions judged, each key looked for, a ticket taken of each queue that the changes go to; 3 to 7 the index; 8 tickets filled: what was
//! replaced is retired; 9 the callback for keys that had expired is called, without lock, turn and pin; segments are told when
//! items expire, after they were published (`index/src/partitioned_hash/due.rs`). Where segments or a queue have no room, locks and
//! tickets are let go, room is made in all of them, and step 2 begins again.
//!
//! Why a batch may be of any size: `docs/decisions/0028-batches-of-any-size.md`.
//!
//! # Lock order
//! A turn -> pairs -> stashes -> (tickets). Tickets come last, and none is waited for: so the holder of one waits for no lock, and
//! what lies before the ticket in the queue is filled by writers that do not wait for it. A batch that waits for room holds the
//! turn alone, and has no pin of its own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use heap::{FEATURE_BATCHES, Reservation};
use index::partitioned_hash::batch::record::record_bytes;
use index::partitioned_hash::batch::{Batch, Full, Turn};
use index::partitioned_hash::{Found, Sight};
use pmem::{Backoff, Dram, Medium, MediumError};

use crate::canary;
use crate::order::{self, Ordered, Written};
use crate::write::plan::Plan;
use crate::write::publish;
use crate::{HiKv, Memory};
use engine::{BatchOp, Before, Condition, Error, Expiry};
use items::NewItem;

/// So many keys ahead the old items are asked for: as many as a core has misses in flight.
const AHEAD_COUNT: usize = 12;

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
struct Noted<'a> {
    signature: u64,
    written: Written<'a>,
    /// When the old item expires, if there is one.
    old_expiry: Option<Expiry>,
}

/// Why step 2 came to no end.
enum Stop {
    /// Segments have no room.
    Segments(Full),
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

impl From<Full> for Stop {
    fn from(full: Full) -> Stop {
        Stop::Segments(full)
    }
}

/// Locked pairs, what is to be done to their entries, and a ticket of each queue that is going to be told.
struct Ready<'a, M, D: Dram> {
    batch: Batch<'a, M, D>,
    noted: Vec<Noted<'a>>,
    tickets: BTreeMap<usize, order::Ticket<'a>>,
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Carries out all of `ops` if all of `conditions` hold; they were checked.
    pub(crate) fn apply_batch(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        let asked = self.plan(conditions, ops);
        self.heap.set_features(&self.medium, FEATURE_BATCHES);
        let turn = self.index.batch_turn();
        let expired = self.with_room(|| self.try_batch(&asked, &turn))?;
        drop(turn);
        expired.into_iter().for_each(|key| self.expired_hook.tell(key));
        Ok(())
    }

    /// A batch, unless the region is full: then nothing has changed. Those of its keys come back that had expired.
    fn try_batch<'a>(&'a self, plan: &Plan<'a>, turn: &Turn<'_>) -> Result<Vec<&'a [u8]>, Error> {
        if self.medium.breaks(canary::CONDITION_OUTSIDE_LOCK) {
            self.conditions_hold(plan, |signature, key| self.find(signature, key))?;
        }
        let mut prepared = Vec::with_capacity(plan.ops.len());
        for &(signature, op) in &plan.ops {
            prepared.push(self.prepare_op(signature, op)?);
        }
        let record = self.reserve(record_bytes(plan.ops.len()))?;
        loop {
            self.make_queue_room(&plan.signatures)?;
            let pin = epoch::pin();
            match self.lock_and_note(plan, &prepared) {
                Ok(ready) => return self.carry_out(ready, plan, prepared, record, turn),
                Err(Stop::Segments(full)) => self.index.split_for_batch(self.cx(), full, &plan.signatures)?,
                Err(Stop::Queue) => drop(pin),
                Err(Stop::Failed(error)) => {
                    if let Error::Unmet { condition } = error {
                        let (signature, Condition { key, .. }) = plan.conditions[condition];
                        self.look_again(signature, key)?;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Waits until each queue that the batch needs has room. The caller holds a turn alone.
    fn make_queue_room(&self, signatures: &[u64]) -> Result<(), Error> {
        for of_partition in signatures.chunk_by(|&a, &b| self.index.partition(a) == self.index.partition(b)) {
            let (partition, mut backoff) = (self.index.partition(of_partition[0]), Backoff::long());
            while !self.order.has_room(partition) {
                Ordered::make_room(self, partition, &mut backoff)?;
            }
        }
        Ok(())
    }

    /// Step 1 for one key.
    #[inline(always)]
    fn prepare_op<'a>(&'a self, signature: u64, op: &BatchOp<'a>) -> Result<Prepared<'a, D>, Error> {
        let key = op.key();
        let Some(value) = op.value() else { return Ok(Prepared { signature, key, item: None }) };
        let item = self.prepare(&NewItem { key, value, expiry: op.expiry() })?;
        Ok(Prepared { signature, key, item: Some(item) })
    }

    /// Step 2. The caller is pinned.
    fn lock_and_note<'a>(&'a self, plan: &Plan<'_>, prepared: &[Prepared<'a, D>]) -> Result<Ready<'a, M, D>, Stop> {
        let mut batch = self.index.lock_batch(self.cx(), &plan.signatures);
        if !self.medium.breaks(canary::CONDITION_OUTSIDE_LOCK) {
            self.conditions_hold(plan, |signature, key| self.find_locked(&batch, signature, key))?;
        }
        let mut noted = Vec::with_capacity(prepared.len());
        for (number, one) in prepared.iter().enumerate() {
            if let Some(old) = prepared.get(number + AHEAD_COUNT).and_then(|ahead| batch.hint(ahead.signature)) {
                self.medium.prefetch_line(old.offset());
            }
            self.note(&mut batch, one, &mut noted)?;
        }
        batch.has_room()?;
        let mut tickets = BTreeMap::new();
        for of_partition in noted.chunk_by(|one, other| self.partition_of(one) == self.partition_of(other)) {
            let partition = self.partition_of(&of_partition[0]);
            if let Entry::Vacant(place) = tickets.entry(self.order.queue_of(partition)) {
                place.insert(self.order.take(partition).ok_or(Stop::Queue)?);
            }
        }
        Ok(Ready { batch, noted, tickets })
    }

    fn partition_of(&self, noted: &Noted<'_>) -> usize {
        self.index.partition(noted.signature)
    }

    /// Step 2 for one key: what is to be done, if anything.
    #[inline(always)]
    fn note<'a>(
        &'a self,
        batch: &mut Batch<'a, M, D>,
        &Prepared { signature, key, ref item }: &Prepared<'a, D>,
        noted: &mut Vec<Noted<'a>>,
    ) -> Result<(), Stop> {
        let found = match batch.glance(signature) {
            Sight::Entry(Found { slot, position, .. }) if self.plain_of(position, key).is_some() => {
                Some(Found { slot, position, value: Expiry::NEVER })
            }
            _ => self.find_for_batch(batch, signature, key)?,
        };
        let new = item.as_ref().map(|item| item.position());
        match (&found, new) {
            (None, None) => return Ok(()),
            (None, Some(new)) => batch.insert(signature, new),
            (Some(found), Some(new)) => batch.replace(signature, found, new),
            (Some(found), None) => batch.remove(signature, found),
        }
        let (old, old_expiry) = found.map(|found| (found.position, found.value)).unzip();
        noted.push(Noted { signature, written: Written { key, old, new }, old_expiry });
        Ok(())
    }

    /// The key's entry, and when it expires, where a look is not enough.
    #[inline(never)]
    fn find_for_batch(
        &self,
        batch: &Batch<'_, M, D>,
        signature: u64,
        key: &[u8],
    ) -> Result<Option<Found<Expiry>>, Stop> {
        let found =
            batch.find(signature, |position| Ok::<_, Stop>(self.item_of(position, key)?.map(|item| item.expiry)))?;
        if found.is_none() {
            self.refuse_hidden(signature, key)?;
        }
        Ok(found)
    }

    /// Steps 3 to 8. The caller is pinned.
    fn carry_out<'a>(
        &'a self,
        Ready { batch, noted, tickets }: Ready<'a, M, D>,
        plan: &Plan<'_>,
        mut prepared: Vec<Prepared<'a, D>>,
        record: Reservation<'a, D>,
        turn: &Turn<'_>,
    ) -> Result<Vec<&'a [u8]>, Error> {
        if noted.is_empty() {
            drop(batch);
            plan.conditions.iter().try_for_each(|(signature, one)| self.look_again(*signature, one.key))?;
            prepared.iter().try_for_each(|one| self.look_again(one.signature, one.key))?;
            return Ok(Vec::new());
        }
        let due: Vec<_> = prepared.iter().filter_map(Prepared::due).collect();
        self.stamp_together(&mut prepared, &noted)?;
        for one in prepared {
            one.item.map(|item| item.room.publish());
        }
        let hide = |one: &Noted<'a>| self.hide_of_batch(one.signature, one.written.key);
        let hidden: Vec<_> = if self.cache.is_some() { noted.iter().map(hide).collect() } else { Vec::new() };
        let finished = batch.commit(turn, record.publish());
        for (signature, expiry) in due {
            self.index.lower_due_of(self.cx(), signature, expiry.ms());
            self.reaper.expect(expiry);
        }
        self.tell_all(&noted, tickets);
        let had_expired = |one: &&Noted<'_>| self.before(one.old_expiry) == Before::Expired;
        let expired = noted.iter().filter(had_expired).map(|one| one.written.key).collect();
        for (signature, segment) in finished.crowded {
            // The items are in; a split that finds no space now will be tried again by a later put.
            let _ = self.index.split(self.cx(), signature, segment);
        }
        let _ = self.medium.acknowledge(finished.durable?)?;
        hidden.into_iter().zip(&noted).for_each(|(hidden, one)| self.reveal(hidden, one.written.new));
        Ok(expired)
    }

    /// Makes the batch's items of one snapshot epoch, and keeps what live snapshots see of its keys: a snapshot has all of the batch
    /// or nothing. Under all locks, and nothing can keep the caller from publishing any more.
    fn stamp_together<'a>(&'a self, prepared: &mut [Prepared<'a, D>], noted: &[Noted<'a>]) -> Result<(), Error> {
        let stamp = self.stamp();
        for one in prepared {
            if let Some(item) = one.item.take_if(|item| item.stamp != stamp) {
                one.item = Some(self.stamp_as(item, stamp)?);
            }
        }
        for Noted { signature, written, .. } in noted {
            self.keep_for_snapshots(stamp, *signature, written.key, written.old)?;
        }
        Ok(())
    }

    /// Step 8: one place of each queue has all of its changes.
    fn tell_all<'a>(&'a self, noted: &[Noted<'_>], tickets: BTreeMap<usize, order::Ticket<'a>>) {
        if tickets.values().all(Option::is_none) {
            return noted.iter().for_each(|one| self.disposal().retire(one.written.old));
        }
        let mut by_queue: BTreeMap<usize, Vec<Written<'_>>> = BTreeMap::new();
        for one in noted {
            let queue = self.order.queue_of(self.index.partition(one.signature));
            by_queue.entry(queue).or_default().push(one.written);
        }
        for ((queue, ticket), written) in tickets.into_iter().zip(by_queue.into_values()) {
            self.order.tell_all(self.disposal(), queue, ticket, &written);
        }
    }
}
