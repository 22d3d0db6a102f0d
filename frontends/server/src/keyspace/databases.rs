//! Sixteen databases in one store.
//!
//! A database is a namespace, and a namespace is a range of the store's keys:
//!
//! | key in the store | meaning |
//! |---|---|
//! | `FF`, 1 to 15, *k* | *k* in that namespace |
//! | `FF`, 0, *k* | *k* in namespace 0, where *k* itself begins with `FF` and a byte up to 16 |
//! | `FF`, 16 | the table below; such keys are internal to the server |
//! | any other | the same key in namespace 0 |
//!
//! So a key that a program put into the store without the server is in namespace 0 under the same name, unless the name
//! begins with `FF` and a byte up to 16. No two keys of databases share one key in the store. Namespace 0 keeps the
//! order of its keys.
//!
//! A store with named trees has the same keys in the form of `docs/format/catalog.md`, and a catalog instead of the
//! table: a database is the tree `hikv:` and its number. The catalog begins with the first tree that the store's own
//! program makes, and when one of several databases is emptied. No command is under way then
//! ([`hikv::StoredKeysUser`]).
//!
//! In a store with a catalog, each change of databases is one batch, with the transaction's other changes if it is part
//! of one (`catalog::Catalog::assign`): an emptied database gets a new namespace, and its old keys are deleted in the
//! background. Exception: namespace 0 is the store's own tree, which stays; its keys are deleted by the batch.
//!
//! The table records the namespace of each database, and which namespaces other than 0 were ever used: `SWAPDB` changes
//! the table and no key. The table is written before a namespace is first used. Without a table, each database is the
//! namespace of its own number.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

use catalog::{DatabaseIds, TreeId};
use hikv::{FrontEnd, Store};
use parking_lot::Mutex;

use super::database::Database;
use super::namespace::{DATABASE_COUNT, Form, MARK, Namespace};
use super::table::Table;
use crate::errors::Refusal;
use crate::keyspace::items::{Change, Items};

pub(super) const TABLE_KEY: [u8; 2] = [MARK, DATABASE_COUNT as u8];
/// The namespace of each database. It changes only under exclusive access.
pub(crate) struct Databases {
    namespaces: [AtomicU32; DATABASE_COUNT],
    /// A bit for each namespace that may have keys; the bit of namespace 0 is not used.
    used: AtomicU16,
    /// The store contains the table, which may equal the default, or a catalog.
    stored: AtomicBool,
    /// The store has a catalog. Changes only once, under exclusive access.
    has_catalog: AtomicBool,
    noting: Mutex<()>,
}

impl Databases {
    /// Loads the table or the catalog from the store.
    pub(crate) fn load(store: &Store) -> io::Result<Databases> {
        let databases = Databases::new(FrontEnd::of(store).has_catalog());
        match databases.read(store).map_err(io::Error::other)? {
            None => {}
            Some(Some(table)) => databases.take(&table),
            Some(None) => {
                return Err(io::Error::other("the table of databases is damaged; repair or restore the store"));
            }
        }
        Ok(databases)
    }

    fn new(has_catalog: bool) -> Databases {
        Databases {
            namespaces: std::array::from_fn(|db| AtomicU32::new(db as u32)),
            used: AtomicU16::new(0),
            stored: AtomicBool::new(false),
            has_catalog: AtomicBool::new(has_catalog),
            noting: Mutex::new(()),
        }
    }

    /// Returns the stored table, or `None` if there is none. The inner `None` is a damaged one.
    fn read(&self, store: &Store) -> Result<Option<Option<Table>>, hikv::Error> {
        match self.form() {
            Form::Table => Ok(store.get(TABLE_KEY)?.map(|table| Table::of(&table))),
            Form::Catalog => Table::of_trees(store).map(|table| Some(Some(table))),
        }
    }

