//! Writes the keys of a store that no server has open in the form of Redis' dumps.

use std::io;
use std::ops::ControlFlow;

use hikv::{Expiry, Store};
use rdb::Kind;

use super::TransferError;
use crate::keyspace::Keyspace;
use crate::keyspace::collections::{Collection, View};
use crate::keyspace::database::Database;

/// A store whose keys are written.
pub struct Export {
    keyspace: Keyspace,
}

/// A collection, whose elements are not read yet.
pub struct ExportedCollection<'a> {
    /// The number of its database.
    pub db: u64,
    /// The key.
    pub key: &'a [u8],
    /// The type.
    pub kind: Kind,
    /// The number of elements.
    pub count: u64,
    /// When the key expires.
    pub expiry: Expiry,
    found: Collection<'a>,
}

impl ExportedCollection<'_> {
    /// Calls `each` with every element in the form of a dump.
    ///
    /// # Errors
    /// Those of the store and of `each`; elements that are more or fewer than the count.
    pub fn elements(self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> Result<(), TransferError> {
        self.found.each_dumped(|encoded| each(encoded).map_err(TransferError::Output))
    }
}

impl Export {
    /// Begins to write the keys of `store`, which may be open for reading only.
    ///
    /// # Errors
    /// Those of a server's start: a damaged table of databases.
    pub fn of(store: &Store) -> io::Result<Export> {
        Ok(Export { keyspace: Keyspace::of(store.clone(), false, None)? })
    }

    /// Calls `each` with the database, key, value and expiry of every string, in no order, until it breaks. This
    /// verifies all items of the store, including those of collections.
    ///
    /// # Errors
    /// Those of the store.
    pub fn strings(
        &self,
        mut each: impl FnMut(u64, &[u8], &[u8], Expiry) -> ControlFlow<()>,
    ) -> Result<(), TransferError> {
        let databases: Vec<_> = Database::all().map(|db| (db, self.keyspace.namespace(db))).collect();
        self.keyspace.store.read_view()?.stored().for_each(|raw: &[u8], value: &[u8], expiry: Expiry| {
            let found = databases.iter().find_map(|(db, namespace)| Some((db, namespace.key_of(raw)?)));
            match found {
                Some((db, key)) => each(db.number().into(), key, value, expiry),
                None => ControlFlow::Continue(()),
            }
        })?;
        Ok(())
    }

    /// Calls `each` with every collection, by database and key, until it breaks.
    ///
    /// # Errors
    /// Those of the store and of `each`.
    pub fn collections(
        &self,
        mut each: impl FnMut(ExportedCollection<'_>) -> Result<ControlFlow<()>, TransferError>,
    ) -> Result<(), TransferError> {
        for db in Database::all() {
            let Some(view) = self.view(db) else { return Ok(()) };
            // This waits until keys are in order; later steps do not wait.
            view.count()?;
            for key in view.keys()? {
                let key = key?;
                // Otherwise it has just expired.
                let Some(found) = view.find(&key)? else { continue };
                let Some(kind) = found.collection_type().dumped() else {
                    let name = key.escape_ascii();
                    return Err(TransferError::Refused(format!("{name} is a stream, which is not written")));
                };
                let (count, expiry) = (found.len(), found.expiry);
                let exported = ExportedCollection { db: db.number().into(), key: &key, kind, count, expiry, found };
                if each(exported)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn view(&self, db: Database) -> Option<View<'_>> {
        self.keyspace.view(self.keyspace.items(None), self.keyspace.namespace(db))
    }
}
