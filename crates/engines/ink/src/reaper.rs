//! What the tree does for the reaper (`engine::Reaper`): a leaf is a step, and what is due is deleted by a write that looks again,
//! under the leaf's lock, whether it still is.

use engine::{Error, PriorState, Progress};
use pbtree::{Change, Value};
use pmem::{Dram, Medium};

use crate::Ink;

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Walks a leaf, as far as it is whole.
    pub(crate) fn reap(&self) -> Result<Progress, Error> {
        self.reaper.reap(
            &|expiry| self.is_past(expiry),
            &mut |cursor, each| self.walk_past_damage(cursor, each),
            &mut |key| self.reap_key(key),
        )
    }

    /// A value is deleted for its time only if its checksum fits: a time that has rotted may be past.
    fn reap_key(&self, key: &[u8]) -> Result<bool, Error> {
        let is_due = &mut |held: Option<&Value<'_>>| {
            let before = self.before(held);
            (before == PriorState::Expired && held.is_some_and(Value::is_intact)).then_some(before)
        };
        Ok(self.write(key, Change::Delete, is_due)?.is_some())
    }
}
