//! What a transaction has changed and other clients do not see yet.
//!
//! `EXEC` runs alone, so no thread writes beside it but the reaper, which changes nothing that can be seen. When its last command
//! is done, the changes are written:
//!
//! | the transaction | a crash leaves |
//! |---|---|
//! | changes keys | all of its changes, or none: one batch |
//! | deletes everything, and puts keys afterwards; at most [`DELETED_COUNT_MAX`] keys in all | the same |
//! | the same, with more keys | what was there; nothing; or what it put: it is two steps |
//! | deletes everything, and no more | what was there, or nothing |
//!
//! What is to be told of the changes (keyspace notifications, watched and tracked keys) waits until they are written. Where they
//! cannot be, nothing has changed and no client is told.
//!
//! Changes are written only if what the transaction rests on holds (`premises.rs`): a condition of the batch, where there is one; otherwise
//! the premises are looked at before the store is cleared, or at the end of a transaction that changes nothing.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use hikv::{Clock, CurrentItem, Durability, Error, Expiry, Limits, Store, WriteBatch};

use super::{Change, Premises};
use crate::errors::Refusal;
use crate::keyspace::database::Database;
use crate::keyspace::namespace::Namespace;
use crate::observers::events::Class;

/// A store of more keys is cleared in a step of its own, rather than key by key in the transaction's: all clients wait while
/// they are walked and deleted together, for a second or less.
const DELETED_COUNT_MAX: usize = 100_000;

/// A change of a key that others are told of.
pub(crate) struct Told {
    /// The number of changes that the event stands for.
    pub(crate) change_count: u64,
    pub(crate) class: Class,
    pub(crate) event: &'static str,
    pub(crate) db: Database,
    pub(crate) namespace: Namespace,
    pub(crate) key: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Pending {
    changes: RefCell<Changes>,
    told: RefCell<Vec<Told>>,
    /// It became too much, at so many bytes: nothing is kept any more, and nothing will be written.
    spoilt_bytes: Cell<Option<u64>>,
    /// The highest level that was asked for.
    level: Cell<Option<Durability>>,
    premises: Premises,
}

#[derive(Default)]
pub(super) struct Changes {
    /// Everything was deleted before these changes.
    is_cleared: bool,
    /// The new value, with the time at which it expires; none for a key of the store that is deleted.
    by_key: BTreeMap<Vec<u8>, Option<(Vec<u8>, Expiry)>>,
    /// As a batch counts them.
    len_bytes: u64,
}

impl Pending {
    /// Of a transaction that has changed nothing yet.
    pub(crate) fn resting_on(premises: Premises) -> Pending {
        Pending { premises, ..Pending::default() }
    }

    /// Shows what the transaction sees of a key's value, or of a part.
    pub(super) fn read<R>(
        &self,
        store: &Store,
        key: &[u8],
        is_part: bool,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Refusal> {
        if self.knows(key) {
            return Ok(self.held(key, |held| held.map(|held| read(held.value))));
        }
        Ok(self.premises.read(store, key, is_part, read)?)
    }

    /// When the key expires, as the transaction sees it.
    pub(super) fn expires_at(&self, store: &Store, key: &[u8]) -> Result<Option<Expiry>, Refusal> {
        if self.knows(key) {
            return Ok(self.held(key, |held| held.map(|held| held.expiry)));
        }
        Ok(self.premises.expires_at(store, key)?)
    }

    /// A copy of all that the key holds, as the transaction sees it.
    pub(super) fn copy(&self, store: &Store, key: &[u8]) -> Result<Option<(Vec<u8>, Expiry)>, Refusal> {
        if self.knows(key) {
            return Ok(self.held(key, |held| held.map(|held| (held.value.to_vec(), held.expiry))));
        }
        Ok(self.premises.copy(store, key)?)
    }

    /// Whether what the key holds is known here.
    pub(super) fn knows(&self, key: &[u8]) -> bool {
        let changes = self.changes.borrow();
        changes.is_cleared || changes.by_key.contains_key(key)
    }

    /// Shows what a key holds that is known here.
    pub(super) fn held<R>(&self, key: &[u8], show: impl FnOnce(Option<CurrentItem<'_>>) -> R) -> R {
        let changes = self.changes.borrow();
        let found = changes.by_key.get(key).and_then(Option::as_ref);
        let held = found.map(|(value, expiry)| CurrentItem { value, expiry: *expiry });
        show(held.filter(|held| !Clock::default().is_past(held.expiry)))
    }

    /// Whether the store's items are shown.
    pub(super) fn shows_store(&self) -> bool {
        !self.changes.borrow().is_cleared
    }

    /// Shows each changed key in order, with its value if it has one.
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8], Option<&[u8]>)) {
        let (changes, clock) = (self.changes.borrow(), Clock::default());
        for (key, change) in &changes.by_key {
            let value = change.as_ref().filter(|(_, expiry)| !clock.is_past(*expiry)).map(|(value, _)| &value[..]);
            each(key, value);
        }
    }

