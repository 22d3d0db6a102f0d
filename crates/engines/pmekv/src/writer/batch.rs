//! Batches: several keys of any lanes, changed atomically.
//!
//! # Steps
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 write the records; flush | the old state |
//! | 2 lock all lanes; provide space in their logs | the same |
//! | 3 write an entry to each key's lane; flush; order | the same: entries are valid only if the batch has its end |
//! | 4 write the batch's end; flush; commit. *Acknowledged from here* | the old state, or all changes |
//! | 5 publish the *table* of the batch's keys; update the tree; withdraw the table; unlock | all changes |
//! | 6 retire the old records | the same |
//!
//! Each entry has the batch's number. The end also has the number of entries, and is in the lane of the batch's first
//! key.
//!
//! If the tree cannot take the changes of a valid batch (DRAM allocation fails, a record is damaged), the table stays
//! published, and writes fail until the store is opened again.
//!
//! A batch's number contains the number of the opening, so no number repeats in the logs. Checkpoints cut all lanes
//! together, and so never between the entries of a batch and its end.
//!
//! # Atomicity for readers
//! While the table is published, readers look there before the tree (`shown.rs`). The table appears at one moment, with
//! all keys. A reader that came before that moment read the tree, without or with the batch's changes; a later reader
//! finds the table, or the complete tree. A scan reads a leaf of the tree and lays the table over the leaf
//! (`reader/scan.rs`), and reads again if a table was published or withdrawn during that time. No other thread writes
//! while a table is published, so the table has the current state of its keys. A scan of several leaves is not a
//! snapshot.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use engine::{BatchOp, Condition, Error, ExpiredItem, Limits, PriorState};
use index::Position;
use index::bplus_tree::Edit;
use items::NewItem;
use parking_lot::MutexGuard;
use pmem::{Dram, Level, Medium, Ticket, Waited};

use super::{Writer, edit, entry};
use crate::canary;
use crate::entry::{Entry, Kind};
use crate::lanes::Log;
use crate::prepared::Prepared;
use crate::reader::Table;

/// The result of a batch: the hashes of its keys, the ticket to wait for, and copies of the expired items.
struct Applied {
    hashes: Vec<u64>,
    ticket: Ticket,
    expired: Vec<ExpiredItem>,
}

/// Entries and new keys that a lane needs for a batch.
#[derive(Clone, Copy, Default)]
struct Needs {
    entry_count: u64,
    added_count: u64,
}

/// The change of one key.
struct Change<'a, 'k, D: Dram> {
    key: &'k [u8],
    hash: u64,
    new: Option<Prepared<'a, 'k, D>>,
    old: Option<Position>,
}

impl<D: Dram> Change<'_, '_, D> {
    fn position(&self) -> Option<Position> {
        self.new.as_ref().map(Prepared::position)
    }
}

/// A batch under way.
pub(crate) struct Batch<'w, 'k, M: Medium, D: Dram> {
    writer: &'w Writer<M, D>,
    conditions: &'k [Condition<'k>],
    ops: &'k [BatchOp<'k>],
}

