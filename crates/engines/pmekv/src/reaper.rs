//! The engine's part of reaping expired keys (`engine::Reaper`): a step visits one leaf of the tree, and deletes an
//! expired key if it still has the record that was seen.

use engine::{Error, Progress, WriteResult};
use pmem::{Dram, Medium};

use crate::Pmekv;
use crate::record::check_intact;
use crate::write::{Expected, Outcome};

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Reaps one leaf.
    pub(crate) fn reap(&self) -> Result<Progress, Error> {
        self.reaper.reap(
            &|expiry| self.reader.is_past(expiry),
            &mut |cursor, each| Ok(self.reader.walk_readable(cursor, each)),
            &mut |key| self.reap_key(key),
        )
    }

    fn reap_key(&self, key: &[u8]) -> Result<bool, Error> {
        self.checkpointer.bound_log(&self.reader, &self.lanes)?;
        let outcome = self.checkpointer.with_space_to_delete((&self.reader, &self.lanes), || self.reap_due(key))?;
        Ok(self.report_expired(outcome).answer != WriteResult::Unexpected)
    }

    fn reap_due(&self, key: &[u8]) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let due = self.reader.find(key)?.filter(|(_, item)| self.reader.is_past(item.expiry));
        let Some((position, item)) = due else { return Ok(Outcome::UNEXPECTED) };
        // A damaged expiry must not delete a key.
        check_intact(position, &item)?;
        self.change(key, &mut None, Expected::Record(Some(position)))
    }
}
