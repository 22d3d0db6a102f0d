//! Writes several keys in one step: the engine's part of `index::partitioned_hash::batch`, with the step numbers of
//! that module.
//!
//! - Step 1: the last operation of each key counts; space for items and record is reserved; items are written and
//!   flushed.
//! - Step 2: the keys' pairs are locked, conditions judged, keys looked up, and a ticket is taken of each queue that
//!   receives changes. If segments or a queue have no space, locks and tickets are released, space is made in all of
//!   them, and step 2 begins again.
//! - Steps 3 to 7: the index.
//! - Step 8: tickets are filled, replaced items retired.
//! - Step 9: the callback for expired keys is called, without lock, turn and pin.
//!
//! Segments record the expiry of the new items after these were published (`index/src/partitioned_hash/due.rs`).
//!
//! A batch may be of any size: `docs/decisions/0014-decide-a-batch-with-one-word.md`.
//!
//! # Lock order
//! A turn -> pairs -> stashes -> (tickets). Tickets come last, and no thread waits for one. So the holder of a ticket
//! waits for no lock, and writers that wait for no ticket fill the earlier places of the queue. A batch that waits
//! for space holds only the turn, and has no pin of its own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use heap::{FEATURE_BATCHES, Reservation};
use index::Position;
use index::partitioned_hash::BatchLookup;
use index::partitioned_hash::batch::record::record_bytes;
use index::partitioned_hash::batch::{Batch, Change, Full, Turn};
use pmem::{Backoff, Dram, Medium, MediumError};

use crate::canary;
use crate::order::{self, Ordered, Written};
use crate::write::plan::Plan;
use crate::write::reservations::Reservations;
use crate::{HiKv, Memory};
use engine::{BatchOp, Condition, Error, ExpiredItem, Expiry, PriorState, Verify};

/// The number of keys for which old items are prefetched ahead: the number of cache misses that a core has in flight.
const AHEAD_COUNT: usize = 12;

/// The reason why step 2 stopped.
enum Stop {
    /// Segments have no space.
    Segments(Full),
    /// A queue has no space.
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

/// Old items that expire, with their expiries.
type Expiring = Vec<(Position, Expiry)>;

/// Locked pairs, the changes to their entries (each with the number of its operation), and a ticket of each queue that
/// receives changes.
struct Ready<'a, M, D: Dram> {
    batch: Batch<'a, M, D>,
    expiring: Expiring,
    tickets: BTreeMap<usize, order::Ticket<'a>>,
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Carries out all of `ops` if all of `conditions` hold. Both keep the limits.
    pub(crate) fn apply_batch(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        let asked = self.plan(conditions, ops);
        self.heap.region().set_features(&self.medium, FEATURE_BATCHES);
        let turn = self.index.batch_turn();
        let expired = self.with_space(|| self.try_batch(&asked, &turn))?;
        drop(turn);
        expired.into_iter().for_each(|item| self.expired_hook.notify(item));
        Ok(())
    }

