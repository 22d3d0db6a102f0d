//! Operations for servers, bindings and event loops.

use std::path::{Path, PathBuf};
use std::sync::Weak;

use catalog::{Catalog, DatabaseIds, TreeId};
use engine::{Depth, Error};
use pmem::Durability;

use crate::files_status::FilesStatus;
use crate::handles::Kind;
use crate::latest::LatestBackup;
use crate::tree::{BATCH_COUNT, StoredKeys, stored_keys};
use crate::verify::{self, Report, VerifyProgress};
use crate::{BackupError, CallbackReply, Stats, Store, StoredKeysUser, Ticket, Tree, WriteBatch, files};

/// Operations for servers, bindings and event loops, on the keys of a tree or a store: checks without waits, results of
/// single keys, and the store's stored keys.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use hikv::{FilesStatus, FrontEnd};
///
/// let files = FrontEnd::of(&store).check_files();
/// assert_eq!(files, FilesStatus::InPlace);
/// println!("the files are {}", files.name());
/// let items = [("one", "eins"), ("two", "zwei")];
/// let mut stored = Vec::new();
/// FrontEnd::of(&store).multi_put_each(&items, |index, put| stored.push((index, put.is_ok())));
/// assert_eq!(stored, [(0, true), (1, true)]);
/// FrontEnd::of(&store).prefetch(&["one", "two"]);
/// FrontEnd::of(&store).multi_delete_each(&["one"], |_, deleted| assert!(deleted.is_ok_and(|was_there| was_there)));
///
/// // Both writes share one wait for the disk, if the store is on one.
/// let level = FrontEnd::of(&store).durability_max();
/// FrontEnd::of(&store).at_durability(level, || {
///     store.put("three", "drei")?;
///     store.put("four", "vier")
/// })?;
/// let region = FrontEnd::of(&store).region_path();
/// println!("{}: {} items", region.display(), FrontEnd::of(&store).stats_now()?.items);
/// let place = dir.path().join("../latest");
/// FrontEnd::of(&store).check_backup_place(&place)?;
/// FrontEnd::of(&store).check_latest_backup(&place)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FrontEnd<'t>(&'t Tree);

impl<'t> FrontEnd<'t> {
    /// Returns the operations on a tree's keys, or with a store on its own.
    #[must_use]
    pub fn of(tree: &'t Tree) -> FrontEnd<'t> {
        FrontEnd(tree)
    }

    /// Checks whether the store's files still exist. If they were removed, all later writes fail. Writers check at
    /// most once a second. Without background threads ([`crate::Options::background`]) the caller has to call this.
    pub fn check_files(self) -> FilesStatus {
        self.0.inner().files.check()
    }

    /// Returns the present figures without waiting. [`Stats::counted`] is false while they are incomplete.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn stats_now(self) -> Result<Stats, Error> {
        self.0.inner().stats_now()
    }

    /// Returns the path of the file or device that holds the region.
    #[must_use]
    pub fn region_path(self) -> PathBuf {
        files::region_path(&self.0.inner().path)
    }

    /// Returns the highest durability that a write can request. A journal provides `power`, at whatever level it was
    /// opened.
    #[must_use]
    pub fn durability_max(self) -> Durability {
        self.0.inner().durability_max()
    }

    /// Runs `operate`, and returns when everything that the calling thread wrote to this store, and read from it, is
    /// durable at `level`. For event loops, whose commands reach the store by several ways.
    ///
    /// # Errors
    /// Those of `operate`; [`Error::Durability`], [`Error::Medium`].
    pub fn at_durability<R, E: From<Error>>(
        self,
        level: Durability,
        operate: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        self.0.inner().at(level, operate)
    }

    /// Returns a ticket for all writes that any thread has deferred so far. For a thread that passes on another
    /// thread's deferred result. Does not wait.
    pub fn deferred_so_far(self) -> Ticket {
        Ticket::deferred_so_far(self.0.inner())
    }

