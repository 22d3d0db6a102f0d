//! What a batch asks for, and whether its conditions hold.
//!
//! Conditions are judged while the pairs of all keys are locked, those of the conditions among them, and before anything of the
//! batch is published: so all hold at one moment, which is that of the batch. On memory the batch makes what it finds durable
//! first; on a log what it publishes comes behind. A batch that publishes nothing, since a condition does not hold or there is
//! nothing to write, looks again as a reader before it says so (`look_again`).

use index::Position;
use index::partitioned_hash::batch::Batch;
use pmem::Medium;

use crate::{HiKv, Memory};
use crate::{canary, item};
use engine::{BatchOp, Condition, Error};
use items::Item;

/// What a batch asks for, with signatures: conditions as they were given, each key's last operation in the order of signatures,
/// and the signatures of both, in order.
pub(crate) struct Plan<'a> {
    pub(crate) conditions: Vec<(u64, Condition<'a>)>,
    pub(crate) ops: Vec<(u64, BatchOp<'a>)>,
    pub(crate) signatures: Vec<u64>,
}

/// Each key's last operation, in the order of signatures.
fn last_of_each_key<'a>(ops: &[BatchOp<'a>], signature: impl Fn(&'a [u8]) -> u64) -> Vec<(u64, BatchOp<'a>)> {
    let mut numbers: Vec<_> = ops.iter().enumerate().map(|(number, op)| (signature(op.key()), number)).collect();
    numbers.sort_unstable();
    let mut last: Vec<(u64, BatchOp<'a>)> = Vec::with_capacity(ops.len());
    for alike in numbers.chunk_by(|(one, _), (other, _)| one == other) {
        let first = last.len();
        for &(signature, number) in alike.iter().rev() {
            let op = ops[number];
            if last[first..].iter().all(|(_, later)| later.key() != op.key()) {
                last.push((signature, op));
            }
        }
    }
    last
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// What these ask for.
    pub(crate) fn plan<'a>(&self, conditions: &[Condition<'a>], ops: &[BatchOp<'a>]) -> Plan<'a> {
        let signature = |key| self.hasher.signature(key);
        let conditions: Vec<_> = conditions.iter().map(|condition| (signature(condition.key), *condition)).collect();
        let ops = last_of_each_key(ops, signature);
        let asked = conditions.iter().map(|(signature, _)| *signature);
        let mut signatures: Vec<_> = asked.chain(ops.iter().map(|(signature, _)| *signature)).collect();
        signatures.sort_unstable();
        Plan { conditions, ops, signatures }
    }

    /// An error that names the first condition that does not hold, by what `find` finds.
    pub(crate) fn conditions_hold<'a>(
        &'a self,
        plan: &Plan<'_>,
        mut find: impl FnMut(u64, &[u8]) -> Result<Option<(Position, Item<'a>)>, Error>,
    ) -> Result<(), Error> {
        let is_forgotten = |key| {
            self.medium.breaks(canary::CONDITION_OF_WRITTEN_KEY_FORGOTTEN)
                && plan.ops.iter().any(|(_, op)| op.key() == key)
        };
        for (number, &(signature, Condition { key, version })) in plan.conditions.iter().enumerate() {
            let found = find(signature, key)?;
            let live = found.map_or(Ok(None), |(position, item)| {
                Ok::<_, Error>(
                    self.unexpired(item, position)?.map(|item| item::version(item.header.checksum, position)),
                )
            })?;
            if live != version && !is_forgotten(key) {
                return Err(Error::Unmet { condition: number });
            }
        }
        Ok(())
    }

    /// What a key has, under its pair's lock.
    pub(crate) fn find_locked<'a>(
        &'a self,
        batch: &Batch<'a, M, D>,
        signature: u64,
        key: &[u8],
    ) -> Result<Option<(Position, Item<'a>)>, Error> {
        let found = batch.find(signature, |position| self.item_of(position, key))?;
        if found.is_none() {
            self.refuse_hidden(signature, key)?;
        }
        Ok(found.map(|found| (found.position, found.value)))
    }
}