    /// Carries out a batch unless the region is full; then nothing has changed. Returns copies of the replaced items
    /// that had expired.
    fn try_batch<'a>(&'a self, plan: &Plan<'a>, turn: &Turn<'_>) -> Result<Vec<ExpiredItem>, Error> {
        if self.medium.breaks(canary::CONDITION_OUTSIDE_LOCK) {
            self.conditions_hold(plan, |signature, key| self.find(signature, key))?;
        }
        let reservations = self.write_items(plan)?;
        let record = self.reserve(record_bytes(plan.ops.len()))?;
        loop {
            self.make_queue_space(&plan.signatures)?;
            let pin = epoch::pin();
            match self.lock_and_note(plan, &reservations) {
                Ok(ready) => return self.carry_out(ready, plan, reservations, record, turn),
                Err(Stop::Segments(full)) => self.index.split_for_batch(self.cx(), full, &plan.signatures)?,
                Err(Stop::Queue) => drop(pin),
                Err(Stop::Failed(error)) => {
                    if let Error::ConditionFailed { condition } = error {
                        let (signature, Condition { key, .. }) = plan.conditions[condition];
                        self.find_again(signature, key)?;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Waits until each queue that the batch needs has space. The caller holds only a turn.
    fn make_queue_space(&self, signatures: &[u64]) -> Result<(), Error> {
        for partition in self.partitions_of(signatures.len(), |number| signatures[number]) {
            let mut backoff = Backoff::long();
            while !self.order.has_space(partition) {
                Ordered::make_space(self, partition, &mut backoff)?;
            }
        }
        Ok(())
    }

    /// Returns the partitions of `count` sorted signatures; none if no queue receives changes.
    fn partitions_of(&self, count: usize, signature: impl Fn(usize) -> u64) -> Vec<usize> {
        let (mut partitions, mut next) = (Vec::new(), 0);
        while next < count && self.order.is_offered() {
            let partition = self.index.partition(signature(next));
            // A partition has some hundred of the signatures.
            let mut past = count;
            while next < past {
                let middle = next.midpoint(past);
                if self.index.partition(signature(middle)) == partition { next = middle + 1 } else { past = middle }
            }
            partitions.push(partition);
        }
        partitions
    }

    /// Does step 2. The caller is pinned.
    fn lock_and_note<'a>(
        &'a self,
        plan: &'a Plan<'_>,
        reservations: &Reservations<'_, M, D>,
    ) -> Result<Ready<'a, M, D>, Stop> {
        let mut batch = self.index.lock_batch(self.cx(), &plan.signatures);
        if !self.medium.breaks(canary::CONDITION_OUTSIDE_LOCK) {
            self.conditions_hold(plan, |signature, key| self.find_locked(&batch, signature, key))?;
        }
        let (mut expiring, mut number) = (Vec::new(), 0);
        for (op, (signature, asked)) in plan.ops.iter().enumerate() {
            if let Some(&BatchLookup::Entry(_, old)) = batch.lookups().get(number + AHEAD_COUNT) {
                self.medium.prefetch_line(old.offset());
            }
            // Signatures of conditions are in between.
            while plan.signatures[number] != *signature {
                number += 1;
            }
            let (key, new) = (asked.key(), reservations.position(op));
            let seen = batch.lookups()[number];
            match seen {
                BatchLookup::Entry(at, old) if self.plain_of(old, key).is_some() => {
                    batch.replace(number, op as u32, (at, old), new);
                }
                BatchLookup::Nothing if self.verify < Verify::Absence => note_absent(&mut batch, number, op, new),
                _ => self.note_searching(&mut batch, number, (op, plan.ops[op]), new, &mut expiring)?,
            }
            number += usize::from(plan.conditions.is_empty());
        }
        batch.has_space()?;
        let (mut tickets, changes) = (BTreeMap::new(), batch.changes());
        for partition in self.partitions_of(changes.len(), |change| plan.ops[changes[change].by as usize].0) {
            if let Entry::Vacant(place) = tickets.entry(self.order.queue_of(partition)) {
                place.insert(self.order.take(|| partition).ok_or(Stop::Queue)?);
            }
        }
        Ok(Ready { batch, expiring, tickets })
    }

    /// Does step 2 for one key, the batch's signature `number`, if an optimistic lookup is not enough.
    #[inline(never)]
    fn note_searching(
        &self,
        batch: &mut Batch<'_, M, D>,
        number: usize,
        (op, (signature, asked)): (usize, (u64, &BatchOp<'_>)),
        new: Position,
        expiring: &mut Expiring,
    ) -> Result<(), Stop> {
        let visit = |position| Ok::<_, Stop>(self.item_of(position, asked.key())?.map(|item| item.expiry));
        let Some(found) = batch.find(number, visit)? else {
            self.refuse_hidden(signature, asked.key())?;
            note_absent(batch, number, op, new);
            return Ok(());
        };
        expiring.extend((!found.value.is_never()).then_some((found.position, found.value)));
        batch.replace(number, op as u32, (found.slot.position, found.position), new);
        Ok(())
    }

    /// Does steps 3 to 8. The caller is pinned.
    fn carry_out<'a>(
        &'a self,
        Ready { batch, expiring, tickets }: Ready<'_, M, D>,
        plan: &Plan<'a>,
        mut reservations: Reservations<'_, M, D>,
        record: Reservation<'_, D>,
        turn: &Turn<'_>,
    ) -> Result<Vec<ExpiredItem>, Error> {
        if batch.changes().is_empty() {
            drop(batch);
            let written = plan.ops.iter().map(|(signature, op)| (*signature, op.key()));
            let asked = plan.conditions.iter().map(|(signature, one)| (*signature, one.key)).chain(written);
            { asked }.try_for_each(|(signature, key)| self.find_again(signature, key))?;
            return Ok(Vec::new());
        }
        self.stamp_together(&mut reservations, plan, &batch)?;
        let due = reservations.publish();
        let op_of = |change: &Change| plan.ops[change.by as usize];
        let hide = |(signature, op): (u64, &BatchOp<'a>)| self.hide_of_batch(signature, op.key());
        let changes = if self.cache.is_some() { batch.changes() } else { &[] };
        let hidden: Vec<_> = changes.iter().map(op_of).map(hide).collect();
        let finished = batch.commit(turn, record.publish())?;
        for (signature, expiry) in due {
            self.index.lower_due_of(self.cx(), signature, expiry.ms());
            self.reaper.expect(expiry);
        }
        self.enqueue_all(plan, &finished.changes, tickets);
        let expired = expiring.iter().filter(|(_, expiry)| self.before(Some(*expiry)) == PriorState::Expired);
        let expired = expired.filter_map(|&(old, _)| self.copy_expired(Some(old))).collect();
        for (signature, segment) in finished.crowded {
            // The items are in; if a split finds no space now, a later put tries again.
            let _ = self.index.split(self.cx(), signature, segment);
        }
        let _ = self.medium.acknowledge(finished.durable)?;
        hidden.into_iter().zip(finished.changes).for_each(|(hidden, change)| self.reveal(hidden, some(change.new)));
        Ok(expired)
    }

    /// Gives the batch's items one snapshot epoch, and keeps the old items that live snapshots see: a snapshot has all
    /// of the batch or nothing. Called under all locks, when the batch will certainly be published.
    fn stamp_together(
        &self,
        reservations: &mut Reservations<'_, M, D>,
        plan: &Plan<'_>,
        batch: &Batch<'_, M, D>,
    ) -> Result<(), Error> {
        if self.snapshots.has_no_snapshot(reservations.stamp()) {
            return Ok(());
        }
        let stamp = self.stamp();
        if stamp != reservations.stamp() {
            reservations.stamp_as(stamp)?;
        }
        for change in batch.changes() {
            let (signature, op) = plan.ops[change.by as usize];
            self.keep_for_snapshots(stamp, signature, op.key(), some(change.old))?;
        }
        Ok(())
    }

    /// Does step 8: one place of each queue stands for all of its changes.
    fn enqueue_all(&self, plan: &Plan<'_>, changes: &[Change], tickets: BTreeMap<usize, order::Ticket<'_>>) {
        if tickets.values().all(Option::is_none) {
            return self.disposal().retire_all(changes.iter().filter_map(|change| some(change.old)));
        }
        let mut by_queue: BTreeMap<usize, Vec<Written<'_>>> = BTreeMap::new();
        for change in changes {
            let (signature, op) = plan.ops[change.by as usize];
            let queue = self.order.queue_of(self.index.partition(signature));
            let written = Written { key: op.key(), old: some(change.old), new: some(change.new) };
            by_queue.entry(queue).or_default().push(written);
        }
        for ((queue, ticket), written) in tickets.into_iter().zip(by_queue.into_values()) {
            self.order.enqueue_all(self.disposal(), queue, ticket, &written);
        }
    }
}

/// Notes an absent key, which gets the item `new` unless that is empty.
fn note_absent<M: Medium, D: Dram>(batch: &mut Batch<'_, M, D>, number: usize, op: usize, new: Position) {
    if !new.is_empty() {
        batch.insert(number, op as u32, new);
    }
}

fn some(position: Position) -> Option<Position> {
    (!position.is_empty()).then_some(position)
}
