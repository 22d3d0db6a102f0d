//! Writes: plain ones, and those that depend on what a key holds.

use engine::{CurrentItem, Decide, Decision, Error, ExpiredItem, Expiry, PriorState, Verify};
use pbtree::{Change, Error as TreeError, NewValue, Value};
use pmem::{Dram, Medium, MediumError};

use crate::Ink;
use crate::copy::{Copy, check_intact, expiry_of};
use crate::error::from_tree;

/// A value that is to be put.
pub(crate) fn put(bytes: &[u8], expiry: Expiry) -> Change<'_> {
    Change::Put(NewValue { bytes, expiry: (!expiry.is_never()).then(|| expiry.ms()) })
}

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Writes if `allowed` says, of what the key holds, what that is to the writer; `None`, if it does not. The reaper is told of what expires,
    /// and its hook of a value that had.
    pub(crate) fn write(
        &self,
        key: &[u8],
        change: Change<'_>,
        allowed: &mut dyn FnMut(Option<&Value<'_>>) -> Option<PriorState>,
    ) -> Result<Option<PriorState>, Error> {
        self.may_write()?;
        let (mut before, mut expired) = (None, None);
        let mut seen = |held: Option<&Value<'_>>| {
            before = allowed(held);
            expired =
                held.filter(|_| before == Some(PriorState::Expired)).and_then(|held| self.copy_expired(key, held));
            before.is_some()
        };
        let written = self.with_space(|| self.tree.write(epoch::thread_index(), key, change, &mut seen));
        // Only now: of a walk that it began before, the reaper may have met the key's old value.
        if let Change::Put(NewValue { expiry: Some(_), .. }) = change {
            self.reaper.expect(1);
        }
        written?;
        if change == Change::Delete {
            self.expect_merges();
        }
        expired.into_iter().for_each(|item| self.reaper.hook().notify(item));
        Ok(before)
    }

    /// A copy of a value that has expired and is about to go, for the callback, if there is one. A time that has rotted is none, and
    /// neither is a value.
    #[cold]
    pub(crate) fn copy_expired(&self, key: &[u8], value: &Value<'_>) -> Option<ExpiredItem> {
        if value.is_intact() { self.reaper.hook().copy(key, value.bytes, expiry_of(value)) } else { None }
    }

    /// Does `work`; where the region seems full, again once all free space is known, and then once what deletes have left is merged.
    pub(crate) fn with_space<T>(&self, mut work: impl FnMut() -> Result<T, TreeError>) -> Result<T, Error> {
        // Before the work: the sweep may end between its failure and a look at it.
        let was_swept = self.tree.heap().is_swept();
        let mut done = work();
        if !was_swept && is_full(&done) {
            self.tree.sweep().map_err(from_tree)?;
            done = work();
        }
        if is_full(&done) && self.merge_for_space()? {
            done = work();
        }
        done.map_err(from_tree)
    }

    /// An error where nothing can be written. What a failed medium takes no more must not be seen by readers either.
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        let medium = self.tree.medium();
        if medium.is_writable() { Ok(medium.health()?) } else { Err(MediumError::ReadOnly.into()) }
    }

    /// True where the key is absent, though there is a value.
    pub(crate) fn is_past(&self, expiry: Expiry) -> bool {
        self.clock.is_past(expiry)
    }

    /// What a value is to the write that takes it away. The clock is looked at once: the writer's caller and the hook go by the same.
    pub(crate) fn before(&self, held: Option<&Value<'_>>) -> PriorState {
        match held {
            None => PriorState::Absent,
            Some(value) if self.is_past(expiry_of(value)) => PriorState::Expired,
            Some(_) => PriorState::Present,
        }
    }

    /// What `show` says of the key's value, whatever its time; an absence is compared as the store's `verify` says.
    pub(crate) fn read_with<T>(&self, key: &[u8], show: impl FnOnce(&Value<'_>) -> T) -> Result<Option<T>, Error> {
        let is_sure = self.verify >= Verify::Absence;
        let shown = if is_sure { self.tree.get_verified(key, show) } else { self.tree.get(key, show) };
        shown.map_err(from_tree)
    }

    /// The key's value, whatever its time; compared as `verify` says.
    pub(crate) fn find_verified(&self, key: &[u8], verify: Verify) -> Result<Option<Copy>, Error> {
        let copied = self.read_with(key, |value| {
            if verify > Verify::Nothing {
                check_intact(value)?;
            }
            Ok(Copy::of(value))
        });
        copied?.transpose()
    }

    /// The key's value, unless its time has come.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<Copy>, Error> {
        Ok(self.find_verified(key, self.verify)?.filter(|found| !self.is_past(found.expiry)))
    }

    /// Deletes; true if there was such a key.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let before = self.write(key, Change::Delete, &mut |held| held.map(|held| self.before(Some(held))))?;
        Ok(before == Some(PriorState::Present))
    }

    /// Asks `decide`, and writes what it says if the key still holds what it was shown; else again. A value is believed only if its checksum
    /// fits, whatever reads compare: what is made of a damaged one would get a good checksum.
    pub(crate) fn update_by<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        loop {
            let found = self.find_verified(key, Verify::Values)?;
            let seen = found.as_ref().map(|found| found.stamp);
            let live = found.as_ref().filter(|found| !self.is_past(found.expiry));
            let expiry = live.map_or(Expiry::NEVER, |live| live.expiry);
            let decision = decide(live.map(|live| CurrentItem { value: &live.bytes, expiry }));
            let before = match (&found, live) {
                (_, Some(_)) => PriorState::Present,
                (Some(_), None) => PriorState::Expired,
                (None, None) => PriorState::Absent,
            };
            drop(found);
            let change = match &decision {
                Decision::Keep => return Ok(false),
                Decision::Put(bytes) => put(bytes, expiry),
                Decision::PutUntil(bytes, expiry) => put(bytes, *expiry),
                Decision::Delete => Change::Delete,
            };
            let is_seen = &mut |held: Option<&Value<'_>>| (held.map(|held| held.stamp) == seen).then_some(before);
            if self.write(key, change, is_seen)?.is_some() {
                return Ok(change != Change::Delete || before == PriorState::Present);
            }
        }
    }

    /// Gives the key another expiry; false if it is not there.
    pub(crate) fn expire_at(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        self.update_by(key, &mut |held| match held {
            Some(held) => Decision::PutUntil(held.value.to_vec().into(), expiry),
            None => Decision::Keep,
        })
    }
}

fn is_full<T>(done: &Result<T, TreeError>) -> bool {
    matches!(done, Err(TreeError::Heap(error)) if error.is_full())
}
