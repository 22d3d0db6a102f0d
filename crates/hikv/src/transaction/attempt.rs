//! One attempt of a transaction: its reads, its changes, and its commit.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{Ordering, fence};

use engine::{BatchOp, Direction, Early, Engine, Error, Expiry, ScanCursor, Version};
use transact::Holder;

use super::reads::{Part, Reads};
use super::{PATIENCE, ROW_COUNT_MAX};
use crate::Store;
use crate::ordered::{Bounds, ordered_engine};

/// The changes that an attempt wants to make, by key.
pub(super) type Writes = BTreeMap<Vec<u8>, Change>;

/// A change of one key.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Vec<u8>, Expiry),
    Delete,
}

impl Change {
    /// Returns the value that the key will have.
    pub(super) fn value(&self) -> Option<&[u8]> {
        match self {
            Change::Put(value, _) => Some(value),
            Change::Delete => None,
        }
    }

    /// Returns the expiry that the key will have, `None` if the key is deleted.
    pub(super) fn expiry(&self) -> Option<Expiry> {
        match *self {
            Change::Put(_, expiry) => Some(expiry),
            Change::Delete => None,
        }
    }

    fn op<'a>(&'a self, key: &'a [u8]) -> BatchOp<'a> {
        match self {
            Change::Put(value, expiry) if expiry.is_never() => BatchOp::Put { key, value },
            Change::Put(value, expiry) => BatchOp::PutUntil { key, value, expiry: *expiry },
            Change::Delete => BatchOp::Delete { key },
        }
    }
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt<'s> {
    store: &'s Store,
    number: u32,
    is_exclusive: bool,
    /// No space that the attempt has read is reused before the safe epoch is two above this one.
    began: Cell<u64>,
    reads: RefCell<Reads>,
    writes: RefCell<Writes>,
    /// A read has shown that another thread has changed a key since an earlier read.
    is_doomed: Cell<bool>,
}

impl<'s> Attempt<'s> {
    pub(super) fn new(store: &'s Store, number: u32, is_exclusive: bool) -> Attempt<'s> {
        Attempt {
            store,
            number,
            is_exclusive,
            began: Cell::new(epoch::safe()),
            reads: RefCell::default(),
            writes: RefCell::default(),
            is_doomed: Cell::new(false),
        }
    }

    /// Forgets all reads and changes, before the body runs again.
    pub(super) fn restart(&self) {
        self.began.set(epoch::safe());
        self.reads.take();
        self.writes.take();
        self.is_doomed.set(false);
    }

    pub(super) fn store(&self) -> &'s Store {
        self.store
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    pub(super) fn reads_mut(&self) -> RefMut<'_, Reads> {
        self.reads.borrow_mut()
    }