    /// Returns the current table.
    pub(crate) fn now(&self) -> Table {
        let ids = std::array::from_fn(|db| TreeId::new(self.namespaces[db].load(Ordering::Relaxed)));
        Table { ids, used: self.used.load(Ordering::Acquire) }
    }

    /// Restores the stored table after a transaction that changed it was not written; if the store cannot be read,
    /// restores `before`.
    pub(crate) fn reload(&self, store: &Store, before: &Table) {
        let _one_at_a_time = self.noting.lock();
        match self.read(store) {
            Ok(None) => self.forget(),
            found => self.take(&found.ok().flatten().flatten().unwrap_or(*before)),
        }
    }

    fn forget(&self) {
        self.set(&Table::NEW);
        self.stored.store(false, Ordering::Relaxed);
    }

    fn take(&self, table: &Table) {
        self.set(table);
        self.stored.store(true, Ordering::Relaxed);
    }

    fn set(&self, table: &Table) {
        let own = self.namespaces.iter().zip(table.ids);
        own.for_each(|(own, id)| own.store(id.number(), Ordering::Relaxed));
        self.used.store(table.used, Ordering::Release);
    }

    /// Returns the namespace of database `db`.
    pub(crate) fn namespace(&self, db: Database) -> Namespace {
        Namespace::new(TreeId::new(self.namespaces[db.index()].load(Ordering::Relaxed)), self.form())
    }

    /// Returns the namespaces that may have keys, without the first one.
    pub(crate) fn used_beyond_first(&self) -> impl Iterator<Item = Namespace> {
        let namespaces = Database::all().map(|db| self.namespace(db));
        namespaces.filter(|namespace| !namespace.is_first() && self.is_used(*namespace))
    }

    /// Returns the namespace of a key of the store, if it is not the first one.
    #[inline]
    pub(crate) fn beyond_first(&self, raw: &[u8]) -> Option<Namespace> {
        Namespace::beyond_first(raw, self.form())
    }

    /// Returns whether the namespace may have keys.
    pub(crate) fn is_used(&self, namespace: Namespace) -> bool {
        let bit = 1u16.checked_shl(namespace.id().number());
        namespace.is_first() || bit.is_none_or(|bit| self.used.load(Ordering::Acquire) & bit != 0)
    }

    /// Returns whether the store contains the table or a catalog.
    pub(crate) fn is_stored(&self) -> bool {
        self.stored.load(Ordering::Acquire)
    }

    /// Returns whether the store may have trees other than databases.
    pub(crate) fn has_catalog(&self) -> bool {
        self.has_catalog.load(Ordering::Acquire)
    }

    #[inline]
    fn form(&self) -> Form {
        if self.has_catalog() { Form::Catalog } else { Form::Table }
    }

    /// Reads the catalog, if the store has one, after another thread may have changed it. Returns true if the store had
    /// none before: keys then have other names in the store. If the catalog cannot be read, nothing changes.
    pub(crate) fn adopt(&self, store: &Store) -> bool {
        if !FrontEnd::of(store).has_catalog() {
            return false;
        }
        let Ok(table) = Table::of_trees(store) else { return false };
        let _one_at_a_time = self.noting.lock();
        self.take(&table);
        !self.has_catalog.swap(true, Ordering::AcqRel)
    }

    /// Begins the catalog if the store has none. Returns true if it had none.
    pub(crate) fn begin_catalog(&self, store: &Store) -> Result<bool, Refusal> {
        if self.has_catalog() {
            return Ok(false);
        }
        FrontEnd::of(store).begin_catalog()?;
        Ok(self.adopt(store))
    }

