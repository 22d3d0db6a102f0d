//! The items as a command sees them: the store's, and, within `EXEC`, the transaction's changes so far.
//!
//! A transaction's changes are kept in [`Pending`] until its last command has finished, and are then written as one
//! batch. So a command in a transaction must read here instead of in the store.

mod pending;
mod ranges;
mod watched_keys;

use std::borrow::Cow;
use std::collections::BTreeMap;

use catalog::DatabaseIds;
use hikv::{CurrentItem, Decision, Durability, Error, Expiry, FrontEnd, Limits, PutOptions, Store, WriteBatch};

use crate::errors::{FixedError, Refusal};
use crate::keyspace::databases::Databases;
use crate::keyspace::namespace::Namespace;

pub(crate) use pending::Pending;
pub(crate) use watched_keys::{KeyState, WatchedKeys};

/// A change of a key.
#[derive(Clone, Copy)]
pub(crate) enum Change<'v> {
    Put(&'v [u8], Expiry),
    Delete,
}

#[derive(Clone, Copy)]
pub(crate) struct Items<'a> {
    store: &'a Store,
    databases: &'a Databases,
    pending: Option<&'a Pending>,
}

impl<'a> Items<'a> {
    pub(crate) fn new(store: &'a Store, databases: &'a Databases, pending: Option<&'a Pending>) -> Items<'a> {
        Items { store, databases, pending }
    }

    pub(crate) fn store(self) -> &'a Store {
        self.store
    }

