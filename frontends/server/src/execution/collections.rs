//! Collections in requests: the locks of keys, type checks, and the first collection of a store.

use std::borrow::Cow;

use resp::Request;

use super::call::{Call, Function};
use super::needs::{self, makes_collections};
use crate::clients::session::Session;
use crate::errors::{FixedError, Refusal};
use crate::keyspace::collections::{Changes, Collection, CollectionType, Edit, Locked, View};
use crate::keyspace::database::Database;
use crate::keyspace::items::Change;
use crate::shared::Shared;
use command_table::{Access, Entry, Needs};
use hikv::Expiry;

impl Shared {
    /// Returns whether the request needs the tree of collections, which is not there yet. Only a request with exclusive
    /// access may make it.
    #[inline]
    pub(crate) fn needs_collections(&self, entry: Entry, request: &Request<'_>, session: &Session) -> bool {
        let command = entry.command;
        let may_make =
            command.makes_collections() || command.restores() || command.executes() || session.wants_collections;
        may_make && !self.keyspace.collections.exist() && self.would_make_collections(entry, request, session)
    }

    /// Returns whether the tree is not there yet, and the engine can hold it.
    pub(crate) fn lacks_collections(&self) -> bool {
        let is_possible = || needs::missing(Needs::Collections, &self.keyspace.features).is_none();
        !self.keyspace.collections.exist() && is_possible()
    }

    #[cold]
    fn would_make_collections(&self, entry: Entry, request: &Request<'_>, session: &Session) -> bool {
        let makes = match &session.transaction {
            _ if session.wants_collections => true,
            Some(transaction) if entry.command.executes() => transaction.makes_collections,
            Some(_) if session.queues(entry) => false,
            _ => makes_collections(entry, request),
        };
        makes && self.lacks_collections()
    }

    /// Creates the tree of collections. The caller has exclusive access.
    pub(crate) fn begin_collections(&self) -> Result<(), Refusal> {
        if self.keyspace.begin_collections()? {
            self.observers.tracking.invalidate_all(self.message_access());
        }
        Ok(())
    }
}

/// Returns the collections of the selected database for a command that makes one.
pub(crate) fn view_to_make<'a>(call: &Call<'a>) -> Result<View<'a>, Refusal> {
    call.view().ok_or_else(|| {
        let keyspace = &call.shared.keyspace;
        match needs::missing(Needs::Collections, &keyspace.features) {
            Some(what) => hikv::Error::Unsupported { engine: keyspace.engine.name(), what }.into(),
            None => FixedError::NoCollectionsYet.into(),
        }
    })
}

impl<'a> Call<'a> {
    /// Executes the command's function with the locks of its keys, unless a key has a type that the command does not
    /// accept.
    pub(crate) fn apply(&mut self, function: Function) -> Result<(), Refusal> {
        if !self.shared.keyspace.collections.exist() {
            return function(self);
        }
        let _locked = self.lock_keys();
        if self.entry.command.is_of_strings() {
            self.check_strings()?;
        }
        function(self)
    }

