//! Batches: several keys changed as one step, in whichever lanes.
//!
//! # Steps
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 records are written; flushed | the keys as they were |
//! | 2 all lanes are locked; their logs are seen to have room | the same |
//! | 3 an entry for each key is written in its lane, with the batch's number; flushed; ordered | the same: an entry of a batch counts if the batch has its end |
//! | 4 the batch's end is written in the lane of the first key, with how many entries there are; flushed; commit. *Acknowledged from here* | the keys as they were, or all changed |
//! | 5 the *table* of the batch's keys is shown to readers; the tree changes; the table is taken away; unlocked | all changed |
//! | 6 the old records are retired | the same |
//!
//! Where the tree cannot learn of a batch that counts (the host lends no memory, a record is damaged), the table stays for readers, and
//! writes are refused until the store is opened again.
//!
//! A batch's number contains that of the opening, so no log has two of one number. Checkpoints cut all lanes at once, and so never between
//! the entries of a batch and its end.
//!
//! # One step for readers
//! While the table is there, readers ask it before the tree (`shown.rs`). It appears at one moment, with all keys; a reader that
//! looked before had the answer from the tree of that time, or from the tree as it changed: then a reader that comes later finds the table, or the whole tree. A
//! scan reads a leaf of the tree and lays the table over it (`ordered.rs`), and reads again where a table came or went meanwhile. Nobody
//! else writes while a table is there, so what the table says of a leaf's keys is what they hold. A scan of several leaves is no snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{BatchOp, Condition, Error, ExpiredItem, Limits};
use index::Position;
use index::bplus_tree::Edit;
use items::NewItem;
use parking_lot::{MutexGuard, RwLock};
use pmem::{Dram, Level, Medium, Ticket, Waited};

use crate::entry::{Entry, Kind};
use crate::lane::Log;
use crate::prepared::Prepared;
use crate::record::witness;
use crate::shown::Shown;
use crate::write::{edit, entry};
use crate::{Pmekv, canary};

/// What the keys of a batch hold, once it counts.
pub(crate) type Table = BTreeMap<Vec<u8>, Option<Position>>;

/// The batch that is changing the tree, if one is.
#[derive(Default)]
pub(crate) struct Batches {
    pub(crate) shown: Shown<RwLock<Option<Arc<Table>>>>,
    number: AtomicU64,
    /// The tree could not learn of all of the batch in the table, which stays there.
    is_stuck: AtomicBool,
}

impl Batches {
    /// An error if a batch counts that the tree does not have: a writer that went by the tree would contradict the log. The caller holds the
    /// lane's lock, or has held all.
    pub(crate) fn is_learnt(&self) -> Result<(), Error> {
        let what = "the index lacks changes of a batch until the store is opened again";
        if self.is_stuck.load(Ordering::Acquire) { Err(Error::Corrupt { offset: 0, what }) } else { Ok(()) }
    }

    /// What a key holds that is in the batch under way. The caller is pinned.
    pub(crate) fn held(&self, key: &[u8]) -> Option<Option<Position>> {
        let (_, table) = self.shown.now();
        table?.get(key).copied()
    }
}

/// What came of a batch: the hashes of its keys, what is to be waited for, and copies of the items that had expired.
struct Applied {
    hashes: Vec<u64>,
    ticket: Ticket,
    expired: Vec<ExpiredItem>,
}