    /// Like [`Store::verify`], without reading keys and values: checks the headers of the region, its chunks, segments
    /// and items, and the offsets in entries.
    ///
    /// # Errors
    /// As for [`Store::verify`].
    pub fn verify_headers<A: CallbackReply>(self, progress: impl FnMut(VerifyProgress) -> A) -> Result<Report, Error> {
        verify::check(self.0.inner().engine()?, Depth::Quick, progress)
    }

    /// Checks that the path `place` is suitable for [`Store::backup_latest`].
    ///
    /// # Errors
    /// [`BackupError::Place`] if it is the store's directory, above it, within it under another name than `backup`, or
    /// not a directory; [`BackupError::Open`] if it cannot be examined.
    pub fn check_backup_place(self, place: impl AsRef<Path>) -> Result<(), BackupError> {
        LatestBackup::of(&self.store(), place.as_ref())?.check_place(&self.0.inner().files)
    }

    /// Checks that `place` is empty or holds a backup that may be replaced.
    ///
    /// # Errors
    /// [`BackupError::Occupied`] if it holds anything else; [`BackupError::Open`] if it cannot be examined.
    pub fn check_latest_backup(self, place: impl AsRef<Path>) -> Result<(), BackupError> {
        LatestBackup::of(&self.store(), place.as_ref())?.check()
    }

    fn store(self) -> Store {
        Store::new(self.0.held_by(Kind::Store))
    }