    /// Records in the table that `namespace` has keys, before it has any.
    ///
    /// The table is written to the store immediately, even in a transaction: other clients rely on the record from now
    /// on, and add their own. Exception: a transaction that has swapped databases, or deleted everything, keeps the
    /// table among its changes; no command of another client uses a key until it ends. A catalog has a record of its
    /// own for each namespace, which is always written immediately.
    pub(crate) fn note_use(&self, items: Items<'_>, namespace: Namespace) -> Result<(), Refusal> {
        if self.is_used(namespace) {
            return Ok(());
        }
        let _one_at_a_time = self.noting.lock();
        let used = self.used.load(Ordering::Acquire) | 1 << namespace.id().number();
        match self.form() {
            Form::Table => {
                let items = if items.has_changed(&TABLE_KEY) { items } else { items.of_store() };
                items.put(TABLE_KEY, Table { used, ..self.now() }.bytes())?;
            }
            // A namespace without a record has the number of its database.
            Form::Catalog => FrontEnd::of(items.store()).create_database(namespace.id().number() as u8)?,
        }
        self.stored.store(true, Ordering::Release);
        self.used.store(used, Ordering::Release);
        Ok(())
    }

    /// Swaps two databases.
    pub(crate) fn swap(&self, items: Items<'_>, a: Database, b: Database) -> Result<(), Refusal> {
        let mut table = self.now();
        table.ids.swap(a.index(), b.index());
        match self.form() {
            Form::Table => {
                items.put(TABLE_KEY, table.bytes())?;
                self.take(&table);
                Ok(())
            }
            Form::Catalog => self.assign(items, &table, &[]),
        }
    }

    /// Gives databases new namespaces, which are empty, and changes keys of the store, all in one step. The store has a
    /// catalog.
    pub(crate) fn renew(
        &self,
        items: Items<'_>,
        renewed: &[Database],
        changes: &[(&[u8], Change<'_>)],
    ) -> Result<(), Refusal> {
        let mut table = self.now();
        if !renewed.is_empty() {
            let first = FrontEnd::of(items.store()).reserve_ids(renewed.len() as u32)?;
            let ids = (first.number()..).map(TreeId::new);
            renewed.iter().zip(ids).for_each(|(db, id)| table.ids[db.index()] = id);
        }
        self.assign(items, &table, changes)
    }

    fn assign(&self, items: Items<'_>, table: &Table, changes: &[(&[u8], Change<'_>)]) -> Result<(), Refusal> {
        items.change_with_databases(changes, &table.ids)?;
        self.take(table);
        Ok(())
    }

    /// Returns the namespaces of the databases by number.
    pub(crate) fn ids(&self) -> DatabaseIds {
        self.now().ids
    }

    /// Deletes everything, including the table, in one step. Each database is then the namespace of its own number.
    pub(crate) fn clear(&self, items: Items<'_>) -> Result<(), Refusal> {
        items.clear()?;
        self.forget();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use hikv::{Clock, Durability, Options, PutOptions};

    use super::*;

    /// If two namespaces are first used at the same time, the table must not lose one. A table with an expiry triggers
    /// the expiry callback at the end of the write.
    #[test]
    fn namespace_is_noted_while_no_other_is() {
        let (dir, clock) = (tempfile::tempdir().expect("a directory"), Clock::manual(1));
        let options = Options::new().durability(Durability::Buffered).background(false).clock(clock.clone());
        let store = options.open(dir.path()).expect("it opens");
        let databases = Arc::new(Databases::load(&store).expect("there is no table"));
        store.put_with(TABLE_KEY, "", PutOptions::new().ttl(Duration::from_millis(1))).expect("it is written");
        clock.advance(Duration::from_millis(1));
        let ((sender, receiver), asked) = (mpsc::channel(), Arc::clone(&databases));
        let callback = move |_: &[u8]| sender.send(asked.noting.is_locked()).expect("it is listened to");
        store.on_expired(Some(Arc::new(callback))).expect("it is accepted");
        let third = Namespace::new(TreeId::new(3), Form::Table);
        databases.note_use(Items::new(&store, &databases, None), third).expect("it is written");
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [true]);
        assert!(databases.is_used(third) && !databases.noting.is_locked());
    }
}
