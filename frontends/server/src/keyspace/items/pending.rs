//! A transaction's changes, which other clients do not see yet.
//!
//! `EXEC` has exclusive access, so the only concurrent writer is the reaper, whose changes are invisible. After the
//! last command the changes are written:
//!
//! | the transaction | a crash leaves |
//! |---|---|
//! | changes keys | all of its changes, or none: one batch |
//! | deletes everything, and then puts keys; at most [`DELETED_COUNT_MAX`] keys in total | the same |
//! | the same, with more keys | the state before; nothing; or its own keys: two steps |
//! | deletes everything, and no more | the state before, or nothing |
//!
//! Messages and notifications for other clients are sent after the changes are written (`observers/announcements.rs`).
//!
//! Changes are written only if the watched keys are unchanged (`watched_keys.rs`): as a condition of the batch if there
//! is one; otherwise the keys are checked before the store is cleared, or at the end of a transaction without changes.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use catalog::DatabaseIds;
use hikv::{Clock, CurrentItem, Durability, Error, Expiry, FrontEnd, Limits, PutOptions, Store, WriteBatch};

use super::{Change, WatchedKeys};
use crate::errors::Refusal;

/// A store with more keys is cleared in a separate step, not key by key in the transaction's batch: all clients wait
/// while the keys are walked and deleted together, for at most about a second.
const DELETED_COUNT_MAX: usize = 100_000;

/// A value with its expiry.
type Kept = (Vec<u8>, Expiry);

#[derive(Default)]
pub(crate) struct Pending {
    changes: RefCell<Changes>,
    /// Set if the changes became too large, with their size: nothing is kept any more, and nothing will be written.
    spoilt_bytes: Cell<Option<u64>>,
    /// The highest requested durability.
    level: Cell<Option<Durability>>,
    /// Databases get other namespaces, in the same step.
    assigns_databases: Cell<bool>,
    watched_keys: WatchedKeys,
}

#[derive(Default)]
pub(super) struct Changes {
    /// Everything was deleted before these changes.
    is_cleared: bool,
    /// The new value with its expiry; `None` for a deleted key of the store.
    by_key: BTreeMap<Vec<u8>, Option<Kept>>,
    /// As a batch counts them.
    len_bytes: u64,
}

impl Pending {
    /// Creates the changes of a transaction that depends on `watched`.
    pub(crate) fn depending_on(watched_keys: WatchedKeys) -> Pending {
        Pending { watched_keys, ..Pending::default() }
    }

    /// Calls `read` with the key's value, or a part of it, as the transaction sees it.
    pub(super) fn read<R>(
        &self,
        store: &Store,
        key: &[u8],
        is_part: bool,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Refusal> {
        match self.changed(key) {
            Some(held) => Ok(held.map(|held| read(&held.0))),
            None => Ok(self.watched_keys.read(store, key, is_part, read)?),
        }
    }

    /// Returns the key's expiry as the transaction sees it.
    pub(super) fn expires_at(&self, store: &Store, key: &[u8]) -> Result<Option<Expiry>, Refusal> {
        if self.contains(key) {
            return Ok(self.held(key, |held| held.map(|held| held.expiry)));
        }
        Ok(self.watched_keys.expires_at(store, key)?)
    }

    /// Returns a copy of the key's value and expiry as the transaction sees it.
    pub(super) fn copy(&self, store: &Store, key: &[u8]) -> Result<Option<Kept>, Refusal> {
        match self.changed(key) {
            Some(held) => Ok(held.map(|held| held.clone())),
            None => Ok(self.watched_keys.copy(store, key)?),
        }
    }

    /// Returns the key's state in the transaction's changes, if they determine it.
    fn changed(&self, key: &[u8]) -> Option<Option<Ref<'_, Kept>>> {
        match Ref::filter_map(self.changes.borrow(), |changes| changes.by_key.get(key)) {
            Err(changes) => changes.is_cleared.then_some(None),
            Ok(changed) => {
                let is_past = |expiry: Expiry| !expiry.is_never() && Clock::default().is_past(expiry);
                Some(Ref::filter_map(changed, Option::as_ref).ok().filter(|held| !is_past(held.1)))
            }
        }
    }