    /// Takes note of a change.
    pub(super) fn note(&self, store: &Store, key: &[u8], change: Change<'_>) -> Result<(), Refusal> {
        if let Some(len_bytes) = self.spoilt_bytes.get() {
            return Err(too_long(len_bytes));
        }
        let is_stored = || Ok::<_, Refusal>(self.premises.read(store, key, true, |_| ())?.is_some());
        let mut changes = self.changes.borrow_mut();
        self.check_space(&mut changes, key, change)?;
        let new = match change {
            Change::Put(value, expiry) => Some((value.to_vec(), expiry)),
            Change::Delete => None,
        };
        if new.is_none() && (changes.is_cleared || !is_stored()?) {
            changes.remove(key);
            return Ok(());
        }
        changes.insert(key, new);
        Ok(())
    }

    /// What is gathered is bounded as a batch is: a change that would be too much is not copied, and those before it are given
    /// back.
    fn check_space(&self, changes: &mut Changes, key: &[u8], change: Change<'_>) -> Result<(), Refusal> {
        let value = if let Change::Put(value, _) = change { value } else { &[] };
        let len_bytes = changes.len_bytes - changes.len_bytes_of(key) + Limits::batch_op_bytes(key, value);
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

    /// Keeps what is to be told until the changes are written.
    pub(crate) fn tell_later(&self, told: Told) {
        self.told.borrow_mut().push(told);
    }

    /// Writes the changes, as the module's head says, and returns what is to be told; `None`, and nothing was written, if what the
    /// transaction rests on does not hold.
    pub(crate) fn commit(self, store: &Store) -> Result<Option<Vec<Told>>, Refusal> {
        let (changes, mut premises) = (self.changes.into_inner(), self.premises);
        if !premises.are_met() {
            return Ok(None);
        }
        if let Some(len_bytes) = self.spoilt_bytes.get() {
            return Err(too_long(len_bytes));
        }
        let level = store.durability().max(self.level.get().unwrap_or(Durability::Process));
        let write = |store: &Store| {
            if changes.is_cleared {
                changes.write_to_cleared(store, &mut premises)
            } else {
                changes.write(store, &[], &mut premises)
            }
        };
        let is_written = store.with_durability(level, write).map_err(refused)?;
        Ok(is_written.then(|| self.told.into_inner()))
    }
}

fn too_long(len_bytes: u64) -> Refusal {
    refused(Error::BatchTooLong { len_bytes })
}

/// Whatever kept the changes from being made, where it is certain that none was.
fn refused(error: Error) -> Refusal {
    match error {
        Error::BatchTooLong { .. } => Refusal::ExecAbort(error.to_string()),
        error if error.is_full() => Refusal::ExecAbort(format!("no space left: {error}")),
        error => Refusal::Store(error),
    }
}

fn change_bytes(key: &[u8], new: &Option<(Vec<u8>, Expiry)>) -> u64 {
    Limits::batch_op_bytes(key, new.as_ref().map_or(&[], |(value, _)| value))
}

impl Changes {
    /// What the key's change counts for, if it has one.
    fn len_bytes_of(&self, key: &[u8]) -> u64 {
        self.by_key.get(key).map_or(0, |change| change_bytes(key, change))
    }

    fn insert(&mut self, key: &[u8], new: Option<(Vec<u8>, Expiry)>) {
        self.remove(key);
        self.len_bytes += change_bytes(key, &new);
        self.by_key.insert(key.to_vec(), new);
    }

    fn remove(&mut self, key: &[u8]) {
        self.len_bytes -= self.len_bytes_of(key);
        self.by_key.remove(key);
    }

    fn write_to_cleared(&self, store: &Store, premises: &mut Premises) -> Result<bool, Error> {
        let deleted_max = DELETED_COUNT_MAX.saturating_sub(self.by_key.len()) as u64;
        if self.by_key.is_empty() || store.len()? > deleted_max {
            if !premises.hold(store)? {
                return Ok(false);
            }
            store.clear()?;
            // Nothing that was watched is there any more.
            return self.write(store, &[], &mut Premises::default());
        }
        let (mut cursor, mut deleted) = (0, Vec::new());
        loop {
            cursor = store.walk(cursor, |key, _| {
                if !self.by_key.contains_key(key) {
                    deleted.push(key.to_vec());
                }
            })?;
            if cursor == 0 {
                return self.write(store, &deleted, premises);
            }
        }
    }

    /// As one step; false if the premises do not hold.
    fn write(&self, store: &Store, deleted: &[Vec<u8>], premises: &mut Premises) -> Result<bool, Error> {
        if self.by_key.is_empty() && deleted.is_empty() {
            return premises.hold(store);
        }
        loop {
            match store.write(&self.batch(deleted, premises)) {
                Err(Error::ConditionFailed { .. }) if premises.hold(store)? => {}
                Err(Error::ConditionFailed { .. }) => return Ok(false),
                written => return written.map(|()| true),
            }
        }
    }

    fn batch(&self, deleted: &[Vec<u8>], premises: &Premises) -> WriteBatch {
        let mut batch = WriteBatch::new();
        premises.ask_in(&mut batch);
        deleted.iter().for_each(|key| _ = batch.delete(key));
        for (key, change) in &self.by_key {
            match change {
                Some((value, expiry)) => batch.put_until(key, value, *expiry),
                None => batch.delete(key),
            };
        }
        batch
    }
}
