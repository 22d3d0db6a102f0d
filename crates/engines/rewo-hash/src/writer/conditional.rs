//! Writes that depend on the key's state.
//!
//! The steps are those of `engine/src/conditional.rs`. The pin lasts from step 1 to 4: the item's slot is not reused
//! during that time, and an equal slot names the same item. An expired key is absent to the decision. An item's
//! checksum is always verified, whatever reads verify.

use engine::{Condition, CurrentItem, Decide, Error, Outcome, write_decided};
use index::block_hash::Key;
use items::NewItem;
use pmem::{Dram, Medium};

use super::Writer;

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Returns true if the decision changes the key, and the outcome; `None` if the key stays as it is.
    pub(crate) fn try_update<'v>(
        &self,
        key: Key<'_>,
        decide: &mut Decide<'_, 'v>,
    ) -> Result<Option<(bool, Outcome)>, Error> {
        let _pin = epoch::pin();
        let found = self.keys().find(key)?;
        let seen = found.as_ref().map(|slot| self.keys().intact_contents(slot)).transpose()?;
        let live = seen.filter(|seen| !self.keys().clock().is_past(seen.expiry));
        let held = live.map(|live| CurrentItem { value: live.value, expiry: live.expiry });
        write_decided(held, decide, |new| {
            let prepare = |(value, expiry)| self.prepare(key, &NewItem { key: key.bytes, value, expiry });
            let mut new = new.map(prepare).transpose()?;
            Ok(self.write(key, &mut new, &mut |slot| slot == found.as_ref())?.shown(held.is_some()))
        })
    }

    /// Deletes the key if all of these conditions hold, which are on the same key: steps 1 and 4. Step 1 only compares
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
