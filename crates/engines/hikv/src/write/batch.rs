//! Writes several keys in one step: the engine's part of `index::partitioned_hash::batch`, with the step numbers of
//! that module.
//!
//! - Step 1: the last operation of each key counts; a turn is waited for; space for items and record is reserved; items
//!   are written and flushed.
//! - Step 2: the keys' pairs are locked, conditions judged, keys looked up, and a ticket is taken of each queue that
//!   receives changes. If segments or a queue have no space, locks and tickets are released, space is made in all of
//!   them, and step 2 begins again.
//! - Steps 3 to 7: the index; then the turn ends.
//! - Step 8: tickets are filled, replaced items retired.
//! - Step 9: a log is waited for, without lock and turn.
//! - Step 10: the callback for expired keys is called, without lock, turn and pin.
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

use super::Writer;
use super::plan::Plan;
use super::publish::prior_state;
use super::reservations::Reservations;
use crate::cache::{Hidden, reveal};
use crate::canary;
use crate::memory::Memory;
use crate::order::{self, Written};
use crate::snapshots::Replacement;
use engine::{BatchOp, Condition, Error, ExpiredItem, Expiry, PriorState};
use items::Item;

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

/// A batch while it is written.
pub(crate) struct BatchWrite<'a, M, D: Dram> {
    writer: &'a Writer<M, D>,
    plan: Plan<'a>,
}

impl<'a, M: Medium, D: Memory> BatchWrite<'a, M, D> {
    /// Carries out all of `ops` if all of `conditions` hold. Both keep the limits.
    pub(crate) fn run(
        writer: &'a Writer<M, D>,
        conditions: &[Condition<'a>],
        ops: &'a [BatchOp<'a>],
    ) -> Result<(), Error> {
        let plan = Plan::new(conditions, ops, |key| writer.reader.signature(key));
        writer.space.heap().region().set_features(writer.reader.medium(), FEATURE_BATCHES);
        let batch = BatchWrite { writer, plan };
        let expired = writer.with_space(|| batch.try_once())?;
        expired.into_iter().for_each(|item| writer.reaper.hook().notify(item));
        Ok(())
    }

