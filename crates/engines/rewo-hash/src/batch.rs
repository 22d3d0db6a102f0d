//! Writing several keys as one step: the engine's part of `index/src/block_hash/batch.rs`.

use engine::{BatchOp, Error, Limits};
use index::block_hash::{Key, NoRoom, Slot, Turn};
use items::NewItem;
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::write::{Before, Prepared, check_value};

/// Why an attempt came to no end.
enum Stop {
    Room(NoRoom),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Carries out a batch; the last operation of a key counts.
    pub(crate) fn apply(&self, ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.may_write()?;
        check(ops)?;
        let mut ops = ops.iter().rev().map(|op| Ok((self.key(op.key())?, *op))).collect::<Result<Vec<_>, Error>>()?;
        // Stable: of one key's operations the last one comes first, and stays.
        ops.sort_by_key(|(key, _)| (key.signature, key.bytes));
        ops.dedup_by_key(|(key, _)| key.bytes);
        let turn = self.table.batch_turn();
        let expired = self.with_room(|| self.try_batch(&ops, &turn))?;
        drop(turn);
        expired.into_iter().for_each(|key| self.expired_hook.tell(key));
        Ok(())
    }

    /// A batch, unless the region is full: then nothing has changed. Those of its keys come back that had expired.
    fn try_batch<'k>(&self, ops: &[(Key<'k>, BatchOp<'k>)], turn: &Turn<'_>) -> Result<Vec<&'k [u8]>, Error> {
        let prepare = |&(key, op): &(Key<'k>, BatchOp<'k>)| {
            let item = op.value().map(|value| NewItem { key: key.bytes, value, expiry: op.expiry() });
            Ok((key, item.map(|item| self.prepare(key, &item)).transpose()?))
        };
        let prepared = ops.iter().map(prepare).collect::<Result<Vec<_>, Error>>()?;
        let signatures: Vec<_> = ops.iter().map(|(key, _)| key.signature).collect();
        loop {
            let _pin = epoch::pin();
            match self.carry_out(&signatures, &prepared, turn) {
                Ok(replaced) => {
                    prepared.into_iter().filter_map(|(_, new)| new).for_each(Prepared::publish);
                    return self.ended(replaced);
                }
                Err(Stop::Room(full)) => self.table.split_for_batch(self.cx(), full, &signatures)?,
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    /// Steps 2 to 9: the slots that went. The caller is pinned.
    fn carry_out<'k>(
        &self,
        signatures: &[u64],
        prepared: &[(Key<'k>, Option<Prepared<'_, D>>)],
        turn: &Turn<'_>,
    ) -> Result<Vec<(&'k [u8], Slot)>, Stop> {
        let mut batch = self.table.lock_batch(self.cx(), turn, signatures);
        let mut replaced = Vec::new();
        for (key, new) in prepared {
            let new = new.as_ref().map(|new| &new.slot);
            match (batch.find(*key, |position| self.is_key(position, *key))?, new) {
                (Some(old), new) => {
                    batch.replace(&old, new);
                    replaced.push((key.bytes, old.slot));
                }
                (None, Some(new)) => batch.insert(key.signature, new),
                (None, None) => {}
            }
        }
        batch.has_room().map_err(Stop::Room)?;
        if batch.changes_nothing() {
            drop(batch);
            // What it goes by may not be durable yet.
            return prepared
                .iter()
                .try_for_each(|(key, _)| self.find(*key).map(drop))
                .map(|()| replaced)
                .map_err(Stop::from);
        }
        let record = batch.reserve_record().map_err(Error::from)?;
        let ticket = batch.commit(record);
        let _ = self.medium.acknowledge(ticket).map_err(Error::from)?;
        Ok(replaced)
    }

    /// Retires what went.
    fn ended<'k>(&self, replaced: Vec<(&'k [u8], Slot)>) -> Result<Vec<&'k [u8]>, Error> {
        let mut expired = Vec::new();
        for (key, slot) in &replaced {
            if self.before(Some(slot))? == Before::Expired {
                expired.push(*key);
            }
            self.retire(Some(slot));
        }
        Ok(expired)
    }
}

fn check(ops: &[BatchOp<'_>]) -> Result<(), Error> {
    let mut len_bytes = 0u64;
    for op in ops {
        let value = op.value().unwrap_or_default();
        check_value(value.len() as u64)?;
        len_bytes += Limits::batch_op_bytes(op.key(), value);
    }
    if len_bytes > Limits::BATCH_BYTES_MAX { Err(Error::BatchTooLong { len_bytes }) } else { Ok(()) }
}
