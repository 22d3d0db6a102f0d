//! Batches: the engine's part of `index/src/block_hash/batch/mod.rs`.

use engine::{BatchOp, Condition, Error, ExpiredItem, PriorState};
use index::block_hash::{Key, NoSpace, Slot, Turn};
use index::cached_table::canary;
use items::NewItem;
use pmem::{Dram, Medium, Ticket};

use super::{Prepared, Writer};
use crate::cached::{Hidden, reveal};
use crate::keys::Keys;

/// A batch of a caller: each key's last operation, in the order of signatures, if the conditions hold.
pub(crate) struct Batch<'k> {
    conditions: Vec<(Key<'k>, Condition<'k>)>,
    ops: Vec<(Key<'k>, BatchOp<'k>)>,
    /// The signatures of all keys, ascending.
    signatures: Vec<u64>,
}

/// Keys, and their new slots; none for a removal.
type AllPrepared<'a, 'k, D> = [(Key<'k>, Option<Prepared<'a, 'k, D>>)];

/// The replaced slots, and the ticket to wait for.
struct Done<'a, 'k> {
    replaced: Vec<Slot>,
    /// The changed keys, by their numbers.
    hidden: Vec<(usize, Hidden<'a, 'k>)>,
    ticket: Option<Ticket>,
}

/// The reason why an attempt stopped.
enum Stop {
    Space(NoSpace),
    /// This condition does not hold.
    ConditionFailed(usize),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl<'k> Batch<'k> {
    pub(crate) fn new<M: Medium>(
        keys: &Keys<M>,
        conditions: &[Condition<'k>],
        ops: &[BatchOp<'k>],
    ) -> Result<Batch<'k>, Error> {
        let conditions = conditions.iter().map(|condition| Ok((keys.key(condition.key)?, *condition)));
        let conditions = conditions.collect::<Result<Vec<_>, Error>>()?;
        let mut ops = ops.iter().rev().map(|op| Ok((keys.key(op.key())?, *op))).collect::<Result<Vec<_>, Error>>()?;
        // The sort is stable: the last operation of each key comes first, and stays.
        ops.sort_by_key(|(key, _)| (key.signature, key.bytes));
        ops.dedup_by_key(|(key, _)| key.bytes);
        let mut batch = Batch { conditions, ops, signatures: Vec::new() };
        batch.signatures = batch.keys().map(|key| key.signature).collect();
        batch.signatures.sort_unstable();
        Ok(batch)
    }

    fn keys(&self) -> impl Iterator<Item = Key<'k>> + '_ {
        self.ops.iter().map(|(key, _)| *key).chain(self.conditions.iter().map(|(key, _)| *key))
    }

    /// Applies the batch, unless the region is full: then nothing has changed. Returns copies of the expired items.
    /// Items are written before the turn, and the log is waited for after it.
    pub(crate) fn attempt<M: Medium, D: Dram>(&self, writer: &Writer<M, D>) -> Result<Vec<ExpiredItem>, Error> {
        let prepare = |&(key, op): &(Key<'k>, BatchOp<'k>)| {
            let item = op.value().map(|value| NewItem { key: key.bytes, value, expiry: op.expiry() });
            Ok((key, item.map(|item| writer.prepare(key, &item)).transpose()?))
        };
        let prepared = self.ops.iter().map(prepare).collect::<Result<Vec<_>, Error>>()?;
        loop {
            let turn = writer.table().batch_turn();
            let _pin = epoch::pin();
            match self.carry_out(writer, &prepared, turn) {
                Ok(Done { replaced, hidden, ticket }) => {
                    let entered: Vec<_> = prepared.iter().map(|(_, new)| new.as_ref().map(|new| new.new)).collect();
                    // The item is visible now, even if the log fails.
                    let published = prepared.into_iter().filter_map(|(_, new)| new);
                    published.for_each(|new| new.publish(&writer.expiring));
                    ticket.map(|ticket| writer.medium().acknowledge(ticket)).transpose()?;
                    let hidden = hidden.into_iter();
                    hidden.for_each(|(number, hidden)| reveal(writer.keys(), hidden, entered[number].as_ref()));
                    return retire(writer, &replaced);
                }
                Err(Stop::Space(full)) => {
                    writer.may_grow()?;
                    writer.table().split_for_batch(writer.cx(), full, &self.signatures)?;
                }
                Err(Stop::ConditionFailed(condition)) => {
                    find_again(writer.keys(), self.conditions.iter().map(|(key, _)| *key))?;
                    return Err(Error::ConditionFailed { condition });
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    /// Steps 2 to 8. The caller is pinned.
    fn carry_out<'a, M: Medium, D: Dram>(
        &self,
        writer: &'a Writer<M, D>,
        prepared: &AllPrepared<'_, 'k, D>,
        turn: Turn<'_>,
    ) -> Result<Done<'a, 'k>, Stop> {
        let keys = writer.keys();
        let mut batch = writer.table().lock_batch(writer.cx(), &turn, &self.signatures);
        for (number, (key, condition)) in self.conditions.iter().enumerate() {
            let found = batch.find(*key, |position| keys.is_key(position, *key))?;
            if found.is_none() {
                keys.check_absence(|| batch.damaged_bucket(key.signature))?;
            }
            let live = found.as_ref().map(|found| keys.live_witness(&found.slot)).transpose()?.flatten();
            if !condition.holds(live) {
                return Err(Stop::ConditionFailed(number));
            }
        }
        let (mut replaced, mut changed, mut counted) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (key, new)) in prepared.iter().enumerate() {
            let new = new.as_ref().map(|new| &new.new.slot);
            match (batch.find(*key, |position| keys.is_key(position, *key))?, new) {
                (Some(old), new) => {
                    batch.replace(&old, new);
                    replaced.push(old.slot);
                    counted.push((key.bytes, true, new.is_some()));
                }
                (None, new) => {
                    keys.check_absence(|| batch.damaged_bucket(key.signature))?;
                    let Some(new) = new else { continue };
                    batch.insert(key.signature, new);
                    counted.push((key.bytes, false, true));
                }
            }
            changed.push((number, *key));
        }
        batch.has_space().map_err(Stop::Space)?;
        if batch.changes_nothing() {
            drop(batch);
            find_again(keys, self.keys())?;
            return Ok(Done { replaced, hidden: Vec::new(), ticket: None });
        }
        let record = batch.reserve_record().map_err(Error::from)?;
        let is_hidden = !writer.medium().breaks(canary::BATCH_HIDES_NOTHING);
        let changed = changed.into_iter().filter(|_| is_hidden);
        let hidden = changed.map(|(number, key)| (number, writer.cache().hide(key))).collect();
        let ticket = Some(batch.commit(turn, record).map_err(Error::from)?);
        counted.into_iter().for_each(|(key, was_present, is_present)| {
            writer.key_changes.replaced(key, was_present, is_present);
        });
        Ok(Done { replaced, hidden, ticket })
    }
}

/// Finds keys again for a batch that depends on them and has published nothing: their states may not be durable yet.
fn find_again<'k, M: Medium>(keys: &Keys<M>, mut all: impl Iterator<Item = Key<'k>>) -> Result<(), Error> {
    all.try_for_each(|key| keys.find(key).map(drop))
}

/// Retires the replaced items. Returns copies of the expired ones.
fn retire<M: Medium, D: Dram>(writer: &Writer<M, D>, replaced: &[Slot]) -> Result<Vec<ExpiredItem>, Error> {
    let mut expired = Vec::new();
    for slot in replaced {
        if writer.keys().prior_state(Some(slot))? == PriorState::Expired {
            expired.extend(writer.copy_expired(Some(slot)));
        }
        writer.space.retire(writer.medium(), Some(slot));
    }
    Ok(expired)
}