    /// Returns whether the key's state is determined by the transaction's changes.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let changes = self.changes.borrow();
        changes.is_cleared || changes.by_key.contains_key(key)
    }

    /// Calls `show` with the key's state in the transaction's changes.
    pub(super) fn held<R>(&self, key: &[u8], show: impl FnOnce(Option<CurrentItem<'_>>) -> R) -> R {
        let changes = self.changes.borrow();
        let found = changes.by_key.get(key).and_then(Option::as_ref);
        let held = found.map(|(value, expiry)| CurrentItem { value, expiry: *expiry });
        show(held.filter(|held| !Clock::default().is_past(held.expiry)))
    }

    /// Returns whether the store's items are visible.
    pub(super) fn shows_store(&self) -> bool {
        !self.changes.borrow().is_cleared
    }

    /// Calls `each` with each changed key in order, with its value if it has one.
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8], Option<&[u8]>)) {
        let (changes, clock) = (self.changes.borrow(), Clock::default());
        for (key, change) in &changes.by_key {
            let value = change.as_ref().filter(|(_, expiry)| !clock.is_past(*expiry)).map(|(value, _)| &value[..]);
            each(key, value);
        }
    }

    /// Records a change.
    pub(super) fn note(&self, store: &Store, key: &[u8], change: Change<'_>) -> Result<(), Refusal> {
        let new = match change {
            Change::Put(value, expiry) => Some((value.to_vec(), expiry)),
            Change::Delete => None,
        };
        self.keep(store, key.to_vec(), new)
    }

    /// Like [`Pending::note`], for a key and a value that are not copied.
    pub(super) fn keep(&self, store: &Store, key: Vec<u8>, new: Option<Kept>) -> Result<(), Refusal> {
        if let Some(len_bytes) = self.spoilt_bytes.get() {
            return Err(too_long(len_bytes));
        }
        let is_stored = || Ok::<_, Refusal>(self.watched_keys.read(store, &key, true, |_| ())?.is_some());
        let mut changes = self.changes.borrow_mut();
        let new_bytes = change_bytes(&key, &new);
        self.check_size(&mut changes, &key, new_bytes)?;
        if new.is_none() && (changes.is_cleared || !is_stored()?) {
            changes.remove(&key);
            return Ok(());
        }
        changes.insert(key, new, new_bytes);
        Ok(())
    }

    /// The changes are limited like a batch: a change that exceeds the limit is not kept, and the earlier ones are
    /// freed.
    fn check_size(&self, changes: &mut Changes, key: &[u8], new_bytes: u64) -> Result<(), Refusal> {
        if changes.len_bytes + new_bytes <= Limits::BATCH_BYTES_MAX {
            return Ok(());
        }
        let len_bytes = changes.len_bytes - changes.len_bytes_of(key) + new_bytes;
        if len_bytes <= Limits::BATCH_BYTES_MAX {
            return Ok(());
        }
        *changes = Changes { is_cleared: changes.is_cleared, ..Changes::default() };
        self.spoilt_bytes.set(Some(len_bytes));
        Err(too_long(len_bytes))
    }

    pub(super) fn clear(&self) {
        *self.changes.borrow_mut() = Changes { is_cleared: true, ..Changes::default() };
    }

    pub(super) fn ask_for(&self, level: Durability) {
        self.level.set(self.level.get().max(Some(level)));
    }

    pub(super) fn assign_databases(&self) {
        self.assigns_databases.set(true);
    }

    /// Writes the changes of commands that depend on no watched key and leave the databases as they are, in one step.
    pub(crate) fn write(self, store: &Store) -> Result<(), Error> {
        self.changes.into_inner().write(store, &[], None, &mut WatchedKeys::default()).map(drop)
    }

    /// Writes the changes as described in the module's head; returns false, without a write, if a watched key has
    /// changed. The databases get `ids` if the transaction has changed them.
    pub(crate) fn commit(self, store: &Store, ids: &DatabaseIds) -> Result<bool, Refusal> {
        let (changes, mut watched_keys) = (self.changes.into_inner(), self.watched_keys);
        if !watched_keys.are_unchanged() {
            return Ok(false);
        }
        if let Some(len_bytes) = self.spoilt_bytes.get() {
            return Err(too_long(len_bytes));
        }
        let ids = self.assigns_databases.get().then_some(ids);
        let level = store.durability().max(self.level.get().unwrap_or(Durability::Process));
        let write = || {
            if changes.is_cleared {
                changes.write_to_cleared(store, &mut watched_keys)
            } else {
                changes.write(store, &[], ids, &mut watched_keys)
            }
        };
        FrontEnd::of(store).at_durability(level, write).map_err(refused)
    }
}

