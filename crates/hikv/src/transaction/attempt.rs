//! One attempt of a transaction: its reads, its changes, and its commit.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::iter;
use std::sync::Arc;

use catalog::Space;
use engine::{Condition, Engine, Error, Required, Version};
use epoch::Start;
use smallvec::SmallVec;
use transact::{Gate, Holder};

use super::again::{check_all, check_spaces, read_again};
use super::part::{Changes, Part};
use super::points::{Judged, Point};
use super::reads::RangeRead;
use super::{PATIENCE, ROW_COUNT_MAX};
use crate::tree::StoredKeys;
use crate::{ItemView, Store, Tree};

/// A row of a range that expires: its tree, its key and its version. It is a condition of the commit's batch, so that
/// the engine judges under its locks whether it has expired.
type ExpiringRow = (Space, Vec<u8>, Version);

/// A list that allocates nothing for a few entries.
type Few<T> = SmallVec<[T; 4]>;

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt<'s> {
    store: &'s Store,
    number: u32,
    /// Of an exclusive attempt: holds the gate lock. The gates of all its trees are closed.
    holder: Option<Holder<'s>>,
    /// Comes before all reads.
    start: Cell<Start>,
    /// [`Trees::return_count`](crate::trees::Trees::return_count) before all reads.
    return_count: Cell<u64>,
    /// The trees that the attempt uses. The first is that of the store.
    parts: RefCell<SmallVec<[Part<'s>; 1]>>,
    /// The number of the part that has the key whose first read was the last one.
    last: Cell<usize>,
    /// A read has shown that another thread has changed a key since an earlier read.
    is_doomed: Cell<bool>,
}

impl<'s> Attempt<'s> {
    /// Begins an attempt. Of an exclusive one, waits for the gate lock and for writes under way.
    ///
    /// # Errors
    /// [`Error::Contended`], and those of `Tree::space`; [`Error::Unsupported`] of stored keys, whose gate keeps only
    /// other writers of stored keys out.
    pub(super) fn begin(store: &'s Store, number: u32, is_exclusive: bool) -> Result<Attempt<'s>, Error> {
        if store.keyspace().shows_all() {
            let engine = store.inner().engine()?.name();
            return Err(Error::Unsupported { engine, what: "transactions over stored keys" });
        }
        let holder = if is_exclusive { Some(store.inner().gate_lock.lock()?) } else { None };
        let (parts, start) = (RefCell::default(), Cell::new(Start::now()));
        let return_count = Cell::new(store.inner().trees.return_count());
        let (last, is_doomed) = (Cell::new(0), Cell::new(false));
        let attempt = Attempt { store, number, holder, start, return_count, parts, last, is_doomed };
        attempt.add(Part::of_store(store)?)?;
        Ok(attempt)
    }

    /// Forgets all reads and changes, before the body runs again.
    pub(super) fn restart(&self) -> Result<(), Error> {
        self.start.set(Start::now());
        self.return_count.set(self.store.inner().trees.return_count());
        self.is_doomed.set(false);
        self.parts.borrow_mut().clear();
        self.add(Part::of_store(self.store)?).map(drop)
    }

    pub(super) fn store(&self) -> &'s Store {
        self.store
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.holder.is_some()
    }

    /// Returns the number of the tree's part.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`] of a dropped tree, or of a tree of another store; [`Error::Contended`].
    pub(super) fn part_of(&self, tree: &Tree) -> Result<usize, Error> {
        if !tree.keyspace().is_of(self.store.keyspace()) {
            return Err(Error::NoSuchTree { name: tree.name().unwrap_or_default().into() });
        }
        let found = self
            .parts
            .borrow()
            .iter()
            .position(|part| part.tree().keyspace().mapping().is_same(tree.keyspace().mapping()));
        found.map_or_else(|| self.add(Part::of_tree(tree)?), Ok)
    }

    fn add(&self, part: Part<'s>) -> Result<usize, Error> {
        self.close([part.tree().keyspace().gate()].into_iter())?;
        let mut parts = self.parts.borrow_mut();
        parts.push(part);
        Ok(parts.len() - 1)
    }

