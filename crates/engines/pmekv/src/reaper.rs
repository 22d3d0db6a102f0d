//! What the engine does for the reaper (`engine::Reaper`): a leaf of the tree is a step, and what is due is deleted if its record is
//! still the one that was seen.

use engine::{Answer, Error, Progress};
use pmem::{Dram, Medium};

use crate::Pmekv;
use crate::write::{Expected, Outcome};

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Walks a leaf.
    pub(crate) fn reap(&self) -> Result<Progress, Error> {
        self.reaper.reap(&|expiry| self.is_past(expiry), &mut |cursor, each| self.walk_all(cursor, each), &mut |key| {
            self.reap_key(key)
        })
    }

    fn reap_key(&self, key: &[u8]) -> Result<bool, Error> {
        self.bound_log()?;
        let outcome = self.with_room(|| self.reap_due(key))?;
        self.tell_if_expired(key, outcome);
        Ok(outcome != Answer::Unexpected)
    }

    fn reap_due(&self, key: &[u8]) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let due = self.find(key)?.filter(|(_, item)| self.is_past(item.expiry));
        let Some((position, _)) = due else { return Ok(Answer::Unexpected) };
        self.change(key, &mut None, Expected::Record(Some(position)))
    }
}