    pub(super) fn writes(&self) -> Ref<'_, Writes> {
        self.writes.borrow()
    }

    pub(super) fn writes_mut(&self) -> RefMut<'_, Writes> {
        self.writes.borrow_mut()
    }

    /// Returns the number of items of ranges that the attempt has read.
    pub(super) fn row_count(&self) -> u64 {
        self.reads.borrow().row_count()
    }

    /// Records the version of a key that the attempt has read.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another thread has changed the key since an earlier read.
    pub(super) fn note(&self, key: &[u8], version: Option<Version>) -> Result<(), Error> {
        self.reads.borrow_mut().note(key, version).inspect_err(|_| self.is_doomed.set(true))
    }

    /// Returns an error if the attempt cannot commit: another thread has changed a key that was read.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_doomed.get() {
            return Err(Error::Conflict);
        }
        let reads = self.reads.borrow();
        for (key, &noted) in reads.points() {
            if self.version_of(key)? != noted {
                self.is_doomed.set(true);
                return Err(Error::Conflict);
            }
        }
        Ok(())
    }

    /// Commits the attempt: see the module's head. The caller may hold the gate lock, with the gate closed.
    pub(super) fn commit(&self, holder: Option<&Holder<'_>>) -> Result<(), Error> {
        let writes = self.writes.borrow();
        let ops: Vec<_> = writes.iter().map(|(key, change)| change.op(key)).collect();
        self.commit_ops(&ops, holder)
    }

    /// Returns an error if the reads of a failed body do not fit together at one moment.
    pub(super) fn validate(&self, holder: Option<&Holder<'_>>) -> Result<(), Error> {
        self.commit_ops(&[], holder)
    }

    fn commit_ops(&self, ops: &[BatchOp<'_>], holder: Option<&Holder<'_>>) -> Result<(), Error> {
        if self.is_doomed.get() {
            return Err(Error::Conflict);
        }
        let (reads, inner) = (self.reads.borrow(), self.store.inner());
        // Nobody writes to a store that was opened for reading.
        if inner.is_read_only && ops.is_empty() {
            return Ok(());
        }
        let has_ranges = reads.ranges().iter().any(|range| range.parts().next().is_some());
        if !has_ranges && ops.is_empty() && self.were_together(&reads)? {
            return Ok(());
        }
        let conditions = reads.conditions();
        let write = |engine: &dyn Engine| engine.write_batch_if(&conditions, ops);
        let written = match holder {
            None if !has_ranges => inner.change(write),
            None => {
                if reads.row_count() <= ROW_COUNT_MAX {
                    self.read_again(&reads)?;
                }
                inner.settled(|| {
                    let holder = inner.gate_lock.lock()?;
                    let closed = holder.close([&inner.gate].into_iter(), PATIENCE);
                    closed.map_err(|_| Error::Contended { attempts: self.number })?;
                    self.read_again(&reads)?;
                    inner.change_without_window(write)
                })
            }
            Some(_) => {
                self.read_again(&reads)?;
                inner.change_without_window(write)
            }
        };
        written.map_err(|error| match error {
            Error::ConditionFailed { .. } => Error::Conflict,
            error => error,
        })
    }

    /// Returns true if all keys that were read had these values at one moment. False says nothing.
    fn were_together(&self, reads: &Reads) -> Result<bool, Error> {
        let points = reads.points();
        let is_absent = |version: &Option<Version>| version.is_none();
        if points.len() <= 1 {
            return Ok(true);
        }
        let is_distinct = self.store.inner().engine()?.features().distinct_versions;
        if !is_distinct || points.values().filter(|version| is_absent(version)).count() > 1 {
            return Ok(false);
        }
        let absent = points.iter().filter(|(_, version)| is_absent(version));
        let present = points.iter().filter(|(_, version)| !is_absent(version));
        for (key, &noted) in absent.chain(present) {
            if self.version_of(key)? != noted {
                return Err(Error::Conflict);
            }
        }
        // The reads above come before this load.
        fence(Ordering::Acquire);
        Ok(epoch::safe() < self.began.get() + 2)
    }

    /// Returns the version of the key in the store, `None` if it is absent.
    pub(super) fn version_of(&self, key: &[u8]) -> Result<Option<Version>, Error> {
        self.store.in_place().get_item(key, |item| item.version())
    }

    /// Reads the ranges again, and returns [`Error::Conflict`] if an item has changed, come or gone.
    fn read_again(&self, reads: &Reads) -> Result<(), Error> {
        for (bounds, direction, part) in reads.ranges().iter().flat_map(|range| range.parts()) {
            match self.read_part(&bounds, direction, part) {
                Ok(now) if now.is_same(part) => {}
                // An error means that the order was lost, and would have to be built again.
                Ok(_) | Err(Error::NotOrderedYet { .. }) => return Err(Error::Conflict),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads a part of a range, up to one item more than `limit` has.
    fn read_part(&self, bounds: &Bounds, direction: Direction, limit: &Part) -> Result<Part, Error> {
        let engine = ordered_engine(self.store.inner().engine()?)?;
        engine.catch_up(Early::Refuse)?;
        let from = if direction == Direction::Forward { bounds.low() } else { bounds.high() };
        let (mut cursor, mut now) = (ScanCursor::new(from, direction), Part::default());
        let mut each = |key: &[u8], value: &[u8]| {
            if !bounds.contains(key) || now.is_longer(limit) {
                return ControlFlow::Break(());
            }
            now.add(key, value);
            ControlFlow::Continue(())
        };
        while !bounds.is_empty() && engine.scan(&mut cursor, &mut each)? {}
        Ok(now)
    }
}
