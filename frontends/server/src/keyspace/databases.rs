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
//! The table records the namespace of each database, and which namespaces other than 0 were ever used: `SWAPDB` changes
//! the table and no key. The table is written before a namespace is first used. Without a table, each database is the
//! namespace of its own number.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering};

use hikv::Store;
use parking_lot::Mutex;

use super::database::Database;
use super::namespace::{DATABASE_COUNT, MARK, Namespace};
use crate::errors::Refusal;
use crate::keyspace::items::Items;

pub(super) const TABLE_KEY: [u8; 2] = [MARK, DATABASE_COUNT as u8];
/// A byte for each database, and the bits of the used namespaces.
const TABLE_BYTES: usize = DATABASE_COUNT + 2;

/// The stored form of the table.
pub(crate) struct Table([u8; TABLE_BYTES]);

/// The namespace of each database. It changes only under exclusive access.
pub(crate) struct Databases {
    namespaces: [AtomicU8; DATABASE_COUNT],
    /// A bit for each namespace that may have keys; the bit of namespace 0 is not used.
    used: AtomicU16,
    /// The store contains the table, which may equal the default.
    stored: AtomicBool,
    noting: Mutex<()>,
}

impl Databases {
    /// Loads the table from the store.
    pub(crate) fn load(store: &Store) -> io::Result<Databases> {
        let table = store.get(TABLE_KEY).map_err(io::Error::other)?;
        let databases = Databases::new();
        if let Some(table) = table {
            databases
                .take(&table)
                .ok_or_else(|| io::Error::other("the table of databases is damaged; repair or restore the store"))?;
        }
        Ok(databases)
    }

    /// Returns the current table.
    pub(crate) fn now(&self) -> Table {
        Table(self.table(self.used.load(Ordering::Acquire)))
    }

    /// Restores the stored table after a transaction that changed it was not written; if the store cannot be read,
    /// restores `before`.
    pub(crate) fn reload(&self, store: &Store, before: &Table) {
        let _one_at_a_time = self.noting.lock();
        match store.get(TABLE_KEY) {
            Ok(None) => self.forget(),
            found => {
                let taken = found.ok().flatten().and_then(|table| self.take(&table));
                taken.or_else(|| self.take(&before.0));
            }
        }
    }

    fn forget(&self) {
        self.stored.store(false, Ordering::Relaxed);
        self.namespaces.iter().zip(0..).for_each(|(namespace, db)| namespace.store(db, Ordering::Relaxed));
        self.used.store(0, Ordering::Release);
    }

    fn new() -> Databases {
        Databases {
            namespaces: std::array::from_fn(|db| AtomicU8::new(db as u8)),
            used: AtomicU16::new(0),
            stored: AtomicBool::new(false),
            noting: Mutex::new(()),
        }
    }

    /// Applies a table; returns `None`, without a change, if it is invalid: each namespace must occur once.
    fn take(&self, table: &[u8]) -> Option<()> {
        let (namespaces, used) = table.split_at_checked(DATABASE_COUNT)?;
        let used = u16::from_le_bytes(used.try_into().ok()?);
        if !(0..DATABASE_COUNT as u8).all(|namespace| namespaces.contains(&namespace)) {
            return None;
        }
        self.namespaces.iter().zip(namespaces).for_each(|(own, namespace)| own.store(*namespace, Ordering::Relaxed));
        self.used.store(used, Ordering::Relaxed);
        self.stored.store(true, Ordering::Relaxed);
        Some(())
    }

    /// Returns the namespace of database `db`.
    pub(crate) fn namespace(&self, db: Database) -> Namespace {
        Namespace(self.namespaces[db.index()].load(Ordering::Relaxed))
    }

    /// Returns whether the namespace may have keys.
    pub(crate) fn is_used(&self, namespace: Namespace) -> bool {
        namespace == Namespace::FIRST || self.used.load(Ordering::Acquire) & (1 << namespace.0) != 0
    }

    /// Returns whether the store contains the table.
    pub(crate) fn is_stored(&self) -> bool {
        self.stored.load(Ordering::Acquire)
    }

    /// Records in the table that `namespace` has keys, before it has any.
    ///
    /// The table is written to the store immediately, even in a transaction: other clients rely on the record from now
    /// on, and add their own. Exception: a transaction that has swapped databases, or deleted everything, keeps the
    /// table among its changes; no command of another client uses a key until it ends.
    pub(crate) fn note_use(&self, items: Items<'_>, namespace: Namespace) -> Result<(), Refusal> {
        if self.is_used(namespace) {
            return Ok(());
        }
        let _one_at_a_time = self.noting.lock();
        let used = self.used.load(Ordering::Acquire) | 1 << namespace.0;
        let items = if items.has_changed(&TABLE_KEY) { items } else { items.of_store() };
        items.put(TABLE_KEY, self.table(used))?;
        self.stored.store(true, Ordering::Release);
        self.used.store(used, Ordering::Release);
        Ok(())
    }

    /// Swaps two databases.
    pub(crate) fn swap(&self, items: Items<'_>, a: Database, b: Database) -> Result<(), Refusal> {
        let (first, second) = (self.namespace(a), self.namespace(b));
        let mut table = self.table(self.used.load(Ordering::Acquire));
        table.swap(a.index(), b.index());
        items.put(TABLE_KEY, table)?;
        self.stored.store(true, Ordering::Release);
        self.namespaces[a.index()].store(second.0, Ordering::Relaxed);
        self.namespaces[b.index()].store(first.0, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes everything, including the table, in one step.
    pub(crate) fn clear(&self, items: Items<'_>) -> Result<(), Refusal> {
        items.clear()?;
        self.forget();
        Ok(())
    }

    /// Deletes all keys, for the case that only the first namespace has any; the mapping of databases is kept. A crash
    /// between the two steps resets the mapping, without keys.
    pub(crate) fn clear_first(&self, items: Items<'_>) -> Result<(), Refusal> {
        items.clear()?;
        if self.stored.swap(false, Ordering::AcqRel) {
            items.put(TABLE_KEY, self.table(0))?;
            self.stored.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn table(&self, used: u16) -> [u8; TABLE_BYTES] {
        let mut table = [0; TABLE_BYTES];
        table.iter_mut().zip(&self.namespaces).for_each(|(byte, namespace)| *byte = namespace.load(Ordering::Relaxed));
        table[DATABASE_COUNT..].copy_from_slice(&used.to_le_bytes());
        table
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
        databases.note_use(Items::new(&store, &databases, None), Namespace(3)).expect("it is written");
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [true]);
        assert!(databases.is_used(Namespace(3)) && !databases.noting.is_locked());
    }
}
