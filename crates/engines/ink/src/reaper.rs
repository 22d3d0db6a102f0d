//! The tree's part of the reaper (`engine::Reaper`): one leaf a step. An expired key is deleted by a write that
//! checks under the leaf's lock whether it is still expired.

use engine::{Error, PriorState, Progress};
use pbtree::{Change, Value};
use pmem::{Dram, Medium};

use crate::writer::Writer;

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Reaps a leaf, as far as it is intact.
    pub(crate) fn reap(&self) -> Result<Progress, Error> {
        self.reaper().reap(
            &|expiry| self.items().is_past(expiry),
            &mut |cursor, each| self.items().walk_skipping_unreadable(cursor, each),
            &mut |key| self.reap_key(key),
        )
    }

    /// Deletes a key that is still expired. Its value must have a checksum that fits, because a damaged expiry may be
    /// past.
    fn reap_key(&self, key: &[u8]) -> Result<bool, Error> {
        let Some(removal) = self.key_changes().removal(key) else { return Ok(false) };
        let is_due = &mut |held: Option<&Value<'_>>| {
            let before = self.items().before(held);
            (before == PriorState::Expired && held.is_some_and(Value::is_intact)).then_some(before)
        };
        let (before, expired) = self.write_quietly(key, Change::Delete, is_due)?;
        // The callback may count keys.
        drop(removal);
        expired.into_iter().for_each(|item| self.reaper().hook().notify(item));
        Ok(before.is_some())
    }
}
