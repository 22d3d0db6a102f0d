//! Batches: the engine's part of `index/src/block_hash/batch.rs`.

use engine::{BatchOp, Condition, Engine, Error, ExpiredItem, Limits, PriorState, Witness};
use index::block_hash::{Key, NoSpace, Slot, Turn};
use index::cached_table::canary;
use items::NewItem;
use pmem::{Dram, Medium, Ticket};

use crate::RewoHash;
use crate::cached::Hidden;
use crate::write::Prepared;

/// A condition, and its key.
type Asked<'k> = (Key<'k>, Condition<'k>);

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
    Unmet(usize),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Applies a batch if its conditions hold. The last operation of a key counts.
    pub(crate) fn apply(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.may_write()?;
        self.bound_garbage();
        Limits::check_batch(conditions, ops)?;
        if let Some(key) = BatchOp::single_delete(conditions, ops) {
            return if conditions.is_empty() { self.delete(key).map(drop) } else { self.delete_if(key, conditions) };
        }
        let asked = conditions.iter().map(|condition| Ok((self.key(condition.key)?, *condition)));
        let asked = asked.collect::<Result<Vec<_>, Error>>()?;
        let mut ops = ops.iter().rev().map(|op| Ok((self.key(op.key())?, *op))).collect::<Result<Vec<_>, Error>>()?;
        // The sort is stable: the last operation of each key comes first, and stays.
        ops.sort_by_key(|(key, _)| (key.signature, key.bytes));
        ops.dedup_by_key(|(key, _)| key.bytes);
        let turn = self.table.batch_turn();
        let expired = self.with_space(|| self.try_batch(&asked, &ops, &turn))?;
        drop(turn);
        expired.into_iter().for_each(|item| self.expired_hook.notify(item));
        Ok(())
    }

    /// Applies a batch, unless the region is full: then nothing has changed. Returns copies of the expired items.
    fn try_batch<'k>(
        &self,
        asked: &[Asked<'_>],
        ops: &[(Key<'k>, BatchOp<'k>)],
        turn: &Turn<'_>,
    ) -> Result<Vec<ExpiredItem>, Error> {
        let prepare = |&(key, op): &(Key<'k>, BatchOp<'k>)| {
            let item = op.value().map(|value| NewItem { key: key.bytes, value, expiry: op.expiry() });
            Ok((key, item.map(|item| self.prepare(key, &item)).transpose()?))
        };
        let prepared = ops.iter().map(prepare).collect::<Result<Vec<_>, Error>>()?;
        let keys = ops.iter().map(|(key, _)| key).chain(asked.iter().map(|(key, _)| key));
        let mut signatures: Vec<_> = keys.map(|key| key.signature).collect();
        signatures.sort_unstable();
        loop {
            let _pin = epoch::pin();
            match self.carry_out(&signatures, asked, &prepared, turn) {
                Ok(Done { replaced, hidden, ticket }) => {
                    let entered: Vec<_> = prepared.iter().map(|(_, new)| new.as_ref().map(|new| new.new)).collect();
                    // The item is visible now, even if the log fails.
                    prepared.into_iter().filter_map(|(_, new)| new).for_each(|new| new.publish(&self.reaper));
                    ticket.map(|ticket| self.medium.acknowledge(ticket)).transpose()?;
                    hidden.into_iter().for_each(|(number, hidden)| self.reveal(hidden, entered[number].as_ref()));
                    return self.ended(replaced);
                }
                Err(Stop::Space(full)) => {
                    self.may_grow()?;
                    self.table.split_for_batch(self.cx(), full, &signatures)?;
                }
                Err(Stop::Unmet(condition)) => {
                    self.find_again(asked.iter().map(|(key, _)| key))?;
                    return Err(Error::ConditionFailed { condition });
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    /// Steps 2 to 8. The caller is pinned.
    fn carry_out<'a, 'k>(
        &'a self,
        signatures: &[u64],
        asked: &[Asked<'_>],
        prepared: &[(Key<'k>, Option<Prepared<'_, '_, D>>)],
        turn: &Turn<'_>,
    ) -> Result<Done<'a, 'k>, Stop> {
        let mut batch = self.table.lock_batch(self.cx(), turn, signatures);
        for (number, (key, condition)) in asked.iter().enumerate() {
            let found = batch.find(*key, |position| self.is_key(position, *key))?;
            if found.is_none() {
                self.check_absence(|| batch.damaged_bucket(key.signature))?;
            }
            let live = found.as_ref().map(|found| self.live_witness(&found.slot)).transpose()?.flatten();
            if !condition.holds(live) {
                return Err(Stop::Unmet(number));
            }
        }
        let (mut replaced, mut changed) = (Vec::new(), Vec::new());
        for (number, (key, new)) in prepared.iter().enumerate() {
            let new = new.as_ref().map(|new| &new.new.slot);
            match (batch.find(*key, |position| self.is_key(position, *key))?, new) {
                (Some(old), new) => {
                    batch.replace(&old, new);
                    replaced.push(old.slot);
                }
                (None, new) => {
                    self.check_absence(|| batch.damaged_bucket(key.signature))?;
                    let Some(new) = new else { continue };
                    batch.insert(key.signature, new);
                }
            }
            changed.push((number, *key));
        }
        batch.has_space().map_err(Stop::Space)?;
        if batch.changes_nothing() {
            drop(batch);
            self.find_again(prepared.iter().map(|(key, _)| key).chain(asked.iter().map(|(key, _)| key)))?;
            return Ok(Done { replaced, hidden: Vec::new(), ticket: None });
        }
        let record = batch.reserve_record().map_err(Error::from)?;
        let is_hidden = !self.medium.breaks(canary::BATCH_HIDES_NOTHING);
        let hidden = changed.into_iter().filter(|_| is_hidden).map(|(number, key)| (number, self.hide(key))).collect();
        Ok(Done { replaced, hidden, ticket: Some(batch.commit(record).map_err(Error::from)?) })
    }

    /// Finds keys again for a batch that depends on them and has published nothing: their states may not be durable
    /// yet.
    fn find_again<'k>(&self, mut keys: impl Iterator<Item = &'k Key<'k>>) -> Result<(), Error> {
        keys.try_for_each(|key| self.find(*key).map(drop))
    }

    /// Returns the value of a slot and its witness, unless the value has expired.
    pub(crate) fn live_witness<'a>(&'a self, slot: &'a Slot) -> Result<Option<(Witness, &'a [u8])>, Error> {
        let seen = self.contents(slot)?;
        Ok((!self.clock.is_past(seen.expiry)).then(|| (seen.witness(), seen.value)))
    }

    /// Retires the replaced items. Returns copies of the expired ones.
    fn ended(&self, replaced: Vec<Slot>) -> Result<Vec<ExpiredItem>, Error> {
        let mut expired = Vec::new();
        for slot in &replaced {
            if self.before(Some(slot))? == PriorState::Expired {
                expired.extend(self.copy_expired(Some(slot)));
            }
            self.retire(Some(slot));
        }
        Ok(expired)
    }
}
