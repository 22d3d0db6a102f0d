//! The reads and changes of an attempt in one tree.

use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};

use catalog::Space;
use engine::{BatchOp, Direction, Early, Error, Expiry, Version, Witness};
use epoch::Start;

use super::key_map::KeyMap;
use super::memory::Kept;
use super::points::Point;
use super::reads::RangeRead;
use crate::ordered::{Bounds, walk, want_order};
use crate::{Item, ItemView, Store, Tree};

/// The changes that an attempt wants to make in a tree, by key.
pub(super) type Changes = KeyMap<Change>;

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

    pub(super) fn op<'a>(&'a self, key: &'a [u8]) -> BatchOp<'a> {
        match self {
            Change::Put(value, expiry) if expiry.is_never() => BatchOp::Put { key, value },
            Change::Put(value, expiry) => BatchOp::PutUntil { key, value, expiry: *expiry },
            Change::Delete => BatchOp::Delete { key },
        }
    }
}

/// The reads and changes in one tree.
#[derive(Debug)]
pub(super) struct Part<'s> {
    tree: Cow<'s, Tree>,
    /// The tree's space when the attempt began to use it. A tree that was cleared has another one.
    space: Space,
    memory: Kept,
}

impl<'s> Part<'s> {
    /// Begins the part of the store's own tree.
    pub(super) fn of_store(store: &'s Store) -> Result<Part<'s>, Error> {
        Part::begin(Cow::Borrowed(store))
    }

    /// Begins the part of another tree.
    pub(super) fn of_tree(tree: &Tree) -> Result<Part<'s>, Error> {
        Part::begin(Cow::Owned(tree.clone()))
    }

    fn begin(tree: Cow<'s, Tree>) -> Result<Part<'s>, Error> {
        let space = tree.keyspace().space()?;
        Ok(Part { tree, space, memory: Kept::new() })
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn space(&self) -> Space {
        self.space
    }

    /// Calls `read` with the key's item, and records its identity, or that the key is absent.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the key had another value, or none, at an earlier read.
    pub(super) fn read<R>(
        &mut self,
        key: &[u8],
        start: Start,
        read: impl FnOnce(ItemView<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        let Part { tree, memory, .. } = self;
        let points = &mut memory.points;
        let found = tree.in_place().get_item(key, |item| (points.note(key, &item, start), read(item)))?;
        match found {
            Some((noted, result)) => noted.map(|()| Some(result)),
            None => points.note_absent(key).map(|()| None),
        }
    }

    /// Returns true if the key that was read has the same value now.
    pub(super) fn is_unchanged(&self, point: Point<'_>, start: Start) -> Result<bool, Error> {
        let is_same = self.tree.in_place().get_item(point.key, |item| point.is_of(&item, start))?;
        Ok(is_same.unwrap_or(point.is_absent()))
    }

    /// Returns the version of a key of a range whose item expires, `None` if it does not.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the item has expired since.
    pub(super) fn expiring_version_of(&self, key: &[u8]) -> Result<Option<Version>, Error> {
        let version = self.tree.in_place().get_item(key, |item| (!item.expiry().is_never()).then(|| item.version()))?;
        version.ok_or(Error::Conflict)
    }

    /// Returns the witness of the key's value in the store, `None` if it is absent.
    pub(super) fn witness_of(&self, key: &[u8]) -> Result<Option<Witness>, Error> {
        self.tree.in_place().get_part_item(key, |item| item.witness())
    }

    /// Returns the keys that were read, in the order of their first reads.
    pub(super) fn points(&self) -> impl DoubleEndedIterator<Item = Point<'_>> + ExactSizeIterator {
        self.memory.points.iter()
    }

    /// Reads the item at one end of the tree, which has no changes of the attempt.
    pub(super) fn read_end(&mut self, direction: Direction) -> Result<Option<Item>, Error> {
        want_order(&self.tree)?;
        let mut range = RangeRead::new(Bounds::ALL);
        let item = walk(&self.tree, Early::Wait, Bound::Unbounded, direction, |key, value| {
            let rows = range.rows_mut(direction);
            rows.add(key, value);
            rows.reaches(key);
            ControlFlow::Break((key.to_vec(), value.to_vec()))
        })?;
        if item.is_none() {
            range.is_read();
        }
        self.memory.ranges.push(range);
        Ok(item)
    }

    /// Begins the read of a range, and returns its number.
    pub(super) fn begin_range(&mut self, bounds: Bounds) -> usize {
        self.memory.ranges.push(RangeRead::new(bounds));
        self.memory.ranges.len() - 1
    }

    pub(super) fn range_mut(&mut self, number: usize) -> &mut RangeRead {
        &mut self.memory.ranges[number]
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = &RangeRead> {
        self.memory.ranges.iter()
    }

    /// Returns true if a part of a range was read.
    pub(super) fn has_ranges(&self) -> bool {
        self.ranges().any(RangeRead::is_begun)
    }

    /// Calls `each` with the keys to change.
    #[inline]
    pub(super) fn for_each_change<'p>(&'p self, each: impl FnMut(&'p [u8], &'p Change)) {
        self.memory.changes.for_each(each);
    }

    /// Returns true if all keys that were read as points or are to be changed are stored under their own names.
    pub(super) fn is_plain(&self) -> bool {
        let keyspace = self.tree.keyspace();
        let mut is_plain = self.points().all(|point| keyspace.is_plain(point.key));
        self.for_each_change(|key, _| is_plain &= keyspace.is_plain(key));
        is_plain
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.memory.changes.is_empty()
    }

    /// Returns the change that the attempt wants to make to the key.
    pub(super) fn change_of(&self, key: &[u8]) -> Option<&Change> {
        self.memory.changes.get(key)
    }

    pub(super) fn change(&mut self, key: &[u8], change: Change) {
        self.memory.changes.insert(key, change);
    }

    /// Returns the first change within the bounds, or the last one.
    pub(super) fn change_within(&self, bounds: &Bounds, is_last: bool) -> Option<(&[u8], &Change)> {
        self.memory.changes.within(bounds, is_last)
    }

    pub(super) fn all_changes(&self) -> Changes {
        self.memory.changes.clone()
    }

    pub(super) fn set_changes(&mut self, changes: Changes) {
        self.memory.changes = changes;
    }
}