    /// Like [`Tree::multi_put`], and calls `on_result` with each item's index and result. A failed item does not stop
    /// the others, and no item is put twice. `on_result` must not use the store.
    pub fn multi_put_each<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        self,
        items: &[(K, V)],
        mut on_result: impl FnMut(usize, Result<(), Error>),
    ) {
        let keyspace = self.0.keyspace();
        for (first, batch) in items.chunks(BATCH_COUNT).enumerate().map(|(i, batch)| (i * BATCH_COUNT, batch)) {
            let mut slices = [(&[][..], &[][..]); BATCH_COUNT];
            let pairs = batch.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
            slices.iter_mut().zip(pairs).for_each(|(slice, pair)| *slice = pair);
            let mut each = |number: usize, done| on_result(first + number, done);
            let asked = keyspace.change_pairs(&slices[..batch.len()], |engine, pairs| {
                engine.multi_put_each(pairs, &mut each);
                Ok(())
            });
            if asked.is_err() {
                (0..batch.len()).for_each(|number| each(number, keyspace.writable()));
            }
        }
    }

    /// Deletes several keys, and calls `on_result` with each key's index and result: true if the key existed. Faster
    /// than successive `delete`s if the engine makes them durable together, as `pmekv` does. Not atomic; a failed key
    /// does not stop the others. `on_result` must not use the store.
    pub fn multi_delete_each<K: AsRef<[u8]>>(self, keys: &[K], mut on_result: impl FnMut(usize, Result<bool, Error>)) {
        let keyspace = self.0.keyspace();
        for (first, batch) in keys.chunks(BATCH_COUNT).enumerate().map(|(i, batch)| (i * BATCH_COUNT, batch)) {
            let mut slices = [&[][..]; BATCH_COUNT];
            slices.iter_mut().zip(batch).for_each(|(slice, key)| *slice = key.as_ref());
            let mut each = |number: usize, done| on_result(first + number, done);
            let asked = keyspace.change_keys(&slices[..batch.len()], |engine, keys| {
                engine.multi_delete_each(keys, &mut each);
                Ok(())
            });
            if asked.is_err() {
                (0..batch.len()).for_each(|number| each(number, keyspace.writable().map(|()| false)));
            }
        }
    }

    /// Fetches everything that writes of these keys will need into the processor's caches, so that several writes that
    /// follow do not wait for memory one after the other. A hint, which changes nothing.
    pub fn prefetch<K: AsRef<[u8]>>(self, keys: &[K]) {
        let Ok(engine) = self.0.inner().engine() else { return };
        let Ok(space) = self.0.keyspace().space() else { return };
        for batch in keys.chunks(BATCH_COUNT) {
            let stored = StoredKeys::of(space, batch.iter().map(AsRef::as_ref));
            engine.prefetch(&stored.iter().collect::<Vec<_>>());
        }
    }

    /// Returns a handle of all stored keys, those of all trees and of the catalog.
    #[doc(hidden)]
    #[must_use]
    pub fn stored(self) -> Tree {
        stored_keys(self.0)
    }

    /// Returns the store, for a front end with its own mapping of keys to stored keys.
    #[doc(hidden)]
    #[must_use]
    pub fn store_of_stored_keys(self) -> Store {
        Store::new(self.stored())
    }

    /// Registers the front end that maps keys to stored keys. It looks at [`FrontEnd::has_catalog`] and at the ids of
    /// its databases afterwards.
    #[doc(hidden)]
    pub fn set_user_of_stored_keys(self, user: Weak<dyn StoredKeysUser>) {
        self.0.inner().trees.set_user(user);
    }

    /// Returns a handle of all stored keys of an empty store, to which a dump of stored keys is loaded, and marks the
    /// store as one with named trees.
    #[doc(hidden)]
    pub fn stored_to_fill(self) -> Result<Tree, Error> {
        self.0.keyspace().change(|engine| engine.set_has_trees())?;
        Ok(self.stored())
    }

    /// Returns true if the store is marked as one with named trees.
    #[doc(hidden)]
    #[must_use]
    pub fn has_trees(self) -> bool {
        self.0.inner().engine.has_trees()
    }

    /// Returns true if the store has a catalog: its stored keys have the form of `docs/format/catalog.md`.
    #[doc(hidden)]
    #[must_use]
    pub fn has_catalog(self) -> bool {
        self.0.inner().trees.is_begun()
    }

    /// Begins the catalog if there is none. No command of the front end is under way.
    #[doc(hidden)]
    pub fn begin_catalog(self) -> Result<(), Error> {
        let inner = self.0.inner();
        self.0.keyspace().change_alone(|engine| inner.trees.begin_for_user(engine, &inner.gate_lock))
    }

    /// Records in the catalog that the server's database of this number has keys, under the id of the same number.
    #[doc(hidden)]
    pub fn create_database(self, number: u8) -> Result<(), Error> {
        let inner = self.0.inner();
        self.0.keyspace().change_alone(|engine| inner.trees.create_database(engine, &inner.gate_lock, number))
    }

    /// Creates a tree of the front end with a reserved name, or finds it, and begins the catalog if there is none. No
    /// command of the front end is under way.
    #[doc(hidden)]
    pub fn create_tree(self, name: &str) -> Result<TreeId, Error> {
        let inner = self.0.inner();
        self.0.keyspace().change_alone(|engine| inner.trees.create_for_user(engine, &inner.gate_lock, name))
    }

    /// Returns the first of `count` ids for databases, which no tree has or will have. The store has a catalog.
    #[doc(hidden)]
    pub fn reserve_ids(self, count: u32) -> Result<TreeId, Error> {
        self.0.keyspace().change_alone(|engine| Catalog::of(engine).reserve(count))
    }

    /// Gives the databases these ids, and carries out a batch on stored keys, in one step. No command of the front end
    /// is under way, and the store has a catalog.
    #[doc(hidden)]
    pub fn write_with_databases(self, ids: &DatabaseIds, batch: &WriteBatch) -> Result<(), Error> {
        let inner = self.0.inner();
        let ops = batch.ops(inner.engine()?.clock(), None)?;
        inner.check_memory_for(&ops)?;
        let changes = (&batch.conditions(None)[..], &ops[..]);
        self.0.keyspace().change_alone(|engine| inner.trees.assign(engine, &inner.gate_lock, ids, changes))
    }
}