    /// Carries out the batch unless the region is full; then nothing has changed. Returns copies of the replaced items
    /// that had expired.
    fn try_once(&self) -> Result<Vec<ExpiredItem>, Error> {
        let (writer, plan) = (self.writer, &self.plan);
        let reader = &writer.reader;
        if reader.medium().breaks(canary::CONDITION_OUTSIDE_LOCK) {
            plan.conditions_hold(reader, |signature, key| reader.find(signature, key))?;
        }
        let turn = reader.index().batch_turn();
        let stamp = writer.snapshots.stamp();
        let reservations = Reservations::write_items(reader.medium(), &writer.space, stamp, plan)?;
        let record = writer.space.reserve(reader.medium(), record_bytes(plan.ops.len()))?;
        loop {
            self.make_queue_space()?;
            let pin = epoch::pin();
            match self.lock_and_note(&reservations) {
                Ok(ready) => return self.carry_out(ready, turn, reservations, record),
                Err(Stop::Segments(full)) => reader.index().split_for_batch(writer.cx(), full, &plan.signatures)?,
                Err(Stop::Queue) => drop(pin),
                Err(Stop::Failed(error)) => {
                    if let Error::ConditionFailed { condition } = error {
                        let (signature, Condition { key, .. }) = plan.conditions[condition];
                        reader.find_again(signature, key)?;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Waits until each queue that the batch needs has space. The caller holds only a turn.
    fn make_queue_space(&self) -> Result<(), Error> {
        let (writer, signatures) = (self.writer, &self.plan.signatures);
        for partition in self.partitions_of(signatures.len(), |number| signatures[number]) {
            let mut backoff = Backoff::long();
            while !writer.order.has_space(partition) {
                writer.order.make_space(writer.source(), partition, &mut backoff)?;
            }
        }
        Ok(())
    }

    /// Returns the partitions of `count` sorted signatures; none if no queue receives changes.
    fn partitions_of(&self, count: usize, signature: impl Fn(usize) -> u64) -> Vec<usize> {
        let (mut partitions, mut next) = (Vec::new(), 0);
        while next < count && self.writer.order.is_offered() {
            let partition = self.writer.reader.index().partition(signature(next));
            // A partition has some hundred of the signatures.
            let mut past = count;
            while next < past {
                let middle = next.midpoint(past);
                if self.writer.reader.index().partition(signature(middle)) == partition {
                    next = middle + 1
                } else {
                    past = middle
                }
            }
            partitions.push(partition);
        }
        partitions
    }

    /// Does step 2. The caller is pinned.
    fn lock_and_note(&self, reservations: &Reservations<'_, M, D>) -> Result<Ready<'_, M, D>, Stop> {
        let plan = &self.plan;
        let mut batch = self.writer.reader.index().lock_batch(self.writer.cx(), &plan.signatures);
        if !self.writer.reader.medium().breaks(canary::CONDITION_OUTSIDE_LOCK) {
            plan.conditions_hold(&self.writer.reader, |signature, key| self.find_locked(&batch, signature, key))?;
        }
        let (mut expiring, mut number) = (Vec::new(), 0);
        for (op, (signature, asked)) in plan.ops.iter().enumerate() {
            if let Some(&BatchLookup::Entry(_, old)) = batch.lookups().get(number + AHEAD_COUNT) {
                self.writer.reader.medium().prefetch_line(old.offset());
            }
            // Signatures of conditions are in between.
            while plan.signatures[number] != *signature {
                number += 1;
            }
            let (key, new) = (asked.key(), reservations.position(op));
            let seen = batch.lookups()[number];
            match seen {
                BatchLookup::Entry(at, old) if self.writer.reader.plain_of(old, key).is_some() => {
                    batch.replace(number, op as u32, (at, old), new);
                }
                BatchLookup::Nothing if self.writer.reader.trusts_absence() => note_absent(&mut batch, number, op, new),
                _ => self.note_searching(&mut batch, number, (op, plan.ops[op]), new, &mut expiring)?,
            }
            number += usize::from(plan.conditions.is_empty());
        }
        batch.has_space()?;
        let (mut tickets, changes) = (BTreeMap::new(), batch.changes());
        for partition in self.partitions_of(changes.len(), |change| plan.ops[changes[change].by as usize].0) {
            if let Entry::Vacant(place) = tickets.entry(self.writer.order.queue_of(partition)) {
                place.insert(self.writer.order.take(|| partition).ok_or(Stop::Queue)?);
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
        let visit =
            |position| Ok::<_, Stop>(self.writer.reader.item_of(position, asked.key())?.map(|item| item.expiry));
        let Some(found) = batch.find(number, visit)? else {
            self.writer.reader.refuse_hidden(signature, asked.key())?;
            note_absent(batch, number, op, new);
            return Ok(());
        };
        expiring.extend((!found.value.is_never()).then_some((found.position, found.value)));
        batch.replace(number, op as u32, (found.slot.position, found.position), new);
        Ok(())
    }

    /// Returns the key's item, under its pair's lock.
    fn find_locked<'b>(
        &'b self,
        batch: &Batch<'b, M, D>,
        signature: u64,
        key: &[u8],
    ) -> Result<Option<(Position, Item<'b>)>, Error> {
        let (reader, number) = (&self.writer.reader, batch.number_of(signature));
        match batch.lookups()[number] {
            BatchLookup::Entry(_, position) => {
                if let Some(item) = reader.item_of(position, key)? {
                    return Ok(Some((position, item)));
                }
            }
            BatchLookup::Nothing if reader.trusts_absence() => return Ok(None),
            BatchLookup::Nothing | BatchLookup::Unsure => {}
        }
        let found = batch.find(number, |position| reader.item_of(position, key))?;
        if found.is_none() {
            reader.refuse_hidden(signature, key)?;
        }
        Ok(found.map(|found| (found.position, found.value)))
    }

    /// Does steps 3 to 9. The caller is pinned.
    fn carry_out(
        &self,
        Ready { batch, expiring, tickets }: Ready<'_, M, D>,
        turn: Turn<'_>,
        mut reservations: Reservations<'_, M, D>,
        record: Reservation<'_, D>,
    ) -> Result<Vec<ExpiredItem>, Error> {
        let plan = &self.plan;
        if batch.changes().is_empty() {
            drop(batch);
            let written = plan.ops.iter().map(|(signature, op)| (*signature, op.key()));
            let asked = plan.conditions.iter().map(|(signature, one)| (*signature, one.key)).chain(written);
            { asked }.try_for_each(|(signature, key)| self.writer.reader.find_again(signature, key))?;
            return Ok(Vec::new());
        }
        self.stamp_together(&mut reservations, &batch)?;
        let due = reservations.publish();
        let op_of = |change: &Change| plan.ops[change.by as usize];
        let hide = |(signature, op): (u64, &BatchOp<'a>)| {
            self.writer.cache.hide_of_batch(self.writer.reader.medium(), signature, op.key())
        };
        let changes = if self.writer.cache.is_there() { batch.changes() } else { &[] };
        let hidden: Vec<Hidden<'_, '_>> = changes.iter().map(op_of).map(hide).collect();
        let finished = batch.commit(turn, record.publish())?;
        for change in &finished.changes {
            self.writer.key_changes.replaced(
                op_of(change).1.key(),
                some(change.old).is_some(),
                some(change.new).is_some(),
            );
        }
        for (signature, expiry) in due {
            self.writer.reader.index().lower_due_of(self.writer.cx(), signature, expiry.ms());
            self.writer.reaper.expect(expiry);
        }
        self.enqueue_all(&finished.changes, tickets);
        let expired = expiring
            .iter()
            .filter(|(_, expiry)| prior_state(self.writer.reader.clock(), Some(*expiry)) == PriorState::Expired);
        let expired =
            expired.filter_map(|&(old, _)| self.writer.reaper.copy(self.writer.reader.medium(), Some(old))).collect();
        for (signature, segment) in finished.crowded {
            // The items are in; if a split finds no space now, a later put tries again.
            let _ = self.writer.reader.index().split(self.writer.cx(), signature, segment);
        }
        let _ = self.writer.reader.medium().acknowledge(finished.durable)?;
        hidden
            .into_iter()
            .zip(finished.changes)
            .for_each(|(hidden, change)| reveal(self.writer.reader.medium(), hidden, some(change.new)));
        Ok(expired)
    }

    /// Gives the batch's items one snapshot epoch, and keeps the old items that live snapshots see: a snapshot has all
    /// of the batch or nothing. Called under all locks, when the batch will certainly be published.
    fn stamp_together(&self, reservations: &mut Reservations<'_, M, D>, batch: &Batch<'_, M, D>) -> Result<(), Error> {
        if self.writer.snapshots.has_no_snapshot(reservations.stamp()) {
            return Ok(());
        }
        let stamp = self.writer.snapshots.stamp();
        if stamp != reservations.stamp() {
            reservations.stamp_as(stamp)?;
        }
        for change in batch.changes() {
            let (signature, op) = self.plan.ops[change.by as usize];
            let replacement = Replacement { stamp, signature, key: op.key(), old: some(change.old) };
            self.writer.snapshots.keep(self.writer.reader.medium(), replacement)?;
        }
        Ok(())
    }

    /// Does step 8: one place of each queue stands for all of its changes.
    fn enqueue_all(&self, changes: &[Change], tickets: BTreeMap<usize, order::Ticket<'_>>) {
        if tickets.values().all(Option::is_none) {
            return self.writer.disposal().retire_all(changes.iter().filter_map(|change| some(change.old)));
        }
        let mut by_queue: BTreeMap<usize, Vec<Written<'_>>> = BTreeMap::new();
        for change in changes {
            let (signature, op) = self.plan.ops[change.by as usize];
            let queue = self.writer.order.queue_of(self.writer.reader.index().partition(signature));
            let written = Written { key: op.key(), old: some(change.old), new: some(change.new) };
            by_queue.entry(queue).or_default().push(written);
        }
        for ((queue, ticket), written) in tickets.into_iter().zip(by_queue.into_values()) {
            self.writer.order.enqueue_all(self.writer.disposal(), queue, ticket, &written);
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