    /// Returns the items of the store, without the transaction's changes.
    pub(crate) fn of_store(self) -> Items<'a> {
        Items { pending: None, ..self }
    }

    /// Returns whether the changes are those of a transaction, which is written later.
    pub(crate) fn are_pending(self) -> bool {
        self.pending.is_some()
    }

    /// Returns whether the transaction, if there is one, has changed the key.
    pub(crate) fn has_changed(self, key: &[u8]) -> bool {
        self.pending.is_some_and(|pending| pending.contains(key))
    }

    /// Marks the key's namespace as used. Only puts do this, because an engine without order cannot count keys once
    /// several namespaces are used.
    #[inline]
    fn prepare(self, key: &[u8]) -> Result<(), Refusal> {
        self.databases.beyond_first(key).map_or(Ok(()), |namespace| self.databases.note_use(self, namespace))
    }

    /// Records that the namespace has keys.
    pub(crate) fn note_use(self, namespace: Namespace) -> Result<(), Refusal> {
        self.databases.note_use(self, namespace)
    }

    pub(crate) fn get(self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Refusal> {
        self.get_with(key, <[u8]>::to_vec)
    }

    pub(crate) fn get_with<R>(
        self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Refusal> {
        let key = key.as_ref();
        match self.pending {
            Some(pending) => pending.read(self.store, key, false, read),
            None => Ok(self.store.in_place().get(key, read)?),
        }
    }

    /// Like [`Items::get_with`], for a `read` that needs only a part of the value or its length
    /// ([`hikv::InPlace::get_part`]).
    pub(crate) fn get_part_with<R>(
        self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Refusal> {
        let key = key.as_ref();
        match self.pending {
            Some(pending) => pending.read(self.store, key, true, read),
            None => Ok(self.store.in_place().get_part(key, read)?),
        }
    }

    /// Calls `found` with the value of each key, or `None`, in the order of `keys`.
    pub(crate) fn multi_get_with<K: AsRef<[u8]>>(
        self,
        keys: &[K],
        mut found: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Refusal> {
        if self.pending.is_none() {
            return Ok(self.store.in_place().multi_get(keys, |_, value| found(value))?);
        }
        for key in keys {
            if self.get_with(key, |value| found(Some(value)))?.is_none() {
                found(None);
            }
        }
        Ok(())
    }

    pub(crate) fn contains(self, key: impl AsRef<[u8]>) -> Result<bool, Refusal> {
        Ok(self.get_part_with(key, |_| ())?.is_some())
    }

    /// Returns the key's expiry; `None` if the key does not exist.
    pub(crate) fn expires_at(self, key: impl AsRef<[u8]>) -> Result<Option<Expiry>, Refusal> {
        let key = key.as_ref();
        match self.pending {
            Some(pending) => pending.expires_at(self.store, key),
            None => Ok(expiry_of(self.store, key)?),
        }
    }

    /// Puts a key that does not expire.
    #[inline]
    pub(crate) fn put(self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Refusal> {
        self.prepare(key.as_ref())?;
        match self.pending {
            None => Ok(self.store.put(key, value)?),
            Some(_) => self.change_all(&[(key.as_ref(), Change::Put(value.as_ref(), Expiry::NEVER))]),
        }
    }

    /// Returns false if the key did not exist.
    pub(crate) fn delete(self, key: impl AsRef<[u8]>) -> Result<bool, Refusal> {
        match self.pending {
            None => Ok(self.store.delete(key)?),
            Some(pending) => {
                let is_there = self.contains(&key)?;
                pending.note(self.store, key.as_ref(), Change::Delete)?;
                Ok(is_there)
            }
        }
    }

    /// Changes several keys in one step, for readers and for a crash.
    pub(crate) fn change_all(self, changes: &[(&[u8], Change<'_>)]) -> Result<(), Refusal> {
        let mut put = changes.iter().filter(|(_, change)| matches!(change, Change::Put(..)));
        put.try_for_each(|(key, _)| self.prepare(key))?;
        if let Some(pending) = self.pending {
            changes.iter().try_for_each(|(key, change)| check_limits(key, change))?;
            return changes.iter().try_for_each(|(key, change)| pending.note(self.store, key, *change));
        }
        Ok(self.store.write(&batch_of(changes))?)
    }

    /// Like [`Items::change_all`]. A transaction keeps the keys and values instead of copying them.
    pub(crate) fn change_each(self, changes: BTreeMap<Vec<u8>, Option<(Vec<u8>, Expiry)>>) -> Result<(), Refusal> {
        let borrowed = changes.iter().map(|(key, new)| match new {
            Some((value, expiry)) => (&key[..], Change::Put(value, *expiry)),
            None => (&key[..], Change::Delete),
        });
        let Some(pending) = self.pending else { return self.change_all(&borrowed.collect::<Vec<_>>()) };
        for (key, change) in borrowed {
            if matches!(change, Change::Put(..)) {
                self.prepare(key)?;
            }
            check_limits(key, &change)?;
        }
        changes.into_iter().try_for_each(|(key, new)| pending.keep(self.store, key, new))
    }

    /// Runs `operate` with all its writes and reads durable at `level`. A transaction is written at the highest level
    /// that any of its commands requests, if that exceeds the store's own.
    pub(crate) fn at<R>(self, level: Durability, operate: impl FnOnce() -> Result<R, Refusal>) -> Result<R, Refusal> {
        match self.pending {
            None => FrontEnd::of(self.store).at_durability(level, operate),
            Some(pending) => {
                FrontEnd::of(self.store).at_durability(level, || Ok::<_, Refusal>(()))?;
                pending.ask_for(level);
                operate()
            }
        }
    }

    /// Like [`hikv::Tree::update`].
    pub(crate) fn update<'v>(
        self,
        key: impl AsRef<[u8]>,
        mut decide: impl FnMut(Option<&[u8]>) -> Decision<'v>,
    ) -> Result<bool, Refusal> {
        self.update_item(key, |held| decide(held.map(|held| held.value)))
    }

    /// Like [`hikv::Tree::update_item`].
    pub(crate) fn update_item<'v>(
        self,
        key: impl AsRef<[u8]>,
        mut decide: impl FnMut(Option<CurrentItem<'_>>) -> Decision<'v>,
    ) -> Result<bool, Refusal> {
        let key = key.as_ref();
        if let Some(namespace) = self.databases.beyond_first(key)
            && !self.databases.is_used(namespace)
        {
            // It has no key, so the decision is known beforehand.
            if matches!(decide(None), Decision::Keep | Decision::Delete) {
                return Ok(false);
            }
            self.databases.note_use(self, namespace)?;
        }
        if self.pending.is_none() {
            return Ok(self.store.update_item(key, decide)?);
        }
        let old = self.held(key)?;
        let held = old.as_ref().map(|(value, expiry)| CurrentItem { value, expiry: *expiry });
        let old_expiry = held.map_or(Expiry::NEVER, |held| held.expiry);
        match decide(held) {
            Decision::Keep => return Ok(false),
            Decision::Delete => return self.delete(key),
            Decision::Put(value) => self.change_all(&[(key, Change::Put(&value, old_expiry))])?,
            Decision::PutUntil(value, expiry) => self.change_all(&[(key, Change::Put(&value, expiry))])?,
        }
        Ok(true)
    }

    /// Returns a copy of the key's value and expiry.
    pub(crate) fn held(self, key: &[u8]) -> Result<Option<(Vec<u8>, Expiry)>, Refusal> {
        match self.pending {
            Some(pending) => pending.copy(self.store, key),
            None => Ok(copy_of(self.store, key)?),
        }
    }

    /// Like [`hikv::Tree::compare_and_swap`], for an existing value and a new one.
    pub(crate) fn compare_and_swap(self, key: impl AsRef<[u8]>, expected: &[u8], new: &[u8]) -> Result<bool, Refusal> {
        let mut is_equal = false;
        self.update(key, |value| {
            is_equal = value == Some(expected);
            if is_equal { Decision::Put(Cow::Borrowed(new)) } else { Decision::Keep }
        })?;
        Ok(is_equal)
    }

    /// Like [`hikv::Tree::increment`].
    pub(crate) fn increment(self, key: impl AsRef<[u8]>, by: i64) -> Result<i64, Refusal> {
        if self.pending.is_none() {
            self.prepare(key.as_ref())?;
            return Ok(self.store.increment(key, by)?);
        }
        let mut sum = Ok(0);
        self.update(key, |value| {
            let number = resp::parse_integer(value.unwrap_or(b"0")).ok_or(FixedError::NotANumber);
            sum = number.and_then(|number| number.checked_add(by).ok_or(FixedError::Overflow));
            sum.map_or(Decision::Keep, |sum| Decision::Put(sum.to_string().into_bytes().into()))
        })?;
        Ok(sum?)
    }

    /// Changes keys, and gives the databases these namespaces, in one step. The store has a catalog.
    pub(crate) fn change_with_databases(
        self,
        changes: &[(&[u8], Change<'_>)],
        ids: &DatabaseIds,
    ) -> Result<(), Refusal> {
        match self.pending {
            None => FrontEnd::of(self.store).write_with_databases(ids, &batch_of(changes))?,
            Some(pending) => {
                changes.iter().try_for_each(|(key, change)| pending.note(self.store, key, *change))?;
                pending.assign_databases();
            }
        }
        Ok(())
    }

    /// Deletes everything in one step.
    pub(crate) fn clear(self) -> Result<(), Refusal> {
        match self.pending {
            None => self.store.clear()?,
            Some(pending) => pending.clear(),
        }
        Ok(())
    }
}

fn batch_of(changes: &[(&[u8], Change<'_>)]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (key, change) in changes {
        match change {
            Change::Put(value, expiry) => batch.put_with(key, value, PutOptions::new().expires(*expiry)),
            Change::Delete => batch.delete(key),
        };
    }
    batch
}

/// Returns a consistent copy of the key's value and expiry in the store.
fn copy_of(store: &Store, key: &[u8]) -> Result<Option<(Vec<u8>, Expiry)>, Error> {
    store.in_place().get_item(key, |item| (item.value().to_vec(), item.expiry()))
}

/// Returns the key's expiry.
fn expiry_of(store: &Store, key: &[u8]) -> Result<Option<Expiry>, Error> {
    store.in_place().get_part_item(key, |item| item.expiry())
}

/// Refuses changes early that the store itself would refuse, so that they do not break the transaction.
fn check_limits(key: &[u8], change: &Change<'_>) -> Result<(), Error> {
    if key.len() > Limits::KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { len_bytes: key.len() });
    }
    match change {
        Change::Put(value, _) if value.len() as u64 > Limits::VALUE_BYTES_MAX => {
            Err(Error::ValueTooLong { len_bytes: value.len() as u64 })
        }
        _ => Ok(()),
    }
}