    /// Closes gates if the attempt is exclusive.
    fn close<'g>(&self, gates: impl Iterator<Item = &'g Arc<Gate>>) -> Result<(), Error> {
        self.holder.as_ref().map_or(Ok(()), |holder| self.close_by(holder, gates))
    }

    fn close_by<'g>(&self, holder: &Holder<'_>, gates: impl Iterator<Item = &'g Arc<Gate>>) -> Result<(), Error> {
        holder.close(gates, PATIENCE).map_err(|_| Error::Contended { attempts: self.number })
    }

    pub(super) fn part(&self, number: usize) -> Ref<'_, Part<'s>> {
        Ref::map(self.parts.borrow(), |parts| &parts[number])
    }

    pub(super) fn part_mut(&self, number: usize) -> RefMut<'_, Part<'s>> {
        RefMut::map(self.parts.borrow_mut(), |parts| &mut parts[number])
    }

    /// Returns the changes of all trees.
    pub(super) fn all_changes(&self) -> Vec<Changes> {
        self.parts.borrow().iter().map(Part::all_changes).collect()
    }

    /// Sets the changes of all trees. Those that are not among them have no change.
    pub(super) fn set_all_changes(&self, all: Vec<Changes>) {
        let all = all.into_iter().chain(iter::repeat_with(Changes::default));
        self.parts.borrow_mut().iter_mut().zip(all).for_each(|(part, changes)| part.set_changes(changes));
    }

    /// Returns the number of items of ranges that the attempt has read.
    pub(super) fn row_count(&self) -> u64 {
        self.parts.borrow().iter().flat_map(Part::ranges).map(RangeRead::row_count).sum()
    }

    /// Calls `read` with a key's item, and tracks the read.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another thread has changed the key since an earlier read.
    pub(super) fn read<R>(
        &self,
        number: usize,
        key: &[u8],
        read: impl FnOnce(ItemView<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        let mut part = self.part_mut(number);
        let count = part.points().len();
        let found = part.read(key, self.start.get(), read);
        if part.points().len() > count {
            self.last.set(number);
        }
        found.inspect_err(|error| self.is_doomed.set(self.is_doomed.get() || matches!(error, Error::Conflict)))
    }

    /// Returns an error if the attempt cannot commit: another thread has changed a key that was read.
    pub(super) fn check(&self) -> Result<(), Error> {
        let checked =
            if self.is_doomed.get() { Err(Error::Conflict) } else { check_all(&self.parts.borrow(), self.start.get()) };
        checked.inspect_err(|_| self.is_doomed.set(true))
    }

    /// Commits the attempt: see the module's head.
    pub(super) fn commit(&self) -> Result<(), Error> {
        self.finish(true)
    }

    /// Returns an error if the reads of a failed body do not fit together at one moment.
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.finish(false)
    }

    fn finish(&self, with_changes: bool) -> Result<(), Error> {
        if self.is_doomed.get() {
            return Err(Error::Conflict);
        }
        let parts = self.parts.borrow();
        let writes = with_changes && parts.iter().any(Part::has_changes);
        let has_ranges = parts.iter().any(Part::has_ranges);
        // No thread writes to a store that was opened for reading.
        if !writes && (self.store.inner().is_read_only || !has_ranges && self.are_consistent(&parts)?) {
            return Ok(());
        }
        let written = match &self.holder {
            None if !has_ranges => self.write(&parts, &[], writes, false),
            None => {
                let holder = self.gate_lock(&parts)?;
                self.close_by(
                    &holder,
                    parts.iter().filter(|part| part.has_ranges()).map(|part| part.tree().keyspace().gate()),
                )?;
                self.write(&parts, &self.expiring_rows(&parts)?, writes, true)
            }
            Some(_) => self.write(&parts, &self.expiring_rows(&parts)?, writes, true),
        };
        written.map_err(|error| match error {
            Error::ConditionFailed { .. } => Error::Conflict,
            error => error,
        })
    }

    /// Takes the gate lock, for a commit with ranges. If another thread holds it, that thread may change the ranges:
    /// short ones are read again first.
    fn gate_lock(&self, parts: &[Part<'_>]) -> Result<Holder<'s>, Error> {
        let lock = &self.store.inner().gate_lock;
        if let Some(holder) = lock.try_lock()? {
            return Ok(holder);
        }
        if self.row_count() <= ROW_COUNT_MAX {
            read_again(parts, None)?;
        }
        Ok(lock.lock()?)
    }

    /// Reads the ranges again, and returns those of their rows that expire.
    fn expiring_rows(&self, parts: &[Part<'_>]) -> Result<Vec<ExpiringRow>, Error> {
        if !self.store.inner().engine()?.may_expire() {
            read_again(parts, None)?;
            return Ok(Vec::new());
        }
        let (mut keys, mut rows) = (Vec::new(), Vec::new());
        read_again(parts, Some(&mut keys))?;
        for (number, key) in keys {
            let part = &parts[number];
            rows.extend(part.expiring_version_of(&key)?.map(|version| (part.space(), key, version)));
        }
        Ok(rows)
    }

    /// Writes the batch, with the points and the expiring rows as conditions, if all trees are as they were. Points are
    /// judged by witnesses while the attempt is recent, else by versions.
    fn write(&self, parts: &[Part<'_>], expiring: &[ExpiringRow], writes: bool, is_alone: bool) -> Result<(), Error> {
        let start = self.start.get();
        if start.is_recent() {
            let written = self.write_judged(parts, expiring, Judged::ByWitness(start), (writes, is_alone));
            if start.is_recent() || !matches!(written, Err(Error::ConditionFailed { .. })) {
                return written;
            }
        }
        self.write_judged(parts, expiring, Judged::ByVersion, (writes, is_alone))
    }

    fn write_judged(
        &self,
        parts: &[Part<'_>],
        expiring: &[ExpiringRow],
        by: Judged,
        (writes, is_alone): (bool, bool),
    ) -> Result<(), Error> {
        let (keyspace, are_plain) = (self.store.keyspace(), expiring.is_empty() && parts.iter().all(Part::is_plain));
        let write = |engine: &dyn Engine| {
            // Keys whose stored forms are other ones are copied.
            let stored = if are_plain { None } else { Some(stored_keys(parts, expiring)) };
            let mut stored = stored.as_ref().map(StoredKeys::iter);
            let mut stored_of = |key| stored.as_mut().and_then(Iterator::next).unwrap_or(key);
            let (mut conditions, mut ops) = (Few::new(), Few::new());
            for point in parts.iter().flat_map(Part::points) {
                let key = stored_of(point.key);
                conditions.push(Condition { key, required: point.required(key, by) });
            }
            for (_, key, version) in expiring {
                conditions.push(Condition { key: stored_of(key), required: Required::Version(*version) });
            }
            for part in parts {
                part.for_each_change(|key, change| ops.push(change.op(stored_of(key))));
            }
            self.store.inner().check_memory_for(&ops)?;
            engine.write_batch_if(&conditions, if writes { &ops } else { &[] })
        };
        match parts {
            // These keys are stored under their own names, whatever space their tree has.
            [_] if are_plain && !is_alone => return keyspace.change(write),
            [_] if are_plain => return keyspace.change_alone(write),
            _ => {}
        }
        let mappings: Few<_> = parts.iter().map(|part| part.tree().keyspace().mapping()).collect();
        keyspace.change_trees(&mappings, is_alone, |engine, spaces| {
            let are_same = parts.iter().zip(spaces).all(|(part, space)| part.space() == *space);
            if are_same { write(engine) } else { Err(Error::Conflict) }
        })
    }

    /// Returns true if all keys that were read had these values at one moment. False says nothing.
    fn are_consistent(&self, parts: &[Part<'_>]) -> Result<bool, Error> {
        let points = || parts.iter().flat_map(Part::points);
        if points().count() <= 1 {
            return Ok(true);
        }
        let absent_count = points().filter(|point| point.is_absent()).count();
        if absent_count > 1 || !self.store.inner().engine()?.features().distinct_versions {
            return Ok(false);
        }
        // The last read was made when the others held, if these have not changed since.
        let last = parts[self.last.get()].points().next_back();
        let skips_last = absent_count == 0 || last.is_some_and(Point::is_absent);
        // Witnesses suffice: the result counts only if no place was reused.
        let are_same = |is_absent: bool| {
            for (number, part) in parts.iter().enumerate() {
                let skipped_count = usize::from(skips_last && number == self.last.get());
                let looked_at = part.points().rev().skip(skipped_count).filter(|point| point.is_absent() == is_absent);
                for point in looked_at {
                    if part.witness_of(point.key)? != point.witness() {
                        return Err(Error::Conflict);
                    }
                }
            }
            Ok(())
        };
        if absent_count > 0 {
            are_same(true)?;
        }
        are_same(false)?;
        check_spaces(parts)?;
        // A tree that was swapped and swapped back has had other keys in between.
        Ok(self.start.get().is_recent() && self.store.inner().trees.return_count() == self.return_count.get())
    }
}

/// Returns the stored forms of the keys of all points, expiring rows and changes.
fn stored_keys(parts: &[Part<'_>], expiring: &[ExpiringRow]) -> StoredKeys {
    let mut stored = StoredKeys::default();
    parts.iter().for_each(|part| part.points().for_each(|point| stored.push(part.space(), point.key)));
    expiring.iter().for_each(|(space, key, _)| stored.push(*space, key));
    parts.iter().for_each(|part| part.for_each_change(|key, _| stored.push(part.space(), key)));
    stored
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use engine::Clock;

    use super::super::tree::TxTree;
    use super::*;
    use crate::{EngineKind, Options};

    /// Commits when a row that a range has read expires between the second reading of the range and the batch.
    fn commit_late(engine: EngineKind, with_rows: bool) -> Result<(), Error> {
        let (dir, clock) = (tempfile::tempdir().unwrap(), Clock::manual(1000));
        let store = Options::new().engine(engine).clock(clock.clone()).background(false).open(dir.path()).unwrap();
        let tx = store.begin().unwrap();
        tx.put_ttl("lease:1", "ada", Duration::from_secs(5)).unwrap();
        tx.put("lease:2", "bob").unwrap();
        tx.commit().unwrap();
        let attempt = Rc::new(Attempt::begin(&store, 1, false).unwrap());
        let tx = TxTree::of(Rc::clone(&attempt));
        assert_eq!(tx.prefix("lease:")?.count(), 2);
        tx.put("found", "two leases")?;
        let parts = attempt.parts.borrow();
        let rows = attempt.expiring_rows(&parts)?;
        assert_eq!(rows.iter().map(|(_, key, _)| &key[..]).collect::<Vec<_>>(), [b"lease:1"]);
        clock.advance(Duration::from_secs(6));
        let written = attempt.write(&parts, if with_rows { &rows } else { &[] }, true, false);
        assert_eq!(store.get("found")?.is_some(), written.is_ok());
        written
    }

    /// Of a tree that is swapped and swapped back, reads may see both trees by turns, and so may those that look again.
    #[test]
    fn recreated_trees_are_validated_under_locks() {
        for engine in [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv] {
            let dir = tempfile::tempdir().unwrap();
            let store = Options::new().engine(engine).background(false).open(dir.path()).unwrap();
            let (tree, value) = (store.tree("tree").unwrap(), [7; 100]);
            store.tree("other").unwrap();
            tree.multi_put([("one", value), ("two", value)]).unwrap();
            let are_consistent = |swap_count| {
                let attempt = Rc::new(Attempt::begin(&store, 1, false).unwrap());
                let tx = TxTree::of(Rc::clone(&attempt)).tree(&tree).unwrap();
                assert!(tx.contains("one").unwrap());
                (0..swap_count).for_each(|_| store.swap_trees("tree", "other").unwrap());
                assert!(tx.contains("two").unwrap());
                attempt.commit().unwrap();
                let parts = attempt.parts.borrow();
                attempt.are_consistent(&parts).unwrap()
            };
            // Other tests of this process start epochs, so an attempt may be old.
            assert_eq!((0..100).any(|_| are_consistent(0)), store.features().distinct_versions, "{engine}");
            assert!(!(0..100).any(|_| are_consistent(2)), "{engine}");
        }
    }

    #[test]
    fn row_expired_before_batch_is_a_conflict() {
        for engine in [EngineKind::HiKv, EngineKind::Ink, EngineKind::Pmekv] {
            let written = commit_late(engine, true);
            assert!(matches!(written, Err(Error::ConditionFailed { .. })), "{engine}: {written:?}");
            assert!(commit_late(engine, false).is_ok(), "{engine}: without the rows, the expiry is missed");
        }
    }
}
