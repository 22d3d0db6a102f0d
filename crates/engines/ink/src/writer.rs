//! Writes, unconditional and conditional.

use engine::{
    CurrentItem, Decide, Error, ExpiredItem, Expiry, KeyChanges, PriorState, Reaper, Verify, may_write, write_decided,
};
use pbtree::{Change, Error as TreeError, NewValue, Value};
use pmem::{Dram, Medium};

use crate::copy::expiry_of;
use crate::error::from_tree;
use crate::items::Items;
use crate::merging::Merging;

/// Returns the change that puts a value.
pub(crate) fn put(bytes: &[u8], expiry: Expiry) -> Change<'_> {
    Change::Put(NewValue { bytes, expiry: (!expiry.is_never()).then(|| expiry.ms()) })
}

/// Decides about a write by the key's present value: returns its state, or `None` to leave the key as it is.
pub(crate) type Allowed<'a> = &'a mut dyn FnMut(Option<&Value<'_>>) -> Option<PriorState>;

/// The store's writers: they change items, and report them to the reaper and to background merges.
pub(crate) struct Writer<M: Medium, D: Dram> {
    items: Items<M, D>,
    reaper: Reaper,
    merging: Merging,
    key_changes: KeyChanges,
}

impl<M: Medium, D: Dram> Writer<M, D> {
    pub(crate) fn new(items: Items<M, D>) -> Writer<M, D> {
        let merging = Merging::of(items.tree().options().order);
        Writer { items, reaper: Reaper::default(), merging, key_changes: KeyChanges::default() }
    }

    #[inline(always)]
    pub(crate) fn items(&self) -> &Items<M, D> {
        &self.items
    }

    pub(crate) fn items_mut(&mut self) -> &mut Items<M, D> {
        &mut self.items
    }

    pub(crate) fn reaper(&self) -> &Reaper {
        &self.reaper
    }

    pub(crate) fn key_changes(&self) -> &KeyChanges {
        &self.key_changes
    }

    pub(crate) fn merging(&self) -> &Merging {
        &self.merging
    }

    /// Writes if `allowed` returns the state of the key's present value; returns that state, or `None` if `allowed`
    /// did. Notifies the reaper of values that expire, and its hook of a value that had expired.
    pub(crate) fn write(
        &self,
        key: &[u8],
        change: Change<'_>,
        allowed: Allowed<'_>,
    ) -> Result<Option<PriorState>, Error> {
        let (before, expired) = self.write_quietly(key, change, allowed)?;
        expired.into_iter().for_each(|item| self.reaper.hook().notify(item));
        Ok(before)
    }

    /// Writes as [`Writer::write`] does, and returns a copy of a value that had expired instead of notifying the hook.
    pub(crate) fn write_quietly(
        &self,
        key: &[u8],
        change: Change<'_>,
        allowed: Allowed<'_>,
    ) -> Result<(Option<PriorState>, Option<ExpiredItem>), Error> {
        may_write(self.items.tree().medium())?;
        let (mut before, mut expired, mut was_held) = (None, None, false);
        let mut seen = |held: Option<&Value<'_>>| {
            before = allowed(held);
            was_held = held.is_some();
            expired =
                held.filter(|_| before == Some(PriorState::Expired)).and_then(|held| self.copy_expired(key, held));
            before.is_some()
        };
        let written = self.with_space(|| self.items.tree().write(epoch::thread_index(), key, change, &mut seen));
        // Only now: a walk of the reaper that began before may have passed the key's old value.
        if let Change::Put(NewValue { expiry: Some(_), .. }) = change {
            self.reaper.expect(1);
        }
        written?;
        if before.is_some() {
            self.key_changes.replaced(key, was_held, change != Change::Delete);
        }
        if change == Change::Delete {
            self.merging.expect(self.items.tree());
        }
        Ok((before, expired))
    }

    /// Copies an expired value that is about to be removed, for the callback, if there is one. A damaged value is not
    /// copied, because its expiry may be wrong.
    #[cold]
    pub(crate) fn copy_expired(&self, key: &[u8], value: &Value<'_>) -> Option<ExpiredItem> {
        if value.is_intact() { self.reaper.hook().copy(key, value.bytes, expiry_of(value)) } else { None }
    }

    /// Calls `work`. If the region seems full, calls it again once all free space is known, and again after a pass of
    /// merges.
    pub(crate) fn with_space<T>(&self, mut work: impl FnMut() -> Result<T, TreeError>) -> Result<T, Error> {
        let tree = self.items.tree();
        // Read before the work: the sweep may end between the work's failure and a check.
        let was_swept = tree.heap().is_swept();
        let is_full = |done: &Result<T, TreeError>| matches!(done, Err(TreeError::Heap(error)) if error.is_full());
        let mut done = work();
        if !was_swept && is_full(&done) {
            tree.sweep().map_err(from_tree)?;
            done = work();
        }
        if is_full(&done) && self.merging.run_for_space(tree)? {
            done = work();
        }
        done.map_err(from_tree)
    }

    /// Deletes a key. Returns true if it existed.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let before = self.write(key, Change::Delete, &mut |held| held.map(|held| self.items.before(Some(held))))?;
        Ok(before == Some(PriorState::Present))
    }

    /// Calls `decide` and writes its decision if the key still has the value that was shown; otherwise repeats both.
    /// The value is always checked, because a new value made from a damaged one would get a checksum that fits.
    pub(crate) fn update_by<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        may_write(self.items.tree().medium())?;
        loop {
            let found = self.items.find_verified(key, Verify::Values)?;
            let seen = found.as_ref().map(|found| found.stamp);
            let live = found.as_ref().filter(|found| !self.items.is_past(found.expiry));
            let before = found.as_ref().map_or(PriorState::Absent, |_| PriorState::Expired).present_if(live.is_some());
            let held = live.map(|live| CurrentItem { value: &live.bytes, expiry: live.expiry });
            let is_seen = &mut |held: Option<&Value<'_>>| (held.map(|held| held.stamp) == seen).then_some(before);
            let written = write_decided(held, &mut *decide, |new| {
                self.write(key, new.map_or(Change::Delete, |(value, expiry)| put(value, expiry)), is_seen)
            })?;
            match written {
                None => return Ok(false),
                Some((changed, Some(_))) => return Ok(changed),
                Some((_, None)) => {}
            }
        }
    }
}