/// What a lane needs for a batch.
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

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Carries out a batch if its conditions hold; the last operation of a key counts.
    pub(crate) fn apply(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.may_write()?;
        Limits::check_batch(conditions, ops)?;
        self.bound_garbage();
        self.bound_log()?;
        let last: BTreeMap<&[u8], &BatchOp<'_>> = ops.iter().map(|op| (op.key(), op)).collect();
        let attempt = || self.try_apply(conditions, &last);
        let frees = ops.iter().all(|op| op.value().is_none());
        let Applied { hashes, ticket, expired } = self.with_space(frees, attempt)?;
        if self.medium.acknowledge(ticket)? == Waited::Durable {
            hashes.into_iter().for_each(|hash| self.tickets.settle(hash, ticket));
        }
        expired.into_iter().for_each(|item| self.reaper.hook().notify(item));
        Ok(())
    }

    fn try_apply(&self, conditions: &[Condition<'_>], ops: &BTreeMap<&[u8], &BatchOp<'_>>) -> Result<Applied, Error> {
        let changes = ops.iter().map(|(key, op)| self.prepare_op(key, op));
        let mut changes = changes.collect::<Result<Vec<_>, _>>()?;
        changes.iter_mut().filter_map(|change| change.new.as_mut()).for_each(|new| new.write(&self.medium));
        let mut lanes = self.lanes.lock_all();
        self.batches.is_learnt()?;
        if let Some(condition) = self.unmet(conditions)? {
            drop(lanes);
            conditions.iter().try_for_each(|condition| self.met(self.hasher.signature(condition.key)))?;
            return Err(Error::ConditionFailed { condition });
        }
        for change in &mut changes {
            change.old = self.find_in_tree(change.key)?;
        }
        let hashes = changes.iter().map(|change| change.hash).collect();
        // A key that is not there is not deleted; but that it is not there may not be durable yet.
        let asked = conditions.iter().map(|condition| self.hasher.signature(condition.key));
        let met = changes.iter().map(|change| change.hash).chain(asked).map(|hash| self.tickets.of(hash).ticket).max();
        let met = met.unwrap_or_default();
        changes.retain(|change| edit(change.old, change.position()).is_some());
        if changes.is_empty() {
            return Ok(Applied { hashes: Vec::new(), ticket: met, expired: Vec::new() });
        }
        let expired = self.expired_of(&changes)?;
        self.provide_for(&mut lanes, &changes)?;
        self.enter(&mut lanes, &changes);
        let ticket = self.medium.commit(Level::default());
        let changed = self.change_tree(changes, ticket);
        drop(lanes);
        changed?.into_iter().try_for_each(|old| self.retire(old))?;
        Ok(Applied { hashes, ticket, expired })
    }

    /// Copies of the records that have expired and are about to go. Their lanes are locked.
    fn expired_of(&self, changes: &[Change<'_, '_, D>]) -> Result<Vec<ExpiredItem>, Error> {
        let mut expired = Vec::new();
        for Change { old, .. } in changes {
            if let Some(old) = old
                && self.is_past(self.records().read(*old)?.expiry)
            {
                expired.extend(self.copy_expired(Some(*old)));
            }
        }
        Ok(expired)
    }

    /// The first condition that does not hold. Nobody writes meanwhile; what is let go of stays until no pin is older.
    fn unmet(&self, conditions: &[Condition<'_>]) -> Result<Option<usize>, Error> {
        let _pin = epoch::pin();
        for (number, condition) in conditions.iter().enumerate() {
            let position = self.find_in_tree(condition.key)?;
            let item =
                position.map(|position| self.records().read(position).map(|item| (position, item))).transpose()?;
            let live = item.filter(|(_, item)| !self.is_past(item.expiry));
            if !condition.holds(live.map(|(position, item)| (witness(position, &item), item.value))) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Room for step 1, of one key.
    fn prepare_op<'k>(&self, key: &'k [u8], op: &BatchOp<'k>) -> Result<Change<'_, 'k, D>, Error> {
        let item = op.value().map(|value| NewItem { key, value, expiry: op.expiry() });
        let new = item.map(|item| self.prepare(&item)).transpose()?;
        Ok(Change { key, hash: self.hasher.signature(key), new, old: None })
    }

    /// Step 2: the logs have room for the entries and the end; or they have what they had, so that a batch which is refused keeps no room
    /// from other writes.
    fn provide_for(&self, lanes: &mut [MutexGuard<'_, Log>], changes: &[Change<'_, '_, D>]) -> Result<(), Error> {
        let mut needs = vec![Needs::default(); lanes.len()];
        needs[self.lane_of_end(changes)].entry_count = 1;
        for change in changes {
            let of_lane = &mut needs[self.lanes.of(change.hash)];
            of_lane.entry_count += 1;
            of_lane.added_count += u64::from(matches!(edit(change.old, change.position()), Some(Edit::Insert(_))));
        }
        // As of single keys, the last segment is for what only deletes.
        let spare = usize::from(changes.iter().any(|change| change.new.is_some()));
        let had: Vec<usize> = lanes.iter().map(|log| log.ahead.len()).collect();
        let provide = |(log, needs): (&mut MutexGuard<'_, Log>, Needs)| {
            if needs.entry_count > 0 { self.provide(log, needs.entry_count, spare, needs.added_count) } else { Ok(()) }
        };
        let provided = lanes.iter_mut().zip(needs).try_for_each(provide);
        if provided.is_err() {
            for (log, had) in lanes.iter_mut().zip(had) {
                log.ahead.split_off(had).into_iter().for_each(|place| self.free(Position::of(place)));
                self.reserve.take_back(&mut log.keys);
            }
        }
        provided
    }

    /// Steps 3 and 4, but for the commit.
    fn enter(&self, lanes: &mut [MutexGuard<'_, Log>], changes: &[Change<'_, '_, D>]) {
        let durable: Vec<u64> = lanes.iter().map(|log| log.next - 1).collect();
        let batch = self.next_batch();
        for change in changes {
            let lane = self.lanes.of(change.hash);
            let entry = entry(change.old, change.new.as_ref());
            let entry = Entry { durable: durable[lane], batch, hash: change.hash, ..entry };
            self.lanes.append(&mut lanes[lane], &self.medium, entry);
        }
        if !self.medium.breaks(canary::BATCH_LINE_NOT_ORDERED) {
            self.medium.order();
        }
        let (count, log) = (changes.len() as u64, &mut lanes[self.lane_of_end(changes)]);
        let end = Entry { kind: Kind::BatchEnd, durable: log.next - 1, batch, hash: count, ..Entry::VOID };
        self.lanes.append(log, &self.medium, end);
        self.lanes.count_entries(count + 1, 0);
    }

    /// The lane of the first key, which has a log if the key is there.
    fn lane_of_end(&self, changes: &[Change<'_, '_, D>]) -> usize {
        changes.first().map_or(0, |change| self.lanes.of(change.hash))
    }

    fn next_batch(&self) -> u64 {
        let number = self.batches.number.fetch_add(1, Ordering::Relaxed) + 1;
        let opening = if self.medium.breaks(canary::BATCH_NUMBER_RETURNS) { 0 } else { self.lanes.opening() };
        batch_number(opening, number)
    }

    /// Step 5; the records that are to be retired.
    fn change_tree(&self, changes: Vec<Change<'_, '_, D>>, ticket: Ticket) -> Result<Vec<Position>, Error> {
        let (mut edits, mut hashes) = (Vec::new(), Vec::new());
        let mut table = Table::new();
        let expiring_count =
            changes.iter().filter_map(|change| change.new.as_ref()).filter(|new| new.expires()).count() as u64;
        for change in changes {
            let position = change.position();
            table.insert(change.key.to_vec(), position);
            edits.extend(edit(change.old, position).map(|edit| (change.key, change.old, edit)));
            // What was entered stays, whatever becomes of the medium.
            change.new.into_iter().for_each(Prepared::publish);
            hashes.push(change.hash);
        }
        // What a failed medium did not take in, readers must not see, nor wait for.
        self.medium.health()?;
        hashes.into_iter().for_each(|hash| self.tickets.raise(hash, ticket));
        self.batches.shown.show(table);
        let learn = |(key, _, edit): &(&[u8], _, Edit)| {
            let pin = epoch::pin();
            self.learn(&self.tree.find_to_change(pin.pinned(), &self.records(), key)?, *edit)
        };
        if let Err(error) = edits.iter().try_for_each(learn) {
            self.batches.is_stuck.store(true, Ordering::Release);
            return Err(error);
        }
        self.expect(expiring_count);
        self.batches.shown.take_away();
        Ok(edits.into_iter().filter_map(|(_, old, _)| old).collect())
    }
}

/// The number of the batch that is the `count`th of an opening. It returns after 2^40 batches of one opening, or 2^24 openings; a log that has both
/// would be damage.
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
