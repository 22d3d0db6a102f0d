//! Batches: the engine's part, on top of the tree's batches.

use std::collections::BTreeMap;

use engine::{BatchOp, Condition, Error, Limits, may_write};
use pbtree::{BatchWrite, Change, Value};
use pmem::{Dram, Medium};

use crate::copy::{expiry_of, witness_of};
use crate::writer::{Writer, put};

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Applies a batch in one step if its conditions hold; the last operation of a key counts.
    pub(crate) fn apply(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        may_write(self.items().tree().medium())?;
        Limits::check_batch(conditions, ops)?;
        let last: BTreeMap<&[u8], &BatchOp<'_>> = ops.iter().map(|op| (op.key(), op)).collect();
        // If expired keys are reported, the written keys are also read.
        let written = self.reaper().hook().is_set().then(|| last.keys().copied());
        let asked: Vec<_> =
            conditions.iter().map(|condition| condition.key).chain(written.into_iter().flatten()).collect();
        let mut expired = BTreeMap::new();
        let unmet = self.with_space(|| {
            // Expired keys that an earlier attempt found may be gone and reported by now.
            expired.clear();
            let mut holds = |number: usize, held: Option<&Value<'_>>| {
                let live = held.filter(|value| !self.items().is_past(expiry_of(value)));
                match conditions.get(number) {
                    Some(condition) => condition.holds(live.map(|value| (witness_of(value), value.bytes))),
                    None => {
                        let gone = held.filter(|_| live.is_none());
                        expired.extend(
                            gone.and_then(|held| self.copy_expired(asked[number], held)).map(|item| (number, item)),
                        );
                        true
                    }
                }
            };
            let mut writes: Vec<_> = last.iter().map(|(key, op)| BatchWrite::new(key, change(op))).collect();
            let unmet = self.items().tree().batch(epoch::thread_index(), &asked, &mut holds, &mut writes)?;
            if unmet.is_none() {
                let counted = writes.iter().zip(last.values());
                counted.for_each(|(write, op)| {
                    self.key_changes().replaced(op.key(), write.was_present(), op.value().is_some());
                });
            }
            Ok(unmet)
        });
        // Only now, as for one key.
        let expiring_count = ops.iter().filter(|op| !op.expiry().is_never()).count();
        if expiring_count > 0 {
            self.reaper().expect(expiring_count as u64);
        }
        let unmet = unmet?;
        if let Some(condition) = unmet {
            return Err(Error::ConditionFailed { condition });
        }
        self.merging().expect(self.items().tree());
        expired.into_values().for_each(|item| self.reaper().hook().notify(item));
        Ok(())
    }
}

fn change<'a>(op: &BatchOp<'a>) -> Change<'a> {
    op.value().map_or(Change::Delete, |value| put(value, op.expiry()))
}