impl<'w, 'k, M: Medium, D: Dram> Batch<'w, 'k, M, D> {
    pub(crate) fn new(
        writer: &'w Writer<M, D>,
        conditions: &'k [Condition<'k>],
        ops: &'k [BatchOp<'k>],
    ) -> Batch<'w, 'k, M, D> {
        Batch { writer, conditions, ops }
    }

    /// Applies the batch if its conditions hold. The last operation of a key counts.
    pub(crate) fn apply(&self) -> Result<(), Error> {
        let (writer, reader) = (self.writer, self.writer.reader());
        reader.region().may_write()?;
        Limits::check_batch(self.conditions, self.ops)?;
        writer.bound()?;
        let last: BTreeMap<&[u8], &BatchOp<'_>> = self.ops.iter().map(|op| (op.key(), op)).collect();
        let frees = self.ops.iter().all(|op| op.value().is_none());
        let Applied { hashes, ticket, expired } = writer.checkpointer.with_space(frees, || self.try_apply(&last))?;
        if reader.region().medium().acknowledge(ticket)? == Waited::Durable {
            hashes.into_iter().for_each(|hash| reader.tickets().settle(hash, ticket));
        }
        expired.into_iter().for_each(|item| writer.reaper.hook().notify(item));
        Ok(())
    }

    fn try_apply(&self, ops: &BTreeMap<&'k [u8], &'k BatchOp<'k>>) -> Result<Applied, Error> {
        let (reader, region, conditions) = (self.writer.reader(), self.writer.reader().region(), self.conditions);
        let changes = ops.iter().map(|(key, op)| self.prepare(key, op));
        let mut changes = changes.collect::<Result<Vec<_>, _>>()?;
        changes.iter_mut().filter_map(|change| change.new.as_mut()).for_each(|new| new.write(region.medium()));
        let mut lanes = self.writer.lanes().lock_all();
        reader.check_batches_applied()?;
        if let Some(condition) = reader.first_unmet(conditions)? {
            drop(lanes);
            conditions.iter().try_for_each(|condition| reader.met(reader.hash(condition.key)))?;
            return Err(Error::ConditionFailed { condition });
        }
        for change in &mut changes {
            change.old = reader.contents().find_in_tree(change.key)?;
        }
        let hashes = changes.iter().map(|change| change.hash).collect();
        // A key that is absent is not deleted, but its absence may not be durable yet.
        let asked = conditions.iter().map(|condition| reader.hash(condition.key));
        let met =
            changes.iter().map(|change| change.hash).chain(asked).map(|hash| reader.tickets().ticket_of(hash)).max();
        let met = met.unwrap_or_default();
        changes.retain(|change| edit(change.old, change.position()).is_some());
        if changes.is_empty() {
            return Ok(Applied { hashes: Vec::new(), ticket: met, expired: Vec::new() });
        }
        let expired = self.expired_of(&changes)?;
        self.provide_for(&mut lanes, &changes)?;
        self.enter(&mut lanes, &changes);
        let ticket = region.medium().commit(Level::default());
        let changed = self.change_tree(changes, ticket);
        drop(lanes);
        changed?.into_iter().try_for_each(|old| region.retire(old))?;
        Ok(Applied { hashes, ticket, expired })
    }

    /// Returns copies of the expired records that the batch removes. Their lanes are locked.
    fn expired_of(&self, changes: &[Change<'_, '_, D>]) -> Result<Vec<ExpiredItem>, Error> {
        let (mut expired, contents) = (Vec::new(), self.writer.reader().contents());
        for change in changes {
            if contents.state_of(change.old)? == PriorState::Expired {
                expired.extend(self.writer.copy_expired(change.old));
            }
        }
        Ok(expired)
    }

    /// Reserves the slot of step 1, for one key.
    fn prepare(&self, key: &'k [u8], op: &'k BatchOp<'k>) -> Result<Change<'w, 'k, D>, Error> {
        let item = op.value().map(|value| NewItem { key, value, expiry: op.expiry() });
        let new = item.map(|item| self.writer.prepare(&item)).transpose()?;
        Ok(Change { key, hash: self.writer.reader().hash(key), new, old: None })
    }

    /// Step 2: gives the logs space for the entries and the end. On an error, returns them to their former state, so
    /// that a refused batch keeps no space from other writes.
    fn provide_for(&self, lanes: &mut [MutexGuard<'_, Log>], changes: &[Change<'_, '_, D>]) -> Result<(), Error> {
        let (all_lanes, region) = (self.writer.lanes(), self.writer.reader().region());
        let mut needs = vec![Needs::default(); lanes.len()];
        needs[self.lane_of_end(changes)].entry_count = 1;
        for change in changes {
            let of_lane = &mut needs[all_lanes.of(change.hash)];
            of_lane.entry_count += 1;
            of_lane.added_count += u64::from(matches!(edit(change.old, change.position()), Some(Edit::Insert(_))));
        }
        // As for single keys, the last segment is for writes that only delete.
        let spare = usize::from(changes.iter().any(|change| change.new.is_some()));
        let had: Vec<usize> = lanes.iter().map(|log| log.ahead_count()).collect();
        let mut needing = lanes.iter_mut().zip(needs).filter(|(_, needs)| needs.entry_count > 0);
        let provided = needing.try_for_each(|(log, Needs { entry_count, added_count })| {
            all_lanes.provide(log, region, entry_count, spare, added_count)
        });
        if provided.is_err() {
            lanes.iter_mut().zip(had).for_each(|(log, had)| all_lanes.undo_provide(log, region, had));
        }
        provided
    }

    /// Steps 3 and 4, except the commit.
    fn enter(&self, lanes: &mut [MutexGuard<'_, Log>], changes: &[Change<'_, '_, D>]) {
        let (all_lanes, medium) = (self.writer.lanes(), self.writer.reader().region().medium());
        let durable: Vec<u64> = lanes.iter().map(|log| log.last()).collect();
        let count = self.writer.batch_count.fetch_add(1, Ordering::Relaxed) + 1;
        let opening = if medium.breaks(canary::BATCH_NUMBER_RETURNS) { 0 } else { all_lanes.opening() };
        let batch = batch_number(opening, count);
        for change in changes {
            let lane = all_lanes.of(change.hash);
            let entry = entry(change.old, change.new.as_ref());
            let entry = Entry { durable: durable[lane], batch, hash: change.hash, ..entry };
            lanes[lane].append(medium, entry);
        }
        medium.order_unless(canary::BATCH_LINE_NOT_ORDERED);
        let (count, log) = (changes.len() as u64, &mut lanes[self.lane_of_end(changes)]);
        let end = Entry { kind: Kind::BatchEnd, durable: log.last(), batch, hash: count, ..Entry::VOID };
        log.append(medium, end);
        all_lanes.count_entries(count + 1, 0);
    }

    /// Returns the lane of the first key, which has a log if the key is present.
    fn lane_of_end(&self, changes: &[Change<'_, '_, D>]) -> usize {
        changes.first().map_or(0, |change| self.writer.lanes().of(change.hash))
    }

    /// Step 5. Returns the records that are to be retired.
    fn change_tree(&self, changes: Vec<Change<'_, '_, D>>, ticket: Ticket) -> Result<Vec<Position>, Error> {
        let (reader, mut table) = (self.writer.reader(), Table::new());
        let (mut edits, mut hashes) = (Vec::new(), Vec::new());
        let expiring_count =
            changes.iter().filter_map(|change| change.new.as_ref()).filter(|new| new.expires()).count() as u64;
        for change in changes {
            let position = change.position();
            table.insert(change.key.to_vec(), position);
            edits.extend(edit(change.old, position).map(|edit| (change.key, change.old, edit)));
            // The entries name the records, whatever happens to the medium.
            change.new.into_iter().for_each(Prepared::publish);
            hashes.push(change.hash);
        }
        // Readers must not see, nor wait for, changes that a failed medium did not accept.
        reader.region().medium().health()?;
        hashes.into_iter().for_each(|hash| reader.tickets().raise(hash, ticket));
        reader.publish(table);
        let update_record = |(key, _, edit): &(&[u8], _, Edit)| {
            let pin = epoch::pin();
            let found = reader.tree().find_to_change(pin.pinned(), &reader.records(), key)?;
            reader.contents().update_record(&found, *edit)
        };
        if let Err(error) = edits.iter().try_for_each(update_record) {
            reader.keep_published();
            return Err(error);
        }
        edits.iter().for_each(|(key, _, edit)| self.writer.count(key, *edit));
        self.writer.expect(expiring_count);
        reader.withdraw();
        Ok(edits.into_iter().filter_map(|(_, old, _)| old).collect())
    }
}

/// Returns the number of the `count`th batch of an opening. Numbers repeat after 2^40 batches of one opening, or 2^24
/// openings; a log that contains both would be reported as damaged.
fn batch_number(opening: u64, count: u64) -> u64 {
    opening << 40 | count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_numbers_differ_between_openings() {
        let day_count = 100_000 * 24 * 60 * 60;
        for opening in [1, 2, 1 << 20] {
            assert!(batch_number(opening, 1) < batch_number(opening, day_count));
            assert!(batch_number(opening, day_count) < batch_number(opening + 1, 1), "{opening}");
        }
    }
}