fn too_long(len_bytes: u64) -> Refusal {
    refused(Error::BatchTooLong { len_bytes })
}

/// Converts an error after which it is certain that no change was made.
fn refused(error: Error) -> Refusal {
    match error {
        Error::BatchTooLong { .. } => Refusal::ExecAbort(error.to_string()),
        error if error.is_full() => Refusal::ExecAbort(format!("no space left: {error}")),
        error => Refusal::Store(error),
    }
}

fn change_bytes(key: &[u8], new: &Option<Kept>) -> u64 {
    Limits::batch_op_bytes(key, new.as_ref().map_or(&[], |(value, _)| value))
}

impl Changes {
    /// Returns the size of the key's change, or 0.
    fn len_bytes_of(&self, key: &[u8]) -> u64 {
        self.by_key.get(key).map_or(0, |change| change_bytes(key, change))
    }

    fn insert(&mut self, key: Vec<u8>, new: Option<Kept>, new_bytes: u64) {
        self.len_bytes += new_bytes;
        match self.by_key.entry(key) {
            Entry::Vacant(entry) => _ = entry.insert(new),
            Entry::Occupied(mut entry) => {
                self.len_bytes -= change_bytes(entry.key(), entry.get());
                entry.insert(new);
            }
        }
    }

    fn remove(&mut self, key: &[u8]) {
        self.len_bytes -= self.len_bytes_of(key);
        self.by_key.remove(key);
    }

    fn write_to_cleared(&self, store: &Store, watched_keys: &mut WatchedKeys) -> Result<bool, Error> {
        let deleted_max = DELETED_COUNT_MAX.saturating_sub(self.by_key.len()) as u64;
        if self.by_key.is_empty() || store.len()? > deleted_max {
            if !watched_keys.hold(store)? {
                return Ok(false);
            }
            store.clear()?;
            // No watched key exists any more.
            return self.write(store, &[], None, &mut WatchedKeys::default());
        }
        let (mut cursor, mut deleted) = (0, Vec::new());
        loop {
            cursor = store.cursors().walk(cursor, |key, _| {
                if !self.by_key.contains_key(key) {
                    deleted.push(key.to_vec());
                }
            })?;
            if cursor == 0 {
                return self.write(store, &deleted, None, watched_keys);
            }
        }
    }

    /// Writes in one step; returns false if a watched key has changed.
    fn write(
        &self,
        store: &Store,
        deleted: &[Vec<u8>],
        ids: Option<&DatabaseIds>,
        watched_keys: &mut WatchedKeys,
    ) -> Result<bool, Error> {
        if self.by_key.is_empty() && deleted.is_empty() && ids.is_none() {
            return watched_keys.hold(store);
        }
        loop {
            let batch = self.batch(deleted, watched_keys);
            let written = match ids {
                None => store.write(&batch),
                Some(ids) => FrontEnd::of(store).write_with_databases(ids, &batch),
            };
            match written {
                Err(Error::ConditionFailed { .. }) if watched_keys.hold(store)? => {}
                Err(Error::ConditionFailed { .. }) => return Ok(false),
                written => return written.map(|()| true),
            }
        }
    }

    fn batch(&self, deleted: &[Vec<u8>], watched_keys: &WatchedKeys) -> WriteBatch {
        let mut batch = WriteBatch::new();
        watched_keys.add_conditions(&mut batch);
        deleted.iter().for_each(|key| _ = batch.delete(key));
        for (key, change) in &self.by_key {
            match change {
                Some((value, expiry)) => batch.put_with(key, value, PutOptions::new().expires(*expiry)),
                None => batch.delete(key),
            };
        }
        batch
    }
}
