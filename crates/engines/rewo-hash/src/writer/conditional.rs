//! Writes that depend on the key's state.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 pin; read the key's slot and item | nothing |
//! | 2 make the decision, outside of any lock | nothing |
//! | 3 if the key's slot is unchanged: put or delete; otherwise repeat from 1 | the old item or the new one |
//!
//! The pin lasts from step 1 to 3: the item's slot is not reused during that time, and an equal slot names the same
//! item. An expired key is absent to the decision. An item's checksum is always verified, whatever reads verify.

use engine::{Condition, CurrentItem, Decide, Decision, Error, Expiry, Limits, PriorState, WriteResult};
use index::block_hash::Key;
use items::NewItem;
use pmem::{Dram, Medium};

use super::{Outcome, Writer};

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Returns true if the decision changes the key, and the outcome. An item that the decision saw counts as not
    /// expired.
    pub(crate) fn try_update<'v>(&self, key: Key<'_>, decide: &mut Decide<'_, 'v>) -> Result<(bool, Outcome), Error> {
        let _pin = epoch::pin();
        let found = self.keys().find(key)?;
        let seen = found.as_ref().map(|slot| self.keys().intact_contents(slot)).transpose()?;
        let live = seen.filter(|seen| !self.keys().clock().is_past(seen.expiry));
        let held = live.map_or(Expiry::NEVER, |live| live.expiry);
        let decision = decide(live.map(|live| CurrentItem { value: live.value, expiry: live.expiry }));
        let put = match &decision {
            Decision::Keep => return Ok((false, WriteResult::Done(PriorState::Present).into())),
            Decision::Put(value) => Some((value, held)),
            Decision::PutUntil(value, expiry) => Some((value, *expiry)),
            Decision::Delete => None,
        };
        let mut new = match put {
            Some((value, expiry)) => {
                Limits::check_value(value.len() as u64)?;
                Some(self.prepare(key, &NewItem { key: key.bytes, value, expiry })?)
            }
            None => None,
        };
        let is_changed = live.is_some() || new.is_some();
        let Outcome { answer, expired } = self.write(key, &mut new, &mut |slot| slot == found.as_ref())?;
        Ok((is_changed, Outcome { answer, expired: expired.filter(|_| live.is_none()) }))
    }

    /// Deletes the key if all of these conditions hold, which are on the same key: steps 1 and 3. Step 1 only compares
    /// versions.
    pub(crate) fn try_delete_if(&self, key: Key<'_>, conditions: &[Condition<'_>]) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let found = self.keys().find(key)?;
        let live = found.as_ref().map_or(Ok(None), |slot| self.keys().live_witness(slot))?;
        if let Some(condition) = conditions.iter().position(|condition| !condition.holds(live)) {
            return Err(Error::ConditionFailed { condition });
        }
        self.write(key, &mut None, &mut |slot| slot == found.as_ref())
    }
}
