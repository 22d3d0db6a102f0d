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
use index::Position;
use index::partitioned_hash::Sight;
use index::partitioned_hash::batch::record::record_bytes;
use index::partitioned_hash::batch::{Batch, Change, Full, Turn};
use pmem::{Backoff, Dram, Medium, MediumError};

use crate::canary;
use crate::order::{self, Ordered, Written};
use crate::write::plan::Plan;
use crate::write::rooms::Rooms;
use crate::{HiKv, Memory};
use engine::{BatchOp, Before, Condition, Error, Expiry, Verify};

/// So many keys ahead the old items are asked for: as many as a core has misses in flight.
const AHEAD_COUNT: usize = 12;

/// What was noted beside the changes themselves.
#[derive(Default)]
struct Noted {
    /// Of each change, the number of its operation.
    ops: Vec<u32>,
    /// Changes whose old items expire, and when.
    expiring: Vec<(usize, Expiry)>,
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
    noted: Noted,
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
        let rooms = self.write_items(plan)?;
        let record = self.reserve(record_bytes(plan.ops.len()))?;
        loop {
            self.make_queue_room(&plan.signatures)?;
            let pin = epoch::pin();
            match self.lock_and_note(plan, &rooms) {
                Ok(ready) => return self.carry_out(ready, plan, rooms, record, turn),
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
        for partition in self.partitions_of(signatures.len(), |number| signatures[number]) {
            let mut backoff = Backoff::long();
            while !self.order.has_room(partition) {
                Ordered::make_room(self, partition, &mut backoff)?;
            }
        }
        Ok(())
    }

    /// The partitions of so many signatures, which are sorted; none where no queue is told of changes.
    fn partitions_of(&self, count: usize, signature: impl Fn(usize) -> u64) -> Vec<usize> {
        let (mut partitions, mut next) = (Vec::new(), 0);
        while next < count && self.order.is_offered() {
            let partition = self.index.partition(signature(next));
            // Some hundred signatures are of one partition.
            let mut past = count;
            while next < past {
                let middle = next.midpoint(past);
                if self.index.partition(signature(middle)) == partition { next = middle + 1 } else { past = middle }
            }
            partitions.push(partition);
        }
        partitions
    }

    /// Step 2. The caller is pinned.
    fn lock_and_note<'a>(&'a self, plan: &'a Plan<'_>, rooms: &Rooms<'_, M, D>) -> Result<Ready<'a, M, D>, Stop> {
        let mut batch = self.index.lock_batch(self.cx(), &plan.signatures);
        if !self.medium.breaks(canary::CONDITION_OUTSIDE_LOCK) {
            self.conditions_hold(plan, |signature, key| self.find_locked(&batch, signature, key))?;
        }
        let mut noted = Noted { ops: Vec::with_capacity(plan.ops.len()), expiring: Vec::new() };
        let mut number = 0;
        for (op_number, (signature, op)) in plan.ops.iter().enumerate() {
            if let Some(old) = batch.hint(number + AHEAD_COUNT) {
                self.medium.prefetch_line(old.offset());
            }
            // Signatures of conditions lie in between.
            while plan.signatures[number] != *signature {
                number += 1;
            }
            let new = rooms.position(op_number);
            if self.note(&mut batch, (number, *signature), op.key(), new, &mut noted)? {
                noted.ops.push(op_number as u32);
            }
            number += usize::from(plan.conditions.is_empty());
        }
        batch.has_room()?;
        let mut tickets = BTreeMap::new();
        for partition in self.partitions_of(noted.ops.len(), |change| plan.ops[noted.ops[change] as usize].0) {
            if let Entry::Vacant(place) = tickets.entry(self.order.queue_of(partition)) {
                place.insert(self.order.take(partition).ok_or(Stop::Queue)?);
            }
        }
        Ok(Ready { batch, noted, tickets })
    }

    /// Step 2 for one key: what is to be done; false if that is nothing.
    #[inline(always)]
    fn note(
        &self,
        batch: &mut Batch<'_, M, D>,
        (number, signature): (usize, u64),
        key: &[u8],
        new: Position,
        noted: &mut Noted,
    ) -> Result<bool, Stop> {
        match batch.glance(number) {
            Sight::Entry(found) if self.plain_of(found.position, key).is_some() => {
                batch.replace(number, &found, new);
                Ok(true)
            }
            Sight::Free(_) | Sight::Full if self.verify < Verify::Absence => Ok(note_absent(batch, number, new)),
            _ => self.note_searching(batch, (number, signature), key, new, noted),
        }
    }

    /// As [`HiKv::note`], where a look is not enough.
    #[inline(never)]
    fn note_searching(
        &self,
        batch: &mut Batch<'_, M, D>,
        (number, signature): (usize, u64),
        key: &[u8],
        new: Position,
        noted: &mut Noted,
    ) -> Result<bool, Stop> {
        let visit = |position| Ok::<_, Stop>(self.item_of(position, key)?.map(|item| item.expiry));
        let Some(found) = batch.find(number, visit)? else {
            self.refuse_hidden(signature, key)?;
            return Ok(note_absent(batch, number, new));
        };
        noted.expiring.extend((!found.value.is_never()).then_some((noted.ops.len(), found.value)));
        batch.replace(number, &found, new);
        Ok(true)
    }

    /// Steps 3 to 8. The caller is pinned.
    fn carry_out<'a>(
        &'a self,
        Ready { batch, noted, tickets }: Ready<'_, M, D>,
        plan: &Plan<'a>,
        mut rooms: Rooms<'_, M, D>,
        record: Reservation<'_, D>,
        turn: &Turn<'_>,
    ) -> Result<Vec<&'a [u8]>, Error> {
        if noted.ops.is_empty() {
            drop(batch);
            let written = plan.ops.iter().map(|(signature, op)| (*signature, op.key()));
            let asked = plan.conditions.iter().map(|(signature, one)| (*signature, one.key)).chain(written);
            { asked }.try_for_each(|(signature, key)| self.look_again(signature, key))?;
            return Ok(Vec::new());
        }
        self.stamp_together(&mut rooms, plan, &batch, &noted)?;
        let due = rooms.publish();
        let ops = || noted.ops.iter().map(|&number| plan.ops[number as usize]);
        let hide = |(signature, op): (u64, &BatchOp<'a>)| self.hide_of_batch(signature, op.key());
        let hidden: Vec<_> = if self.cache.is_some() { ops().map(hide).collect() } else { Vec::new() };
        let finished = batch.commit(turn, record.publish());
        for (signature, expiry) in due {
            self.index.lower_due_of(self.cx(), signature, expiry.ms());
            self.reaper.expect(expiry);
        }
        self.tell_all(ops(), &finished.changes, tickets);
        let mut expired = noted.expiring.iter().filter(|(_, expiry)| self.before(Some(*expiry)) == Before::Expired);
        let expired = expired.by_ref().map(|&(change, _)| plan.ops[noted.ops[change] as usize].1.key()).collect();
        for (signature, segment) in finished.crowded {
            // The items are in; a split that finds no space now will be tried again by a later put.
            let _ = self.index.split(self.cx(), signature, segment);
        }
        let _ = self.medium.acknowledge(finished.durable?)?;
        hidden.into_iter().zip(finished.changes).for_each(|(hidden, change)| self.reveal(hidden, some(change.new)));
        Ok(expired)
    }

