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

use engine::{Condition, CurrentItem, Decide, Decision, Error, Expiry, PriorState, WriteResult};
use index::block_hash::Key;
use items::NewItem;
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::write::{Outcome, check_value};

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Changes the key as `decide` returns. Returns true if it did.
    pub(crate) fn update_by<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.may_write()?;
        self.bound_garbage();
        let key = self.key(key)?;
        loop {
            let (is_changed, outcome) = self.with_space(|| self.try_update(key, decide))?;
            if outcome.answer != WriteResult::Unexpected {
                self.report_expired(outcome);
                return Ok(is_changed);
            }
        }
    }

    /// Returns true if the decision changes the key, and the outcome. An item that the decision saw counts as not
    /// expired.
    fn try_update<'v>(&self, key: Key<'_>, decide: &mut Decide<'_, 'v>) -> Result<(bool, Outcome), Error> {
        let _pin = epoch::pin();
        let found = self.find(key)?;
        let seen = found.as_ref().map(|slot| self.intact_contents(slot)).transpose()?;
        let live = seen.filter(|seen| !self.clock.is_past(seen.expiry));
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
                check_value(value.len() as u64)?;
                Some(self.prepare(key, &NewItem { key: key.bytes, value, expiry })?)
            }
            None => None,
        };
        let is_changed = live.is_some() || new.is_some();
        let Outcome { answer, expired } = self.write_pinned(key, &mut new, &mut |slot| slot == found.as_ref())?;
        Ok((is_changed, Outcome { answer, expired: expired.filter(|_| live.is_none()) }))
    }

    /// Deletes the key if all of these conditions hold, which are on the same key.
    pub(crate) fn delete_if(&self, key: &[u8], conditions: &[Condition<'_>]) -> Result<(), Error> {
        let key = self.key(key)?;
        loop {
            let outcome = self.try_delete_if(key, conditions)?;
            if outcome.answer != WriteResult::Unexpected {
                self.report_expired(outcome);
                return Ok(());
            }
        }
    }

    /// Steps 1 and 3; step 1 only compares versions.
    fn try_delete_if(&self, key: Key<'_>, conditions: &[Condition<'_>]) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let found = self.find(key)?;
        let live = found.as_ref().map_or(Ok(None), |slot| self.live_witness(slot))?;
        if let Some(condition) = conditions.iter().position(|condition| !condition.holds(live)) {
            return Err(Error::ConditionFailed { condition });
        }
        self.write_pinned(key, &mut None, &mut |slot| slot == found.as_ref())
    }

    /// Changes the key's expiry; false if the key is absent.
    pub(crate) fn expire_at(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        self.update_by(key, &mut |held| match held {
            Some(held) => Decision::PutUntil(held.value.to_vec().into(), expiry),
            None => Decision::Keep,
        })
    }
}
