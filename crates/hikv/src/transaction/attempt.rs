//! One attempt of a transaction: its reads, its changes, and its commit.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::iter;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use catalog::Space;
use engine::{BatchOp, Condition, Early, Error, Version};
use transact::{Gate, Holder};

use super::part::{Changes, Noted, Part};
use super::reads::{RangePart, RangeRead, Rows};
use super::{PATIENCE, ROW_COUNT_MAX};
use crate::handles::Kind;
use crate::ordered::Ordered;
use crate::tree::StoredKeys;
use crate::{Store, Tree};

/// A row of a range that expires: its tree, its key and its version. It is a condition of the commit's batch, so that
/// the engine judges under its locks whether it has expired.
type ExpiringRow = (Space, Vec<u8>, Version);

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt<'s> {
    store: &'s Store,
    number: u32,
    /// Of an exclusive attempt: holds the gate lock. The gates of all its trees are closed.
    holder: Option<Holder<'s>>,
    /// No space that the attempt has read is reused before the safe epoch is two above this one.
    began: Cell<u64>,
    /// The trees that the attempt uses. The first is that of the store.
    parts: RefCell<Vec<Part<'s>>>,
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
        let (parts, began) = (RefCell::default(), Cell::new(epoch::safe()));
        let attempt = Attempt { store, number, holder, began, parts, is_doomed: Cell::new(false) };
        attempt.add(Part::of_store(store)?)?;
        Ok(attempt)
    }

    /// Forgets all reads and changes, before the body runs again.
    pub(super) fn restart(&self) -> Result<(), Error> {
        self.began.set(epoch::safe());
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
        let all = all.into_iter().chain(iter::repeat_with(Changes::new));
        self.parts.borrow_mut().iter_mut().zip(all).for_each(|(part, changes)| part.set_changes(changes));
    }

    /// Returns the number of items of ranges that the attempt has read.
    pub(super) fn row_count(&self) -> u64 {
        self.parts.borrow().iter().flat_map(Part::ranges).map(RangeRead::row_count).sum()
    }

    /// Records the value of a key that the attempt has read.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another thread has changed the key since an earlier read.
    pub(super) fn note(&self, number: usize, key: &[u8], read: Option<Noted>) -> Result<(), Error> {
        self.part_mut(number).note(key, read).inspect_err(|_| self.is_doomed.set(true))
    }

    /// Returns an error if the attempt cannot commit: another thread has changed a key that was read.
    pub(super) fn check(&self) -> Result<(), Error> {
        let checked = if self.is_doomed.get() { Err(Error::Conflict) } else { check_all(&self.parts.borrow()) };
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
        if !writes && (self.store.inner().is_read_only || !has_ranges && self.were_together(&parts)?) {
            return Ok(());
        }
        let written = match &self.holder {
            None if !has_ranges => self.write(&parts, &[], writes, false),
            None => {
                if self.row_count() <= ROW_COUNT_MAX {
                    read_again(&parts, None)?;
                }
                let holder = self.store.inner().gate_lock.lock()?;
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

    /// Writes the batch, with the versions of points and of expiring rows as conditions, if all trees are as they were.
    fn write(&self, parts: &[Part<'_>], expiring: &[ExpiringRow], writes: bool, is_alone: bool) -> Result<(), Error> {
        let mappings: Vec<_> = parts.iter().map(|part| part.tree().keyspace().mapping()).collect();
        self.store.keyspace().change_trees(&mappings, is_alone, |engine, spaces| {
            if parts.iter().zip(spaces).any(|(part, space)| part.space() != *space) {
                return Err(Error::Conflict);
            }
            let rows = || expiring.iter().map(|(space, key, version)| (*space, (&key[..], Some(*version))));
            let version = |noted: Option<Noted>| noted.map(|noted| noted.version);
            let points = || {
                let points = parts.iter().flat_map(|part| part.points().map(|point| (part.space(), point)));
                points.map(|(space, (key, noted))| (space, (key, version(noted)))).chain(rows())
            };
            let changes = || parts.iter().flat_map(|part| part.changes().map(|change| (part.space(), change)));
            let keys = points().map(|(space, (key, _))| (space, key));
            let keys: Vec<_> = keys.chain(changes().map(|(space, (key, _))| (space, key))).collect();
            let stored = StoredKeys::of_several(&keys);
            let mut keys = stored.iter();
            let conditions: Vec<_> =
                points().zip(&mut keys).map(|((_, (_, version)), key)| Condition { key, version }).collect();
            let ops: Vec<BatchOp<'_>> = changes().zip(keys).map(|((_, (_, change)), key)| change.op(key)).collect();
            self.store.inner().check_memory_for(&ops)?;
            engine.write_batch_if(&conditions, if writes { &ops } else { &[] })
        })
    }

    /// Returns true if all keys that were read had these values at one moment. False says nothing.
    fn were_together(&self, parts: &[Part<'_>]) -> Result<bool, Error> {
        let points = || parts.iter().flat_map(|part| part.points().map(move |point| (part, point)));
        let is_absent = |noted: Option<Noted>| noted.is_none();
        if points().take(2).count() <= 1 {
            return Ok(true);
        }
        let is_distinct = self.store.inner().engine()?.features().distinct_versions;
        if !is_distinct || points().filter(|(_, (_, noted))| is_absent(*noted)).count() > 1 {
            return Ok(false);
        }
        let absent = points().filter(|(_, (_, noted))| is_absent(*noted));
        let present = points().filter(|(_, (_, noted))| !is_absent(*noted));
        // Witnesses suffice: the result counts only if no place was reused.
        for (part, (key, noted)) in absent.chain(present) {
            if part.witness_of(key)? != noted.map(|noted| noted.witness) {
                return Err(Error::Conflict);
            }
        }
        check_spaces(parts)?;
        // The reads above come before this load.
        fence(Ordering::Acquire);
        Ok(epoch::safe() < self.began.get() + 2)
    }
}

/// Returns [`Error::Conflict`] if a key that was read has another version now, or a tree another space.
fn check_all(parts: &[Part<'_>]) -> Result<(), Error> {
    for part in parts {
        for (key, noted) in part.points() {
            if part.read(key)?.map(|now| now.version) != noted.map(|noted| noted.version) {
                return Err(Error::Conflict);
            }
        }
    }
    check_spaces(parts)
}

fn check_spaces(parts: &[Part<'_>]) -> Result<(), Error> {
    for part in parts {
        if part.tree().keyspace().space()? != part.space() {
            return Err(Error::Conflict);
        }
    }
    Ok(())
}

/// Reads the ranges again, and returns [`Error::Conflict`] if an item has changed, come or gone. Adds all their keys to
/// `keys`, with the numbers of their parts.
fn read_again(parts: &[Part<'_>], mut keys: Option<&mut Vec<(usize, Vec<u8>)>>) -> Result<(), Error> {
    check_spaces(parts)?;
    for (number, part) in parts.iter().enumerate() {
        for read in part.ranges().flat_map(RangeRead::parts) {
            let note = |key: &[u8]| keys.iter_mut().for_each(|keys| keys.push((number, key.to_vec())));
            match is_unchanged(part.tree(), &read, note) {
                Ok(true) => {}
                // An error means that the order was lost, and would have to be built again.
                Ok(false) | Err(Error::NotOrderedYet { .. }) => return Err(Error::Conflict),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn is_unchanged(tree: &Tree, read: &RangePart<'_>, mut note: impl FnMut(&[u8])) -> Result<bool, Error> {
    let (bounds, mut now) = (&read.bounds, Rows::default());
    let ordered = Ordered::new(tree.held_by(Kind::Ordered), Early::Refuse);
    let has_another = ordered.walk(bounds.start(read.direction), read.direction, |key, value| {
        let is_within = bounds.contains(key);
        if !is_within || now.row_count() == read.rows.row_count() {
            return ControlFlow::Break(is_within);
        }
        now.add(key, value);
        note(key);
        ControlFlow::Continue(())
    })?;
    Ok(has_another != Some(true) && now.is_same(read.rows))
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

    #[test]
    fn row_that_expires_before_the_batch_is_a_conflict() {
        for engine in [EngineKind::HiKv, EngineKind::Ink, EngineKind::Pmekv] {
            let written = commit_late(engine, true);
            assert!(matches!(written, Err(Error::ConditionFailed { .. })), "{engine}: {written:?}");
            assert!(commit_late(engine, false).is_ok(), "{engine}: without the rows, the expiry is missed");
        }
    }
}
