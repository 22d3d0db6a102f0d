//! Loads a dump of Redis into a store that no server has open.
//!
//! Each key is put in one step, and replaces an earlier value of any type. So a loader that was interrupted may begin
//! again. A large collection is written in several batches before its record (`keyspace::collections`, steps 7 and 8).

use std::io::{self, Read};

use hikv::{Clock, Expiry, Store};
use rdb::{Entry, FileReader, Part};

use super::TransferError;
use crate::errors::Refusal;
use crate::execution::needs;
use crate::keyspace::Keyspace;
use crate::keyspace::collections::{Changes, CollectionType, Filling, View};
use crate::keyspace::database::Database;
use crate::keyspace::items::{Change, Items};
use crate::keyspace::namespace::{DATABASE_COUNT, Namespace};
use command_table::Needs;

/// The size of a batch of elements, as a batch counts it: enough to make its fixed costs small.
const BATCH_BYTES: u64 = 4 << 20;

/// What became of a key of a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Imported {
    /// It is stored.
    Stored,
    /// Its time had come.
    Expired,
    /// It is a collection without elements, which no server of today makes.
    Empty,
}

/// A store that gets the keys of a dump.
pub struct Import {
    keyspace: Keyspace,
}

impl Import {
    /// Begins to load a dump into `store`, which no server has open.
    ///
    /// # Errors
    /// Those of a server's start: a damaged table of databases.
    pub fn of(store: &Store) -> io::Result<Import> {
        Ok(Import { keyspace: Keyspace::of(store.clone(), false, None)? })
    }

    /// Stores the key that the reader has just returned, with the value that follows.
    ///
    /// # Errors
    /// [`TransferError::Dump`] if the reader cannot go on; otherwise the value was read over, and the key is as before.
    pub fn put<R: Read>(&self, reader: &mut FileReader<R>, entry: &Entry) -> Result<Imported, TransferError> {
        let Some(kind) = entry.kind() else {
            reader.skip(entry)?;
            return Err(TransferError::Refused(format!("{}, which hikv does not have", entry.unsupported())));
        };
        let Some(db) = i64::try_from(entry.db).ok().and_then(Database::of) else {
            reader.skip(entry)?;
            let last = DATABASE_COUNT - 1;
            return Err(TransferError::Refused(format!("it is in database {}; the last one is {last}", entry.db)));
        };
        if entry.expires_at_ms.is_some_and(|ms| ms <= Clock::default().now_ms()) {
            reader.skip(entry)?;
            return Ok(Imported::Expired);
        }
        let put = match CollectionType::of_dumped(kind) {
            None => self.put_string(reader, entry, db),
            Some(collection_type) => self.put_collection(reader, entry, db, collection_type),
        };
        put.map_err(|error| match error {
            TransferError::Dump(error @ rdb::Error::TooLong { .. }) => TransferError::Refused(error.to_string()),
            error => error,
        })
    }

    fn place(&self, db: Database) -> (Items<'_>, Namespace, Option<View<'_>>) {
        let (items, namespace) = (self.keyspace.items(None), self.keyspace.namespace(db));
        (items, namespace, self.keyspace.view(items, namespace))
    }

    fn put_string<R: Read>(
        &self,
        reader: &mut FileReader<R>,
        entry: &Entry,
        db: Database,
    ) -> Result<Imported, TransferError> {
        let mut string = Vec::new();
        reader.value(entry, |part| {
            if let Part::String(value) = part {
                string = value;
            }
            Ok::<(), TransferError>(())
        })?;
        let (items, namespace, view) = self.place(db);
        let raw = namespace.raw(&entry.key);
        let replaced = view.map_or(Ok(None), |view| view.find(&entry.key))?;
        if replaced.is_none() && entry.expires_at_ms.is_none() {
            items.put(&raw, &string)?;
            return Ok(Imported::Stored);
        }
        let mut changes = Changes::default();
        replaced.iter().for_each(|replaced| replaced.delete(&mut changes));
        let mut batch = changes.as_batch();
        batch.push((&raw, Change::Put(&string, expiry_of(entry))));
        items.change_all(&batch)?;
        Ok(Imported::Stored)
    }

    fn put_collection<R: Read>(
        &self,
        reader: &mut FileReader<R>,
        entry: &Entry,
        db: Database,
        collection_type: CollectionType,
    ) -> Result<Imported, TransferError> {
        // The value of a refused key is read over, so that the next key can be read.
        let (mut filling, mut refused) = match self.begin(entry, db, collection_type) {
            Ok(filling) => (Some(filling), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let count = reader.value::<rdb::Error>(entry, |part| {
            if let Some(begun) = &mut filling
                && let Err(refusal) = begun.add(part).and_then(|_| begun.write_ahead(BATCH_BYTES))
            {
                (filling, refused) = (None, Some(refusal));
            }
            Ok(())
        })?;
        match (filling, refused) {
            (_, Some(refusal)) => Err(refusal.into()),
            (Some(filling), None) if count > 0 => {
                self.replace(entry, db, filling)?;
                Ok(Imported::Stored)
            }
            _ => Ok(Imported::Empty),
        }
    }

    fn begin(&self, entry: &Entry, db: Database, collection_type: CollectionType) -> Result<Filling<'_>, Refusal> {
        if let Some(what) = needs::missing(Needs::Collections, &self.keyspace.features) {
            return Err(hikv::Error::Unsupported { engine: self.keyspace.engine.name(), what }.into());
        }
        self.keyspace.begin_collections()?;
        let (_, _, view) = self.place(db);
        Filling::begin(view.expect("the tree is made"), &entry.key, collection_type)
    }

    fn replace(&self, entry: &Entry, db: Database, filling: Filling<'_>) -> Result<(), Refusal> {
        let ((items, namespace, view), mut changes) = (self.place(db), Changes::default());
        let raw = namespace.raw(&entry.key);
        if items.contains(&raw)? {
            changes.delete(raw.into_owned());
        }
        if let Some(view) = view {
            view.find(&entry.key)?.iter().for_each(|replaced| replaced.delete(&mut changes));
        }
        filling.finish(expiry_of(entry), &mut changes)?;
        changes.write(items)
    }
}

fn expiry_of(entry: &Entry) -> Expiry {
    entry.expires_at_ms.map_or(Expiry::NEVER, Expiry::at_ms)
}