    /// Makes the batch's items of one snapshot epoch, and keeps what live snapshots see of its keys: a snapshot has all of the batch
    /// or nothing. Under all locks, and nothing can keep the caller from publishing any more.
    fn stamp_together(
        &self,
        rooms: &mut Rooms<'_, M, D>,
        plan: &Plan<'_>,
        batch: &Batch<'_, M, D>,
        noted: &Noted,
    ) -> Result<(), Error> {
        if self.snapshots.is_calm(rooms.stamp()) {
            return Ok(());
        }
        let stamp = self.stamp();
        if stamp != rooms.stamp() {
            rooms.stamp_as(stamp)?;
        }
        for (change, &number) in batch.changes().iter().zip(&noted.ops) {
            let (signature, op) = plan.ops[number as usize];
            self.keep_for_snapshots(stamp, signature, op.key(), some(change.old))?;
        }
        Ok(())
    }

    /// Step 8: one place of each queue has all of its changes. `ops` are those that made the changes.
    fn tell_all<'o, 'v: 'o>(
        &self,
        ops: impl Iterator<Item = (u64, &'o BatchOp<'v>)>,
        changes: &[Change],
        tickets: BTreeMap<usize, order::Ticket<'_>>,
    ) {
        if tickets.values().all(Option::is_none) {
            return self.disposal().retire_all(changes.iter().filter_map(|change| some(change.old)));
        }
        let mut by_queue: BTreeMap<usize, Vec<Written<'_>>> = BTreeMap::new();
        for ((signature, op), change) in ops.zip(changes) {
            let queue = self.order.queue_of(self.index.partition(signature));
            let written = Written { key: op.key(), old: some(change.old), new: some(change.new) };
            by_queue.entry(queue).or_default().push(written);
        }
        for ((queue, ticket), written) in tickets.into_iter().zip(by_queue.into_values()) {
            self.order.tell_all(self.disposal(), queue, ticket, &written);
        }
    }
}

/// Notes a key that is not there, which gets the item `new`; false if that is none.
fn note_absent<M: Medium, D: Dram>(batch: &mut Batch<'_, M, D>, number: usize, new: Position) -> bool {
    if !new.is_empty() {
        batch.insert(number, new);
    }
    !new.is_empty()
}

fn some(position: Position) -> Option<Position> {
    (!position.is_empty()).then_some(position)
}