    /// Locks the request's keys if other loops may use them.
    fn lock_keys(&self) -> Locked<'a> {
        let command = self.entry.command;
        if self.pending.is_some() || command.runs_alone() || self.session.awaits_job {
            return Locked::None;
        }
        let request = self.request;
        let is_write = command.has(command_table::flag::WRITE);
        let keys = command.keys_of(&request).map(|(index, _)| request.argument(index));
        self.shared.keyspace.collections.locks.lock(self.namespace(), keys, is_write)
    }

    /// Refuses a command on strings if one of its keys is a collection. Commands that replace values do so in any case,
    /// and `MGET` finds no value.
    fn check_strings(&self) -> Result<(), Refusal> {
        if self.entry.command.name == "mget" {
            return Ok(());
        }
        for (index, access) in self.entry.command.keys_of(&self.request) {
            if !matches!(access, Access::Overwrite | Access::Create) && self.found(index)?.is_some() {
                let is_lcs = self.entry.command.name == "lcs";
                return Err(if is_lcs { FixedError::NotAString } else { FixedError::WrongType }.into());
            }
        }
        Ok(())
    }

    /// Returns the collections of a database; `None` while the store has none.
    #[inline]
    pub(crate) fn view_of(&self, db: Database) -> Option<View<'a>> {
        let keyspace = &self.shared.keyspace;
        keyspace.view(self.store(), keyspace.namespace(db))
    }

    /// Returns the collections of the selected database; `None` while the store has none.
    #[inline]
    pub(crate) fn view(&self) -> Option<View<'a>> {
        self.view_of(self.session.db)
    }

    /// Returns the collection of any type whose key is argument number `index`.
    pub(crate) fn found(&self, index: usize) -> Result<Option<Collection<'a>>, Refusal> {
        self.view().map_or(Ok(None), |view| view.find(self.argument(index)))
    }

    /// Returns the collection whose key is argument number `index`; `None` if the key does not exist.
    ///
    /// # Errors
    /// [`FixedError::WrongType`] if it has another type.
    pub(crate) fn collection(
        &self,
        index: usize,
        collection_type: CollectionType,
    ) -> Result<Option<Collection<'a>>, Refusal> {
        match self.found(index)? {
            Some(found) if found.collection_type() == collection_type => Ok(Some(found)),
            None if !self.store().contains(self.key(index))? => Ok(None),
            _ => Err(FixedError::WrongType.into()),
        }
    }

    /// Begins a change of the collection whose key is argument number `index`; a new one if the key does not exist.
    pub(crate) fn edit(&self, index: usize, collection_type: CollectionType) -> Result<Edit<'a>, Refusal> {
        if let Some(found) = self.collection(index, collection_type)? {
            return Ok(found.edit());
        }
        view_to_make(self)?.make(self.argument(index), collection_type)
    }

    /// Returns whether argument number `index` is an existing key of any type.
    pub(crate) fn contains(&self, index: usize) -> Result<bool, Refusal> {
        self.contains_key(self.session.db, self.argument(index))
    }

    /// Returns whether this key of a database exists.
    pub(crate) fn contains_key(&self, db: Database, key: &[u8]) -> Result<bool, Refusal> {
        let raw = self.shared.keyspace.namespace(db).raw(key);
        Ok(self.store().contains(raw)? || self.view_of(db).map_or(Ok(false), |view| view.contains(key))?)
    }

    /// Deletes the key of any type that is argument number `index`; returns false if it did not exist.
    pub(crate) fn delete(&self, index: usize) -> Result<bool, Refusal> {
        let is_string = self.store().delete(self.key(index))?;
        let Some(found) = self.found(index)? else { return Ok(is_string) };
        let mut changes = Changes::default();
        found.delete(&mut changes);
        changes.write(self.store())?;
        Ok(true)
    }

    /// Puts a string, which replaces a value of any type, as argument number `index`.
    pub(crate) fn put(&self, index: usize, value: &[u8], expiry: Expiry) -> Result<(), Refusal> {
        if expiry.is_never() && self.found(index)?.is_none() {
            return self.store().put(self.key(index), value);
        }
        self.put_all(&[(index, value)], expiry)
    }

    /// Puts strings in one step.
    pub(crate) fn put_all(&self, pairs: &[(usize, &[u8])], expiry: Expiry) -> Result<(), Refusal> {
        let mut replaced = Changes::default();
        if self.shared.keyspace.collections.exist() {
            for (index, _) in pairs {
                self.found(*index)?.iter().for_each(|found| found.delete(&mut replaced));
            }
        }
        let keys: Vec<Cow<'_, [u8]>> = pairs.iter().map(|(index, _)| self.key(*index)).collect();
        let puts = keys.iter().zip(pairs).map(|(key, (_, value))| (&**key, Change::Put(value, expiry)));
        self.store().change_all(&replaced.as_batch().into_iter().chain(puts).collect::<Vec<_>>())
    }
}
